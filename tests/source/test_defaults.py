"""Defaults lose no data: ids are remembered for long enough, and times from the future are refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks, clock
from windowlib.definition.definition import Definition
from windowlib.ledger.rerun_request import Rerun
from windowlib.plans.admission import MAX_TIMESTAMP_MS
from windowlib.plans.partitions import DAY_MS
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

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
@pytest.mark.embedded
@pytest.mark.long("one that comes again in a session of three days counts once too, in make test")
def test_an_id_repeated_after_two_days_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, CLICKS.replace('allowed_lateness = "2h"', 'allowed_lateness = "7d"'))
    events(definition, spark, [("1", 0)], [("2", 2 * DAY_MS)], [("1", 0), ("3", 2 * DAY_MS + HOUR_MS)])
    assert windows(definition) == [(0, 1), (2 * DAY_MS, 1), (2 * DAY_MS + HOUR_MS, 1)]
    assert refused(definition) == ["duplicate"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("a taxi trip of the year 2098, in make test, is refused and makes no other event late")
def test_an_event_of_a_far_year_makes_no_other_event_late(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, CLICKS.replace('event_id = "id"\n', ""))
    far_ms = MAX_TIMESTAMP_MS - START_MS
    events(definition, spark, [("1", 0), ("2", far_ms), ("3", HOUR_MS)], [("4", 2 * HOUR_MS)])
    assert windows(definition) == [(0, 1), (HOUR_MS, 1), (2 * HOUR_MS, 1)]
    assert refused(definition) == ["future"]
    assert read_table(definition, "late_events").num_rows == 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("random pipelines have windows with holes, and their watermarks, in make test")
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
        ('type = "tumbling_count"\nsize = 3', None),
        ('type = "session"\ngap_column = "value"', None),
        ('type = "tumbling"\nsize = "1h"\ntime = "processing"', None),
    ],
)
def test_ids_are_remembered_while_an_event_is_not_late(tmp_path: Path, window: str, horizon_ms: int | None) -> None:
    assert clicks(tmp_path, 0, CLICKS.replace(WINDOW, window)).dedup_horizon_ms == horizon_ms


def test_explicit_settings_override_defaults(tmp_path: Path) -> None:
    said = CLICKS.replace('event_id = "id"', 'event_id = "id"\ndedup_horizon = "1h"')
    assert clicks(tmp_path, 0, said).dedup_horizon_ms == HOUR_MS


def again(definition: Definition, spark: SparkSession, minutes: int, step: int) -> int:
    """Counts events of one key every `step` minutes for a period; the first event is repeated at the end."""
    rows = [(str(minute), minute * MINUTE_MS) for minute in range(0, minutes, step)]
    half = len(rows) // 2
    events(definition, spark, rows[:half], rows[half:], [rows[0], ("z", minutes * MINUTE_MS)])
    return len(rows) + 1


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize(
    "more",
    [
        "",
        pytest.param(
            '\nevictor = { type = "count", n = 1000 }',
            marks=pytest.mark.long("ids are refused before windows are made, which is in make test"),
        ),
    ],
)
def test_a_repeated_event_counts_once_in_a_session_of_days(spark: SparkSession, tmp_path: Path, more: str) -> None:
    window = f'type = "session"\ngap = "30m"{more}'
    definition = clicks(tmp_path, 0, CLICKS.replace(WINDOW, window))
    count = again(definition, spark, 3 * 24 * 60, 20)
    assert refused(definition) == ["duplicate"]
    assert windows(definition) == [(0, count)]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("how long ids are remembered, and that those of a long session are, is in make test")
@pytest.mark.parametrize(
    "window",
    [
        'type = "tumbling_count"\nsize = 2',
        'type = "session"\ngap_column = "value"',
    ],
)
def test_ids_are_kept_if_no_event_can_be_late(spark: SparkSession, tmp_path: Path, window: str) -> None:
    definition = clicks(tmp_path, 0, CLICKS.replace(WINDOW, window))
    again(definition, spark, 3 * 24 * 60, 600)
    assert refused(definition) == ["duplicate"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize(
    ("window", "late_only"),
    [
        (WINDOW, True),
        pytest.param(
            'type = "tumbling"\nsize = "10m"',
            False,
            marks=pytest.mark.long("a readmission, in make test, decides which of the two counts by the same rule"),
        ),
    ],
)
def test_a_repeated_late_event_is_readmitted_once(
    spark: SparkSession, tmp_path: Path, window: str, late_only: bool
) -> None:
    """The ids of the late event and of an event in time were forgotten before the repetition."""
    text = CLICKS.replace(WINDOW, window).replace('event_id = "id"', 'event_id = "id"\ndedup_horizon = "1h"')
    definition = clicks(tmp_path, 0, text)
    late, counted, hours = ("late", MINUTE_MS), ("counted", 0), [(str(n), n * HOUR_MS) for n in range(0, 30, 10)]
    events(definition, spark, [counted], [hours[1]], [late], [hours[2]], [late, counted])
    listed = [row["event_id"] for row in read_table(definition, "late_events").to_pylist()]
    assert sorted(listed) == ["counted", "late", "late"]
    rerun = Rerun(START_MS, START_MS + HOUR_MS, "", "ann", late_only=late_only)
    [report] = advance(definition, lambda: spark, clock=clock, rerun=rerun)
    assert windows(definition)[0] == (0, 2)
    assert report.figures["late_readmitted"] == 1
    readmitted = [row["readmitted_by"] for row in read_table(definition, "late_events").to_pylist()]
    assert sorted(readmitted, key=bool) == [None, None, report.batch_id]
