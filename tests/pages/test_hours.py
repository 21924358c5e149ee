"""Events and results by event hour: a gap is an hour in which a window should have been, and no other hour is one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import Schema

from docs.reference.on_disk import PARTS
from tests.support.clicks import CLICKS
from tests.support.disks import folder_of
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import utc
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files
from windowlib.delta.tables import Tables
from windowlib.pages.counts import hour_counts
from windowlib.pages.gaps import HOUR_MS, step_ms
from windowlib.pages.hours import CountingRule, Hour, hour_notes, hours
from windowlib.pages.local_hours import clock_words
from windowlib.pages.newest_rows import RecentRun
from windowlib.pages.plots.by_hour import days, gaps
from windowlib.storage.disk import Disk

KEYS = {part.where: {*part.keys} for part in PARTS}
DAY_MS, MINUTE_MS = 24 * HOUR_MS, 60_000
SESSION = 'type = "session"\ngap = "10m"'
DAYS = 'type = "tumbling"\nsize = "1d"'
SLIDING = 'type = "sliding"\nsize = "2h"\nslide = "1h"'


def definition(folder: Path, window: str, aggregates: str = 'clicks = "count(*)"') -> Definition:
    text = CLICKS.replace(SESSION, window)
    text = text.partition("[aggregates]")[0] + f"[aggregates]\n{aggregates}\n"
    (folder / "incoming").mkdir()
    (folder / "clicks.toml").write_text(text)
    return load_definition(folder / "clicks.toml").model_copy(update={"store": Disk(folder / "warehouse")})


def shown(
    made: Definition,
    watermark_ms: int,
    results: Sequence[tuple[int, int]],
    flying: Sequence[tuple[int, int]] = (),
    newest_ms: int = 50 * HOUR_MS,
) -> list[str]:
    """The gaps of a page, of results and windows in flight from start to end, an event each."""
    tables, stamp = Tables(made.store), pa.timestamp("us", tz="UTC")
    columns = [("window_start", stamp), ("window_end", stamp), *((name, pa.int64()) for name in made.outputs)]
    rows = [(utc(start), utc(end), *(1 for _ in made.outputs)) for start, end in results]
    versions = {"results": put(tables, "results", pa.schema(columns), rows)}
    bounds = [(name, pa.int64()) for name in ("window_start_ms", "window_end_ms", "elements")]
    versions["open_windows"] = put(tables, "open_windows", pa.schema(bounds), [(*one, 1) for one in flying])
    figures = {"newest_event_ms": newest_ms}
    run = RecentRun(1, 0, 0, 1.0, 1, watermark_ms, figures, versions)
    found = hours(made, tables, [run])
    step = step_ms(made.spec)
    assert step is not None or not any(hour.is_gap for hour in found)
    return gaps(found, step or HOUR_MS)


def put(tables: Tables, name: str, schema: pa.Schema, rows: Sequence[tuple[object, ...]]) -> int:
    table = tables[name]
    version = delta_commits.create(table, Schema.from_arrow(schema))
    data = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
    return delta_commits.commit(table, version, add=[data_files.write(table.store, data)]) if rows else version


def test_windows_of_a_day_have_no_gaps_within_the_day(tmp_path: Path) -> None:
    made = definition(tmp_path, DAYS)
    assert shown(made, 49 * HOUR_MS, [(0, DAY_MS), (DAY_MS, 2 * DAY_MS)], [(2 * DAY_MS, 3 * DAY_MS)]) == []


def test_a_day_without_a_result_is_one_gap(tmp_path: Path) -> None:
    made = definition(tmp_path, DAYS)
    found = shown(made, 49 * HOUR_MS, [(0, DAY_MS)], [(2 * DAY_MS, 3 * DAY_MS)])
    assert found == ["1970-01-02 00:00 to 1970-01-03 00:00"]


def test_a_day_of_a_calendar_without_a_result_is_a_gap_in_the_hour_in_which_it_starts(tmp_path: Path) -> None:
    made = definition(tmp_path, 'type = "tumbling"\nevery = "1 day"\ntime_zone = "Europe/Berlin"')
    before, missing, after = [(start * HOUR_MS, (start + 24) * HOUR_MS) for start in (-1, 23, 47)]
    assert shown(made, 49 * HOUR_MS, [before], [after]) == ["1970-01-02 00:00 to 01:00 +01:00"]
    (tmp_path / "whole").mkdir()
    made = definition(tmp_path / "whole", 'type = "tumbling"\nevery = "1 day"\ntime_zone = "Europe/Berlin"')
    assert shown(made, 49 * HOUR_MS, [before, missing], [after]) == []


AUTUMN_MS = 1_792_890_000_000  # 2026-10-25 02:00 +01:00 in Berlin, an hour after 02:00 +02:00
SPRING_MS = 1_774_746_000_000  # 2026-03-29 03:00 +02:00 in Berlin, after 01:00 +01:00
IN_BERLIN = 'type = "tumbling"\nevery = "1 hour"\ntime_zone = "Europe/Berlin"'
FIXED_HOURS = 'type = "tumbling"\nsize = "1h"'


@pytest.mark.parametrize("window", [IN_BERLIN, FIXED_HOURS])
@pytest.mark.parametrize(
    ("change_ms", "clock", "hours_of_day"),
    [
        (AUTUMN_MS, ["01:00 +02:00", "02:00 +02:00", "02:00 +01:00", "03:00 +01:00"], 25),
        (SPRING_MS, ["00:00 +01:00", "01:00 +01:00", "03:00 +02:00", "04:00 +02:00"], 23),
    ],
)
def test_hours_are_those_of_the_local_clock(
    tmp_path: Path, window: str, change_ms: int, clock: list[str], hours_of_day: int
) -> None:
    """Of the zone of the windows, otherwise of the pages. Both hours of a clock set back have their own bar."""
    made = definition(tmp_path, window)
    if window == FIXED_HOURS:
        made.file.write_text(f'{made.file.read_text()}[pages]\ntime_zone = "Europe/Berlin"\n')
        made = load_definition(made.file).model_copy(update={"store": made.store})
    starts = [change_ms + hour * HOUR_MS for hour in (-2, -1, 0, 1)]
    rows = [(start, start + HOUR_MS) for start in starts if start != change_ms]
    assert shown(made, change_ms + 2 * HOUR_MS, rows, newest_ms=starts[-1]) == [
        "2026-10-25 02:00 to 03:00 +01:00" if change_ms == AUTUMN_MS else "2026-03-29 03:00 to 04:00 +02:00"
    ]
    tables = Tables(made.store)
    found = hours(made, tables, [newest_run(tables, made, change_ms, newest_ms=starts[-1])])
    assert [(hour.start_ms, hour.results) for hour in found] == list(zip(starts, [1, 1, 0, 1], strict=True))
    assert [clock_words(hour.start_ms, hour.zone) for hour in found] == clock
    [day] = days(found)
    assert day.width == 10 * hours_of_day
    assert len({bar.x for bar in day.bars}) == 3
    assert [bar.title.partition(": ")[0] for bar in day.bars] == [clock[0], clock[1], clock[3]]


def test_hours_of_a_zone_begin_at_quarters_of_an_hour(tmp_path: Path) -> None:
    made = definition(tmp_path, IN_BERLIN.replace("Europe/Berlin", "Asia/Kathmandu").replace("1 hour", "15 minutes"))
    quarter_ms = 15 * MINUTE_MS  # since 1986 the clock is ahead by 5:45, and 5:30 before
    rows = [(start, start + quarter_ms) for start in range(AUTUMN_MS, AUTUMN_MS + HOUR_MS, quarter_ms)]
    shown(made, AUTUMN_MS + 2 * HOUR_MS, rows, newest_ms=rows[-1][0])
    tables = Tables(made.store)
    found = hours(made, tables, [newest_run(tables, made, AUTUMN_MS + 2 * HOUR_MS, newest_ms=rows[-1][0])])
    assert [(clock_words(hour.start_ms, hour.zone), hour.results) for hour in found] == [
        ("06:00 +05:45", 1),
        ("07:00 +05:45", 3),
    ]


@pytest.mark.parametrize(
    ("window", "aggregates"), [(SLIDING, 'clicks = "count(*)"'), ('type = "tumbling"\nsize = "1h"', 'n = "sum(value)"')]
)
def test_the_newest_hours_are_no_gaps_if_state_is_unknown(tmp_path: Path, window: str, aggregates: str) -> None:
    """Windows in flight are unknown, and windows beyond the watermark cannot have fired."""
    made = definition(tmp_path, window, aggregates)
    size_ms = 2 * HOUR_MS if window == SLIDING else HOUR_MS
    results = [(hour * HOUR_MS, hour * HOUR_MS + size_ms) for hour in range(40, 46) if hour != 43]
    assert shown(made, 46 * HOUR_MS + size_ms - 2, results) == ["1970-01-02 19:00 to 20:00"]
    (tmp_path / "other").mkdir()
    other = definition(tmp_path / "other", window, aggregates)
    assert shown(other, 46 * HOUR_MS + size_ms - 1, results)[1:] == ["1970-01-02 22:00 to 23:00"]


def test_an_hour_with_events_of_a_session_is_no_gap(tmp_path: Path) -> None:
    made = definition(tmp_path, SESSION)
    results = [(40 * HOUR_MS, 43 * HOUR_MS + 5 * MINUTE_MS), (45 * HOUR_MS, 46 * HOUR_MS)]
    assert shown(made, 50 * HOUR_MS, results, [(47 * HOUR_MS, 50 * HOUR_MS + 9 * MINUTE_MS)]) == [
        "1970-01-02 19:00 to 21:00",
        "1970-01-02 22:00 to 23:00",
    ]


def test_a_gap_is_shown_despite_late_events() -> None:
    [day] = days([Hour(0, 9, 9, 0, 0), Hour(HOUR_MS, 0, 0, 0, 9, is_gap=True)])
    _, gap, late = day.bars
    assert (gap.kind, late.kind) == ("gap", "late")
    assert late.y + late.height <= gap.y
    assert late.y >= 0
    assert "1 missing" in day.words


def test_sessions_with_a_gap_of_an_hour_have_no_gaps_and_the_page_says_so(tmp_path: Path) -> None:
    made = definition(tmp_path, 'type = "session"\ngap = "1h"')
    assert shown(made, 50 * HOUR_MS, [(40 * HOUR_MS, 41 * HOUR_MS), (48 * HOUR_MS, 49 * HOUR_MS)]) == []
    said = " ".join(hour_notes(made))
    assert "A session counts in the hour in which it starts, with all its events." in said
    assert "Gaps are not marked: with a gap of an hour or more" in said


@pytest.mark.parametrize(
    ("window", "aggregates", "said"),
    [
        (SLIDING, 'clicks = "count(*)"', "windows overlap, so an event is in several results"),
        (DAYS, 'n = "sum(value)"', "no aggregate is count(*)"),
        (DAYS, 'clicks = "count(*)"', "A result, and the events in it, count in the hour in which its window starts."),
    ],
)
def test_the_page_says_when_events_by_hour_are_not_known(
    tmp_path: Path, window: str, aggregates: str, said: str
) -> None:
    assert said in " ".join(hour_notes(definition(tmp_path, window, aggregates)))


def newest_run(tables: Tables, made: Definition, watermark_ms: int, newest_ms: int = 50 * HOUR_MS) -> RecentRun:
    versions = {name: tables[name].version() or 0 for name in ("results", "open_windows")}
    figures = {"newest_event_ms": newest_ms}
    return RecentRun(1, 0, 0, 1.0, 1, watermark_ms, figures, versions)


@pytest.mark.parametrize("damage", [None, "", "{}", '{"terms": 1}', "[1]"])
def test_a_file_is_counted_again_if_the_counts_are_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str | None
) -> None:
    made = definition(tmp_path, SESSION)
    results = [(40 * HOUR_MS, 43 * HOUR_MS + 5 * MINUTE_MS), (45 * HOUR_MS, 46 * HOUR_MS)]
    shown(made, 47 * HOUR_MS, results, [(47 * HOUR_MS, 50 * HOUR_MS + 9 * MINUTE_MS)])
    tables = Tables(made.store)
    run = newest_run(tables, made, 47 * HOUR_MS)
    first, kept = hours(made, tables, [run], keep=True), folder_of(made) / hour_counts.FILE
    assert json.loads(kept.read_text()).keys() == KEYS["pages/hours.json"]
    if damage is not None:
        kept.write_text(damage)
    counted: list[int] = []
    results, flying = CountingRule.results, CountingRule.in_flight
    monkeypatch.setattr(CountingRule, "results", lambda self, file: counted.append(file.rows) or results(self, file))
    monkeypatch.setattr(
        CountingRule, "in_flight", lambda self, at_ms, file: counted.append(file.rows) or flying(self, at_ms, file)
    )
    assert hours(made, tables, [run]) == first
    assert counted == ([] if damage is None else [2, 1])
    table = tables["results"]
    more = pa.Table.from_pylist([{"window_start": utc(48 * HOUR_MS), "window_end": utc(49 * HOUR_MS), "clicks": 7}])
    file = data_files.write(table.store, more)
    delta_commits.commit(table, run.versions["results"], add=[file])
    counted.clear()
    found = {hour.start_ms: hour.events for hour in hours(made, tables, [newest_run(tables, made, 47 * HOUR_MS)])}
    assert found[48 * HOUR_MS] == 7
    assert found[40 * HOUR_MS] == 1
    assert sorted(counted) == ([1] if damage is None else [1, 1, 2])


def test_counts_of_other_settings_are_ignored(tmp_path: Path) -> None:
    """Those of sessions with another gap reach other hours."""
    made = definition(tmp_path, SESSION)
    shown(made, 47 * HOUR_MS, [(40 * HOUR_MS, 43 * HOUR_MS + 5 * MINUTE_MS)])
    tables = Tables(made.store)
    run = newest_run(tables, made, 47 * HOUR_MS)
    fresh = hours(made, tables, [run], keep=True)
    text = made.file.read_text()
    made.file.write_text(text.replace('gap = "10m"', 'gap = "3m"'))
    other = load_definition(made.file).model_copy(update={"store": made.store})
    assert [hour.is_gap for hour in hours(other, tables, [run])][:4] == [False] * 4
    assert [hour.is_gap for hour in fresh][:4] == [False] * 3 + [True]


def test_windows_in_flight_passed_by_the_watermark_are_counted_again(tmp_path: Path) -> None:
    made = definition(tmp_path, SESSION)
    shown(made, 46 * HOUR_MS, [], [(47 * HOUR_MS, 48 * HOUR_MS), (49 * HOUR_MS, 50 * HOUR_MS)])
    tables = Tables(made.store)
    flying = [
        sum(hour.in_flight or 0 for hour in hours(made, tables, [newest_run(tables, made, passed)], keep=True))
        for passed in (46 * HOUR_MS, 48 * HOUR_MS, 47 * HOUR_MS, 50 * HOUR_MS)
    ]
    assert flying == [2, 1, 2, 0]


@pytest.mark.parametrize("starts", [range(40, 44), [40, 42, 43]])
def test_ends_of_results_are_read_only_if_needed(
    tmp_path: Path, starts: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = definition(tmp_path, SESSION)
    results = [(hour * HOUR_MS, hour * HOUR_MS + (75 if hour == 40 else 20) * MINUTE_MS) for hour in starts]
    read: list[list[str]] = []
    real = pq.ParquetFile.read
    monkeypatch.setattr(
        pq.ParquetFile, "read", lambda self, columns=None, **more: read.append(columns) or real(self, columns, **more)
    )
    assert shown(made, 45 * HOUR_MS, results) == []
    assert (["window_end"] in read) is (len(starts) == 3)
