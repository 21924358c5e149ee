"""Calendar windows from files to results, late events, reruns, `verify` and `explain`, across changes of the clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, arrive, clicks
from tests.support.zones import assert_local_times, local_time
from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of, utc
from windowlib.inspection.late.what_if import what_if
from windowlib.inspection.lineage.cuts import cut
from windowlib.inspection.lineage.explain_window import explain_window
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.both]

HOUR_MS = 3_600_000
CHANGES = {
    "Europe/Berlin": datetime(2026, 3, 29, 1, tzinfo=UTC),
    "Australia/Lord_Howe": datetime(2026, 4, 4, 15, tzinfo=UTC),  # by half an hour
    "America/St_Johns": datetime(2006, 10, 29, 2, 31, tzinfo=UTC),  # from 00:01 to the day before
    "Pacific/Apia": datetime(2011, 12, 30, 10, tzinfo=UTC),  # 2011-12-30 is skipped
    "Africa/Monrovia": datetime(1972, 1, 7, 0, 44, 30, tzinfo=UTC),  # the offset had seconds before
}
KINDS = {
    "tumbling": 'type = "tumbling"\nevery = "1 day"',
    "hourly": 'type = "tumbling"\nevery = "1 hour"',
    "sliding": 'type = "sliding"\nsize = "2 days"\nevery = "1 day"',
    "cumulating": 'type = "cumulating"\nmax_size = "1 day"\nstep = "6 hours"',
    "processing": 'type = "tumbling"\nevery = "1 day"\ntime = "processing"',
    "general": 'type = "tumbling"\nevery = "1 day"\ntrigger = { type = "count", n = 30 }',
}
CASES = (
    *(("Europe/Berlin", kind) for kind in KINDS if kind != "processing"),
    *((zone, "tumbling") for zone in ("Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia", "Africa/Monrovia")),
)


def pipeline(folder: Path, zone: str, kind: str) -> Definition:
    """A pipeline of events of each half hour, from two days before a change of the clock to two days after it.

    The second file has an event from before the change that is in time. That of the third file is too late.
    """
    head, _, _ = CLICKS.partition("[window]")
    lateness = "" if kind == "processing" else 'allowed_lateness = "2h"'
    window = f'{KINDS[kind]}\ntime_zone = "{zone}"\n{lateness}'
    definition = clicks(folder, 0, f'{head}[window]\n{window}\n[aggregates]\nclicks = "count(*)"\n')
    times = times_of(zone)
    late_ms = times[0] if kind == "sliding" else change_ms(zone) - HOUR_MS
    for number, times_ms in enumerate(([*times[:104]], [*times[104:], times[103] - 1], [late_ms + 1]), start=1):
        rows = [{"id": f"{at_ms}", "user": "ann", "at_ms": at_ms, "value": 1} for at_ms in times_ms]
        arrive(folder, number, rows)
    return definition


def change_ms(zone: str) -> int:
    return time_of(CHANGES[zone])


def times_of(zone: str) -> range:
    return range(change_ms(zone) - 48 * HOUR_MS, change_ms(zone) + 48 * HOUR_MS, HOUR_MS // 2)


def days_after(zone: str) -> int:
    return change_ms(zone) + 10 * 24 * HOUR_MS


def rows_of(definition: Definition) -> list[dict[str, Any]]:
    return sorted(
        read_table(definition, "results").to_pylist(), key=lambda row: (row["window_start"], row["window_end"])
    )


@pytest.mark.parametrize(("zone", "kind"), CASES)
def test_results_have_local_times_across_a_clock_change(
    spark: SparkSession, tmp_path: Path, zone: str, kind: str
) -> None:
    definition = pipeline(tmp_path, zone, kind)

    def clock() -> int:
        return days_after(zone)

    advance(definition, lambda: spark, clock=clock)
    for table in ("results", "result_changes"):
        assert_local_times(read_table(definition, table).to_pylist(), zone)
    rows = rows_of(definition)
    assert len({row[bound][19:] for row in rows for bound in ("window_start_local", "window_end_local")}) > 1
    if kind == "tumbling":
        assert [(row["window_start"], row["clicks"]) for row in rows] == by_date(zone)[: len(rows)]
    if kind == "general":
        return
    assert verify(definition, VerifyRequest(), spark, clock).differences == []
    late = read_table(definition, "late_events").to_pylist()
    [longer] = what_if(cut(definition), [7 * 24 * HOUR_MS]).rows
    assert (len(late), longer.events) == (1, 1)
    span = late[0]["window_start"], late[0]["window_end"]
    advance(definition, lambda: spark, clock=clock, rerun=Rerun(*map(time_of, span), "a till", "ann"))
    after = rows_of(definition)
    assert sum(row["clicks"] for row in after) > sum(row["clicks"] for row in rows)
    assert_local_times(after, zone)
    assert_local_times(read_table(definition, "result_changes").to_pylist(), zone)
    assert verify(definition, VerifyRequest(), spark, clock).differences == []
    assert_explained(definition, after, time_of(late[0]["event_time"]))


def test_windows_of_processing_time_have_local_times(spark: SparkSession, tmp_path: Path) -> None:
    """Their bounds are around the times of the runs, far from the event times."""
    zone, now_ms = "Europe/Berlin", [change_ms("Europe/Berlin") - HOUR_MS]
    definition = pipeline(tmp_path, zone, "processing")
    (tmp_path / "incoming" / "3.parquet").unlink()
    for _ in range(2):
        advance(definition, lambda: spark, clock=lambda: now_ms[0])
        now_ms[0] += 48 * HOUR_MS
        arrive(tmp_path, 3, [{"id": "last", "user": "ann", "at_ms": now_ms[0], "value": 1}])
    [row] = rows_of(definition)
    assert_local_times([row], zone)
    assert row["window_start"] < CHANGES[zone] < row["window_end"]
    assert [row[bound][19:] for bound in ("window_start_local", "window_end_local")] == ["+01:00", "+02:00"]


def by_date(zone: str) -> list[tuple[datetime, int]]:
    """First instant of each date in a zone, with its events. A date lasts until the clock first shows a later one."""
    events = Counter((*times_of(zone), times_of(zone)[103] - 1))
    starts, counts, newest = list[datetime](), Counter[date](), date.min
    for at_ms in sorted({*events, *range(times_of(zone)[0] - 24 * HOUR_MS, times_of(zone)[-1], 30_000)}):
        shown = local_time(at_ms, zone).date()
        if shown > newest:
            newest = shown
            starts.append(utc(at_ms))
        counts[newest] += events[at_ms]
    return [(start, count) for start, count in zip(starts, counts.values(), strict=True) if count]


def assert_explained(definition: Definition, rows: Iterable[Mapping[str, Any]], at_ms: int) -> None:
    """All windows around a time are explained, with the rows of `results` and the events of each."""
    windows = explain_window(definition, ["ann"], at_ms).windows
    around = [row for row in rows if time_of(row["window_start"]) <= at_ms < time_of(row["window_end"])]
    assert [window.bounds_ms for window in windows if window.published] == [
        (time_of(row["window_start"]), time_of(row["window_end"])) for row in around
    ]
    for window, row in zip((window for window in windows if window.published), around, strict=True):
        assert [published["values"] for published in window.published] == [{"clicks": row["clicks"]}]
        assert len(window.events) == row["clicks"]
