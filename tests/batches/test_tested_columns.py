"""Rows that fail the tests of the definition are counted in batches, reruns and migrations, and hold a batch."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, MORE, START_MS, arrive, clicks, clock, without
from windowlib.batches.result_columns.column_counts import ColumnCounts
from windowlib.batches.result_columns.tested_columns import failing
from windowlib.decisions.verdicts import approve
from windowlib.definition.definition import Definition
from windowlib.definition.toml.column_tests import DISTINCT, ColumnTest
from windowlib.ledger.ledger import Rejected
from windowlib.ledger.rerun_request import Rerun
from windowlib.migrations.batch import MigrationRequest
from windowlib.migrations.shadow import NewTablesRefused
from windowlib.migrations.switch import build
from windowlib.model.errors import InvalidSpec
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

DOUBLES = pa.chunked_array([[0.0, -0.5, None], [float("nan"), 2.0]])
LARGE = 2**53
TESTS = """
[checks]
row_count = { min = 2, severity = "warning" }
[checks.columns]
total = { min = 0, max = 50, unique = true, severity = { max = "warning", unique = "info" } }
user = { in = ["ann", "bob", "cleo"], matches = "[a-z]+", not_null = true }
"""
TESTED = without(CLICKS, *MORE[:1], *MORE[3:]) + TESTS


def test(name: str, bound: Any) -> ColumnTest:
    return ColumnTest("value", name, bound, "critical")


test.__test__ = False  # type: ignore[attr-defined]  # not a test of pytest


@pytest.mark.parametrize(
    ("name", "bound", "column", "failed"),
    [
        ("min", 0, DOUBLES, 2),
        ("max", 0, DOUBLES, 2),
        ("not_null", True, DOUBLES, 1),
        ("in", [0, 2.0], DOUBLES, 2),
        ("min", 0.5, pa.chunked_array([[0, 1, None]]), 1),
        ("max", 1.5, pa.chunked_array([[1, 2]]), 1),
        ("min", LARGE + 1, pa.chunked_array([[LARGE, LARGE + 1]]), 1),
        ("min", 1e300, pa.chunked_array([[1, 2, None]]), 2),
        ("max", 1e300, pa.chunked_array([[1, 2, None]]), 0),
        ("in", [1, 2.5, 2**62], pa.chunked_array([pa.array([1, 2], pa.int32())]), 1),
        ("in", ["é"], pa.chunked_array([["é", "e", None]]), 1),
        ("in", [True], pa.chunked_array([[True, False]]), 1),
        ("matches", "a.b|[^x]", pa.chunked_array([["a\nb", "\n", "x", "a.bc", None]]), 2),
    ],
)
def test_rows_that_fail_are_counted(name: str, bound: Any, column: pa.ChunkedArray, failed: int) -> None:
    assert failing(test(name, bound), column) == failed


@pytest.mark.parametrize(
    ("bound", "failed"), [(0.3, 1), (0.305, 2), (-1e300, 0), (1e300, 3), (9_007_199_254_740_993, 3)]
)
def test_decimals_are_compared_exactly(bound: float, failed: int) -> None:
    values = [Decimal("0.30"), Decimal("0.29"), Decimal(LARGE), None]
    column = pa.chunked_array([pa.array(values, pa.decimal128(38, 2))])
    assert failing(test("min", bound), column) == failed
    assert failing(test("in", [0.3, 1e300]), column) == 2


def test_a_column_whose_type_the_test_cannot_judge_is_named() -> None:
    counts = ColumnCounts([test("min", 0)], [], [], ["value"])
    with pytest.raises(
        InvalidSpec, match=r"checks.columns.value.min: given 0, but the column is string; need a number"
    ):
        counts.add(pa.table({"value": ["a"]}), pa.table({}))


def test_an_output_that_the_results_do_not_have_yet_fails_nothing() -> None:
    counts = ColumnCounts([test("min", 0)], ["value", "other"], ["other"], ["other"])
    counts.add(pa.table({"other": ["a"]}), pa.table({}))
    assert counts.figures() == {"columns.value.min": 0, "columns.value.distinct": None, "columns.other.distinct": 1}


# -- in runs ----------------------------------------------------------------------------------------------------------


def rows(*of: tuple[str, int, int]) -> list[dict[str, Any]]:
    """Events: user, minute, value."""
    return [
        {"id": f"{user}{minute}", "user": user, "at_ms": START_MS + minute * MINUTE_MS, "value": value}
        for user, minute, value in of
    ]


def run(definition: Definition, spark: SparkSession, rerun: Rerun | None = None) -> dict[str, int]:
    """Runs a batch, and returns its counts of failed rows that are not 0, and of rows."""
    [report] = advance(definition, lambda: spark, clock=clock, rerun=rerun)
    return {
        name: value or 0
        for name, value in report.figures.items()
        if (name.startswith("columns.") and value and not name.endswith(DISTINCT)) or name == "row_count"
    }


@pytest.mark.spark
@pytest.mark.both
def test_a_failing_test_holds_the_batch_and_names_column_bound_and_rows(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, TESTED)
    arrive(tmp_path, 1, rows(("ann", 0, 5), ("bob", 0, 5), ("X", 0, -1), ("zoe", 120, 60)))
    with pytest.raises(Rejected) as raised:
        run(definition, spark)
    in_each_row = "in every row that the batch adds or changes. Expected 0, observed 1 of 3 rows."
    for sentence in (
        f"- `total` is at least 0 {in_each_row}",
        f'- `user` is one of "ann", "bob", "cleo" {in_each_row}',
        f'- `user` is a match of "[a-z]+" {in_each_row}',
    ):
        assert sentence in str(raised.value)
    assert "unique" not in str(raised.value)  # it is recorded only
    approve(definition, "ann", "a test of tests", clock)
    assert run(definition, spark) == {
        "row_count": 3,
        "columns.total.min": 1,
        "columns.total.unique": 2,
        "columns.user.in": 1,
        "columns.user.matches": 1,
    }
    judged = {row["sentence"].split("`")[1]: row for row in read_table(definition, "dq_results").to_pylist()
              if row["suite"] == "own_tests" and not row["success"] and row["severity"] == "info"}  # fmt: skip
    assert judged["total"]["observed"] == "2 of 3 rows"


@pytest.mark.spark
@pytest.mark.both
def test_changed_rows_of_late_events_and_reruns_are_judged_and_unchanged_rows_are_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    definition = clicks(tmp_path, 0, TESTED)
    arrive(tmp_path, 1, rows(("ann", 0, 51), ("bob", 0, 6), ("cleo", 0, 7), ("bob", 60, 0)))
    assert run(definition, spark) == {"row_count": 3, "columns.total.max": 1}
    arrive(tmp_path, 2, rows(("bob", 1, 70)))
    assert run(definition, spark) == {"row_count": 1, "columns.total.max": 1}  # ann's row is in the rewritten file too
    arrive(tmp_path, 1, rows(("ann", 0, 52), ("bob", 0, 6), ("cleo", 0, 7), ("bob", 60, 0)))
    whole = Rerun(START_MS, START_MS + 30 * MINUTE_MS, "repaired", "ann")
    assert run(definition, spark, whole) == {"row_count": 1, "columns.total.max": 1}
    assert run(definition, spark, whole) == {"row_count": 0}  # and its number of rows is not judged
    judged = [row for row in read_table(definition, "dq_results").to_pylist() if row["suite"] == "own_tests"]
    counted = {row["batch_id"]: row["success"] for row in judged if row["expectation"].endswith("(row_count)")}
    assert counted == {1: True, 2: False}


@pytest.mark.spark
@pytest.mark.embedded
def test_a_migration_counts_the_rows_that_fail(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, TESTED.replace("min = 0", "min = -9"))
    arrive(tmp_path, 1, rows(("ann", 0, 5), ("bob", 0, -5), ("cleo", 120, 60)))
    assert run(definition, spark) == {"row_count": 2}
    stricter = clicks(tmp_path, 0, TESTED.replace('gap = "10m"', 'gap = "20m"'))
    with pytest.raises(NewTablesRefused, match=r"`total` is at least 0 .* observed 1 of 2 rows"):
        build(stricter, lambda: spark, MigrationRequest("ann", "longer sessions", clock))
