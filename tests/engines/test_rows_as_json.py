"""Refused rows as JSON: on every engine with all digits, signs and microseconds of the file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from windowlib.engines.choice import dialect_of

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
    [[text]] = rows.select(dialect_of(spark).as_json(rows, SCHEMA.names)).collect()
    found = json.loads(text, parse_float=Decimal)
    assert [*found] == [name for name in SCHEMA.names if name != "none"]
    assert {name: found[name] for name in ("a.b `c`", "long", "whole", "text")} == {
        name: ROW[name] for name in ("a.b `c`", "long", "whole", "text")
    }
    assert [found["at"], found["in"]["at"]] == ["2026-03-02T12:00:00.000005Z"] * 2
    assert [found["in"]["d"], found["list"][0]] == [Decimal("-0.5")] * 2


LOCAL = datetime(2026, 3, 2, 1, 58, 54, 120_000)
TIME = pa.timestamp("us")


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        (TIME, LOCAL, "2026-03-02T01:58:54.120000"),
        (TIME, datetime(1969, 12, 31, 23, 59, 59, 999_999), "1969-12-31T23:59:59.999999"),
        (TIME, datetime(1, 1, 1), "0001-01-01T00:00:00.000000"),
        (pa.struct([("it's", TIME)]), {"it's": LOCAL}, {"it's": "2026-03-02T01:58:54.120000"}),
        (pa.list_(TIME), [LOCAL, None], ["2026-03-02T01:58:54.120000", None]),
        (pa.map_(pa.string(), TIME), [("k", LOCAL)], {"k": "2026-03-02T01:58:54.120000"}),
        (pa.map_(pa.string(), pa.decimal128(3, 1)), [("k", Decimal("-0.5"))], {"k": -0.5}),
        (
            pa.list_(pa.struct([("a", pa.struct([("b", pa.list_(TIME)), ("c", TIME)]))])),
            [None, {"a": {"b": [LOCAL], "c": None}}, {"a": None}],
            [None, {"a": {"b": ["2026-03-02T01:58:54.120000"]}}, {}],
        ),
    ],
)
def test_a_time_without_a_zone_is_written_without_one(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType, value: Any, written: Any
) -> None:
    """Tested at any depth, and next to nulls."""
    schema = pa.schema([("number", pa.int64()), ("at", kind)])
    pq.write_table(pa.Table.from_pylist([{"number": 1, "at": value}], schema=schema), tmp_path / "1.parquet")
    pq.write_table(pa.Table.from_pylist([{"number": 2, "at": None}], schema=schema), tmp_path / "2.parquet")
    rows = spark.read.parquet(str(tmp_path / "1.parquet"), str(tmp_path / "2.parquet")).orderBy("number")
    texts = [text for [text] in rows.select(dialect_of(spark).as_json(rows, rows.columns)).collect()]
    assert [json.loads(text) for text in texts] == [{"number": 1, "at": written}, {"number": 2}]
