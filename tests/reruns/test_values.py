"""A rerun publishes every difference to published results, however small and of any type."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, MORE, START_MS, arrive, clicks, clock, without
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

MICROSECOND = datetime(2026, 3, 2, 0, 0, 0, 1, UTC)
DEFINITION = without(CLICKS, *MORE, "total").replace('clicks = "count(*)"', 'newest = "last(value)"')


VALUES: dict[str, tuple[pa.DataType, Any, Any]] = {  # by user: a type, and a value of it before and after
    "decimal": (pa.decimal128(10, 2), Decimal("-0.01"), Decimal("0.01")),
    "long decimal": (pa.decimal128(30, 2), Decimal("12345678901234567890.01"), Decimal("12345678901234567890.02")),
    "microsecond": (pa.timestamp("us", tz="UTC"), MICROSECOND, MICROSECOND.replace(microsecond=2)),
    "nothing": (pa.string(), None, ""),
}


def test_a_struct_with_another_value_is_another_struct(spark: SparkSession, tmp_path: Path) -> None:
    """One column for each type. Only the value of one user differs."""
    columns = {user: f"value_{number}" for number, user in enumerate(VALUES)}
    structs = [(columns[user], pa.struct([("of", kind)])) for user, (kind, _, _) in VALUES.items()]
    schema = pa.schema([("user", pa.string()), ("at_ms", pa.int64()), *structs])
    aggregates = "\n".join(f'newest_{number} = "last(value_{number})"' for number in range(len(VALUES)))
    definition = clicks(tmp_path, 0, DEFINITION.replace('newest = "last(value)"', aggregates))
    newest = {user: column.replace("value", "newest") for user, column in columns.items()}

    def values(user: str, *, repaired: bool) -> dict[str, Any]:
        return {columns[of]: {"of": VALUES[of][2 if repaired and of == user else 1]} for of in VALUES}

    def written(number: int, *, repaired: bool) -> None:
        times = (START_MS, START_MS + 30 * MINUTE_MS)  # the second fires the session of the first
        rows = [{"user": user, "at_ms": at_ms, **values(user, repaired=repaired)} for user in VALUES for at_ms in times]
        os.utime(arrive(tmp_path, 1, rows, schema), ns=(number, number))

    written(1, repaired=False)
    advance(definition, lambda: spark, clock=clock)
    written(2, repaired=True)
    whole = Rerun(START_MS, START_MS + 60 * MINUTE_MS, "repaired", "ann")
    advance(definition, lambda: spark, clock=clock, rerun=whole)
    shown = {row["user"]: row for row in read_table(definition, "results").to_pylist()}
    assert {user: shown[user][newest[user]] for user in VALUES} == {
        user: {"of": after} for user, (_, _, after) in VALUES.items()
    }
    changed = [row for row in read_table(definition, "result_changes").to_pylist() if row["batch_id"] == 2]
    assert sorted((row["user"], row["change"]) for row in changed) == sorted((user, "changed") for user in VALUES)
    assert not verify(definition, VerifyRequest(), spark, clock).differs
