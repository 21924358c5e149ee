"""A rerun publishes what differs from what is published, however little that is and whatever type it has."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.clicks import CLICKS, MINUTE_MS, MORE, START_MS, arrive, clicks, clock, without
from windowlib.inspection.verify.asked import Asked
from windowlib.inspection.verify.verify import verify
from windowlib.runs.advance import advance
from windowlib.tables.read import read_table
from windowlib.tables.rerun import Rerun

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

MICROSECOND = datetime(2026, 3, 2, 0, 0, 0, 1, UTC)
DEFINITION = without(CLICKS, *MORE, "total").replace('clicks = "count(*)"', 'newest = "last(value)"')


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        (pa.decimal128(10, 2), Decimal("-0.01"), Decimal("0.01")),
        (pa.decimal128(30, 2), Decimal("12345678901234567890.01"), Decimal("12345678901234567890.02")),
        (pa.timestamp("us", tz="UTC"), MICROSECOND, MICROSECOND.replace(microsecond=2)),
        (pa.string(), None, ""),
    ],
    ids=str,
)
def test_a_struct_with_another_value_is_another_struct(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType, before: Any, after: Any
) -> None:
    schema = pa.schema([("user", pa.string()), ("at_ms", pa.int64()), ("value", pa.struct([("of", kind)]))])
    definition = clicks(tmp_path, 0, DEFINITION)

    def written(value: Any, number: int) -> None:
        times = (START_MS, START_MS + 30 * MINUTE_MS)  # the second fires the session of the first
        rows = [{"user": "ann", "at_ms": at_ms, "value": {"of": value}} for at_ms in times]
        os.utime(arrive(tmp_path, 1, rows, schema), ns=(number, number))

    written(before, 1)
    advance(definition, lambda: spark, clock=clock)
    written(after, 2)
    whole = Rerun(START_MS, START_MS + 60 * MINUTE_MS, "repaired", "ann")
    advance(definition, lambda: spark, clock=clock, rerun=whole)
    assert read_table(definition, "results")["newest"].to_pylist() == [{"of": after}]
    assert not verify(definition, Asked(), spark, clock).differs
