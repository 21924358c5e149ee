"""Distinct values of result columns are counted among the rows that a batch or a rerun adds or changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, MORE, START_MS, arrive, clicks, clock, without
from windowlib.batches.result_columns import column_counts
from windowlib.definition.definition import Definition
from windowlib.definition.toml.column_tests import DISTINCT
from windowlib.ledger.ledger import Rejected
from windowlib.ledger.rerun_request import Rerun
from windowlib.runs.advance import advance

LISTED = without(CLICKS, *MORE[:1], *MORE[3:]) + 'values = "collect_list(value)"\nmean = "avg(value)"\n'
COUNTED = ("user", "clicks", "total", "mean")
SUITE = """{"expectations": [{"type": "expect_column_max_to_be_between",
 "kwargs": {"column": "columns.user.distinct", "min_value": 3}, "severity": "critical", "description": "Three users."}]}
"""


def rows(*of: tuple[str, int, int | None]) -> list[dict[str, Any]]:
    """Events: user, minute, value."""
    return [
        {"id": f"{user}{minute}", "user": user, "at_ms": START_MS + minute * MINUTE_MS, "value": value}
        for user, minute, value in of
    ]


def run(definition: Definition, spark: SparkSession, rerun: Rerun | None = None) -> list[int]:
    """Runs a batch, and returns the distinct values of the columns `COUNTED`. Lists of `values` have no count."""
    [report] = advance(definition, lambda: spark, clock=clock, rerun=rerun)
    found = {name: value for name, value in report.figures.items() if name.endswith(DISTINCT)}
    assert not found.pop("columns.values.distinct", None)
    return [found.pop(f"columns.{name}.distinct") for name in COUNTED if f"columns.{name}.distinct" in found]


@pytest.mark.spark
@pytest.mark.both
@pytest.mark.parametrize("evictor", ["", 'evictor = { type = "count", n = 1000 }\n'], ids=["native", "general"])
def test_distinct_values_of_added_and_changed_rows_are_counted(
    spark: SparkSession, tmp_path: Path, evictor: str
) -> None:
    text = LISTED.replace('gap = "10m"\n', f'gap = "10m"\n{evictor}')
    definition = clicks(tmp_path, 0, text)
    arrive(tmp_path, 1, rows(("ann", 0, 5), ("bob", 0, 5), ("cleo", 0, None), ("bob", 60, 0)))
    assert run(definition, spark) == [3, 1, 1, 1]
    arrive(tmp_path, 2, rows(("bob", 1, 7), ("bob", 120, 0)))
    late = run(definition, spark)
    assert late[0] == 1  # the rows of ann and cleo are in the same file
    if evictor:
        return  # a general plan has no reruns of a range
    arrive(tmp_path, 1, rows(("ann", 0, 6), ("bob", 0, 5), ("cleo", 0, 2), ("bob", 60, 0)))
    whole = Rerun(START_MS, START_MS + 61 * MINUTE_MS, "repaired", "ann")
    assert run(definition, spark, whole) == [2, 1, 2, 2]
    assert run(definition, spark, whole) == [0, 0, 0, 0]  # it changes nothing


@pytest.mark.spark
@pytest.mark.embedded
def test_hidden_columns_and_too_many_values_have_no_count(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = '[checks.columns]\nuser = { unique = true, severity = "info" }\n[pages]\nhide = ["value"]\n'
    definition = clicks(tmp_path, 0, LISTED + rest)
    arrive(tmp_path, 1, rows(("ann", 0, 5), ("bob", 0, 5), ("bob", 60, 0)))
    monkeypatch.setattr(column_counts, "MOST_VALUES", 4)  # two rows of two visible columns
    assert run(definition, spark) == [2, 1]
    monkeypatch.setattr(column_counts, "MOST_VALUES", 3)
    arrive(tmp_path, 2, rows(("bob", 120, 0), ("cleo", 60, 1), ("bob", 180, 0)))
    assert run(definition, spark) == []


@pytest.mark.spark
@pytest.mark.embedded
def test_a_suite_judges_the_number_of_distinct_values(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "figures.json").write_text(SUITE)
    definition = clicks(tmp_path, 0, f'{LISTED}[checks]\nfigures_suite = "figures.json"\n')
    arrive(tmp_path, 1, rows(("ann", 0, 5), ("bob", 0, 5), ("bob", 60, 0)))
    with pytest.raises(Rejected, match=r"Three users. Expected at least 3, observed 2"):
        run(definition, spark)
