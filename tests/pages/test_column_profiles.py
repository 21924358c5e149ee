"""Profiles of result columns equal the rows of `results`, are on the page, and leave out hidden columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks, clock
from windowlib.pages.pipeline import pipeline
from windowlib.pages.pipeline_state import observe_pipeline
from windowlib.pages.site import report
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

PRICE = 'price = "sum(cast(value as decimal(20,2)) + 123456789012345678.25)"\n'  # more digits than a double has
DAY_MS = 24 * 60 * MINUTE_MS


@pytest.mark.spark
@pytest.mark.both
def test_profiles_equal_the_rows_of_each_day_and_batch(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, f'{CLICKS}{PRICE}[pages]\nhide = ["user"]\n')
    for number in range(4):
        at_ms = START_MS + number * DAY_MS
        events = [
            {"id": f"{number}-{row}", "user": f"u{row}", "at_ms": at_ms, "value": None if row == number else row - 1}
            for row in range(3)
        ]
        arrive(tmp_path, number + 1, events)
        advance(definition, lambda: spark, clock=clock)
    profiles = pipeline(observe_pipeline(definition, clock())).profiles
    assert [profile.name for profile in profiles] == ["clicks", "total", "first", "price"]
    rows = read_table(definition, "results").to_pylist()
    for profile in profiles:
        days = [(day.day, day.rows, day.nulls, day.low, day.mean, day.high) for day in profile.days]
        assert days == _by_day(rows, profile.name)
        assert profile.distinct == _by_batch(rows, profile.name)


def _by_day(rows: Sequence[Mapping[str, Any]], column: str) -> list[tuple[object, ...]]:
    counted = list[tuple[object, ...]]()
    for day in sorted({row["window_day"] for row in rows}):
        values = [row[column] for row in rows if row["window_day"] == day]
        known = [value for value in values if value is not None]
        mean = pytest.approx(float(sum(known)) / len(known))
        counted.append((day, len(values), values.count(None), min(known), mean, max(known)))
    return counted


def _by_batch(rows: Sequence[Mapping[str, Any]], column: str) -> list[int]:
    batches = sorted({row["batch_id"] for row in rows})
    return [len({row[column] for row in rows if row["batch_id"] == batch} - {None}) for batch in batches]


@pytest.mark.spark
@pytest.mark.both
def test_the_page_shows_extremes_of_decimals_with_all_digits_and_distinct_values_by_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    definition = clicks(tmp_path, 1, CLICKS + PRICE)
    advance(definition, lambda: spark, clock=clock)
    page = Path(report(definition, clock())).read_text(encoding="utf-8")
    table = page.partition("<h3>Columns of the results</h3>")[2].partition("</table>")[0]
    rows = read_table(definition, "results").to_pylist()
    last_day = max(row["window_day"] for row in rows)
    prices = [row["price"] for row in rows if row["window_day"] == last_day]
    assert "distinct, by batch</th>" in table
    cells = {row.partition("</th>")[0]: re.findall(r'<td class="n">([^<]*)', row) for row in table.split('"row">')[1:]}
    assert cells["price"][2:5:2] == [f"{min(prices):,}", f"{max(prices):,}"]
    assert cells["user"] == [f"{len(prices)}", "0.0 %", "–", "–", "–", f"{len({row['user'] for row in rows})}"]
