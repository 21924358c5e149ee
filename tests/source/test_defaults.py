"""Defaults lose no data: ids are remembered for long enough, and times from the future are refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks, clock
from windowlib.definition.definition import Definition
from windowlib.plans.admission import MAX_TIMESTAMP_MS
from windowlib.plans.partitions import DAY_MS
from windowlib.runs.advance import advance
from windowlib.tables.read import read_table

HOUR_MS = 60 * MINUTE_MS
WINDOW = 'type = "session"\ngap = "10m"\nallowed_lateness = "2h"'


def events(definition: Definition, spark: SparkSession, *files: Sequence[tuple[str, int]]) -> None:
    """Files of (event id, event time since the start), all of one user."""
    for number, rows in enumerate(files, 1):
        known = [{"id": i, "user": "u", "at_ms": START_MS + at_ms, "value": 1} for i, at_ms in rows]
        arrive(definition.file.parent, number, known)
    advance(definition, lambda: spark, clock=clock, finish=True)


def windows(definition: Definition) -> list[tuple[int, int]]:
    rows = read_table(definition, "results").to_pylist()
    return sorted((int(row["window_start"].timestamp() * 1000) - START_MS, row["clicks"]) for row in rows)


def refused(definition: Definition) -> list[str]:
    return sorted(row["reason"] for row in read_table(definition, "quarantine").to_pylist())


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.both
def test_an_id_that_comes_again_after_two_days_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, CLICKS.replace('allowed_lateness = "2h"', 'allowed_lateness = "7d"'))
    events(definition, spark, [("1", 0)], [("2", 2 * DAY_MS)], [("1", 0)], [("3", 2 * DAY_MS + HOUR_MS)])
    assert windows(definition) == [(0, 1), (2 * DAY_MS, 1), (2 * DAY_MS + HOUR_MS, 1)]
    assert refused(definition) == ["duplicate"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.both
def test_one_event_of_a_far_year_makes_no_other_event_late(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, CLICKS.replace('event_id = "id"\n', ""))
    far_ms = MAX_TIMESTAMP_MS - START_MS
    events(definition, spark, [("1", 0)], [("2", far_ms), ("3", HOUR_MS)], [("4", 2 * HOUR_MS)])
    assert windows(definition) == [(0, 1), (HOUR_MS, 1), (2 * HOUR_MS, 1)]
    assert refused(definition) == ["future"]
    assert read_table(definition, "late_events").num_rows == 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.both
def test_an_event_in_a_hole_moves_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    sliding = 'type = "sliding"\nsize = "10m"\nslide = "30m"'
    definition = clicks(tmp_path, 0, CLICKS.replace(WINDOW, sliding).replace('event_id = "id"\n', ""))
    for number, minute in ((1, 1), (2, 20), (3, 2)):
        row = {"id": "", "user": "u", "at_ms": START_MS + minute * MINUTE_MS, "value": 1}
        arrive(tmp_path, number, [row])
    advance(definition, lambda: spark, clock=clock)
    [watermark] = {
        row["applied_ms"] for row in read_table(definition, "watermarks").to_pylist() if row["batch_id"] == 2
    }
    assert watermark == START_MS + 15 * MINUTE_MS - 1
    assert (windows(definition), refused(definition)) == ([(0, 1)], ["hole"])
    assert read_table(definition, "late_events").num_rows == 1


@pytest.mark.parametrize(
    ("window", "horizon_ms"),
    [
        (WINDOW, DAY_MS),
        (WINDOW.replace("2h", "7d"), 7 * DAY_MS + 15 * MINUTE_MS),
        ('type = "tumbling"\nsize = "30d"', 30 * DAY_MS + 5 * MINUTE_MS),
        ('type = "sliding"\nsize = "20h"\nslide = "1h"\nallowed_lateness = "4h"', DAY_MS + 5 * MINUTE_MS),
        ('type = "tumbling_count"\nsize = 3', DAY_MS),
    ],
)
def test_ids_are_remembered_while_an_event_is_not_late(tmp_path: Path, window: str, horizon_ms: int) -> None:
    assert clicks(tmp_path, 0, CLICKS.replace(WINDOW, window)).dedup_horizon_ms == horizon_ms


def test_what_an_author_says_counts(tmp_path: Path) -> None:
    said = CLICKS.replace('event_id = "id"', 'event_id = "id"\ndedup_horizon = "1h"')
    assert clicks(tmp_path, 0, said).dedup_horizon_ms == HOUR_MS
