"""A refused row is kept as JSON as it is in its file: on every engine with all digits, signs and microseconds."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from windowlib.engines.choice import engine_of

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

NOON = datetime(2026, 3, 2, 12, 0, 0, 5, UTC)
ROW = {
    "a.b `c`": Decimal("-0.01"),
    "long": Decimal("-12345678901234567890.5"),
    "none": None,
    "whole": Decimal("12345678901234567890123456789012345678"),
    "at": NOON,
    "text": '1.5 "x"',
    "in": {"d": Decimal("-0.5"), "at": NOON},
    "list": [Decimal("-0.5")],
}
SCHEMA = pa.schema(
    [
        ("a.b `c`", pa.decimal128(10, 2)),
        ("long", pa.decimal128(38, 1)),
        ("none", pa.decimal128(10, 2)),
        ("whole", pa.decimal128(38, 0)),
        ("at", pa.timestamp("us", "UTC")),
        ("text", pa.string()),
        ("in", pa.struct([("d", pa.decimal128(3, 1)), ("at", pa.timestamp("us", "UTC"))])),
        ("list", pa.list_(pa.decimal128(3, 1))),
    ]
)


def test_a_row_as_json_is_the_row(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([ROW], schema=SCHEMA), tmp_path / "1.parquet")
    rows = spark.read.parquet(str(tmp_path / "1.parquet"))
    [[text]] = rows.select(engine_of(spark).as_json(rows, SCHEMA.names)).collect()
    found = json.loads(text, parse_float=Decimal)
    assert [*found] == [name for name in SCHEMA.names if name != "none"]
    assert {name: found[name] for name in ("a.b `c`", "long", "whole", "text")} == {
        name: ROW[name] for name in ("a.b `c`", "long", "whole", "text")
    }
    assert [found["at"], found["in"]["at"]] == ["2026-03-02T12:00:00.000005Z"] * 2
    assert [Decimal(found["in"]["d"]), Decimal(found["list"][0])] == [Decimal("-0.5")] * 2
