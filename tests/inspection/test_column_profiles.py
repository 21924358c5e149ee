"""Profiles of result columns equal the rows of `results`, are on the page, and leave out hidden columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks, clock
from windowlib.batches.planning import ledger_of
from windowlib.inspection.column_profiles import ColumnProfile, column_profiles
from windowlib.pages.site import report
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

DAY_MS = 24 * 60 * MINUTE_MS


@pytest.mark.spark
@pytest.mark.both
def test_profiles_equal_the_rows_of_each_day(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, f'{CLICKS}[pages]\nhide = ["user"]\n')
    for number in range(4):
        at_ms = START_MS + number * DAY_MS
        events = [
            {"id": f"{number}-{row}", "user": f"u{row}", "at_ms": at_ms, "value": None if row == number else row - 1}
            for row in range(3)
        ]
        arrive(tmp_path, number + 1, events)
        advance(definition, lambda: spark, clock=clock)
    state, tables = ledger_of(definition).state(), ledger_of(definition).tables
    profiles = column_profiles(["user", "total"], definition.hidden, tables["results"].files(state.pinned("results")))
    assert [profile.name for profile in profiles] == ["total"]
    assert _figures(profiles[0]) == _counted(read_table(definition, "results").to_pylist())
    page = Path(report(definition, clock())).read_text(encoding="utf-8")
    assert "Columns of the results, by day" in page


def _figures(profile: ColumnProfile) -> list[tuple[object, ...]]:
    return [(day.day, day.rows, day.nulls, day.low, day.high) for day in profile.days]


def _counted(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    counted = list[tuple[object, ...]]()
    for day in sorted({row["window_day"] for row in rows}, key=str):
        totals = [row["total"] for row in rows if row["window_day"] == day]
        known = [float(str(total)) for total in totals if total is not None]
        counted.append((day, len(totals), totals.count(None), min(known), max(known)))
    return counted
