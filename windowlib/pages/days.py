"""Days of event time: if a day is final, its results and headline values, and their changes since a moment.

A day is final when the watermark has passed its last millisecond by the allowed lateness: only reruns and other
decisions change its results. A result belongs to the day of its window's last millisecond. A day begins at midnight of
the zone of `[pages] time_zone`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of
from windowlib.delta.data_files import DataFile
from windowlib.delta.statistics import overlapping
from windowlib.delta.tables import Tables
from windowlib.model.errors import WindowError
from windowlib.model.geometry import geometry_of
from windowlib.model.watermark import MAX_WATERMARK, MIN_WATERMARK
from windowlib.pages.count_cache import CountCache
from windowlib.pages.day_counts import (
    FILE,
    DayCalendar,
    DayCount,
    DayCounts,
    DayValue,
    Headline,
    Number,
    by_day,
    day_of,
    headline_of,
    merged,
    parsed,
    plain,
    start_ms,
)
from windowlib.pages.hour_counts import times_ms
from windowlib.pages.hours import newest_event_ms
from windowlib.pages.newest_rows import RUNS_SHOWN, Tail
from windowlib.storage.object_file import opened

SHOWN = 14  # days
MOST_ROWS = 3_000_000  # rows that are read of a table; with more results, fewer days are shown
OF_OPERATORS = ("rerun", "migrate", "forget")  # causes of changes that do not come from events


@dataclass(frozen=True, slots=True)
class Rework:
    """A batch that changed results of a day on request of an operator. `after_final`: the day was final before it."""

    batch_id: int
    after_final: bool


@dataclass(frozen=True, slots=True)
class Day:
    """A day of event time. `end_ms` is exclusive; `final_at_ms` is the watermark that makes the day final.

    * `values` are the headline values, in their order.
    * `results_before` and `values_before` are from the chosen moment; None if they are no longer known.
    * `late` counts late events that no rerun has readmitted, `refused` the quarantined rows with an event time in the
      day; None if there are too many to count.
    """

    day: date
    start_ms: int
    end_ms: int
    is_final: bool
    final_at_ms: int
    results: int
    values: Sequence[Number | None]
    results_before: int | None
    values_before: Sequence[Number | None]
    late: int | None
    refused: int | None
    reworks: Sequence[Rework]

    @property
    def was_reopened(self) -> bool:
        """Tests if results changed after the day was final."""
        return any(rework.after_final for rework in self.reworks)


@dataclass(frozen=True, slots=True)
class Days:
    """Days, newest first, or the reason why windows belong to no day.

    `final_ms` is the end of the results that only operators change (exclusive), None before the first event.
    `first_open` is the first day that is not final, `open_until_ms` the watermark that makes it final; None if there is
    no such day. `since_ms` is the moment with which results are compared.
    """

    zone: str
    final_ms: int | None
    since_ms: int
    headline: Sequence[Headline] = ()
    days: Sequence[Day] = ()
    first_open: date | None = None
    open_until_ms: int | None = None
    why_none: str | None = None

    @property
    def all_final(self) -> bool:
        """Tests if every window is past its cleanup time."""
        return self.final_ms == MAX_WATERMARK


@dataclass(frozen=True, slots=True)
class DayReader:
    """Counts the files of tables by day."""

    tables: Tables
    calendar: DayCalendar
    headline: Sequence[Headline]
    cache: CountCache[DayCounts]

    def results(self, files: Iterable[DataFile]) -> dict[date, DayCount]:
        """Results by the day of their last millisecond."""
        chosen = overlapping(files, "window_end", "window_end", self.calendar.span(1))
        return merged((self._counted("results", file, "window_end") for file in chosen), self.headline)

    def reworked(self, version: int | None) -> dict[date, DayCount]:
        """Changes of results that operators requested, by day, with their batches."""
        causes = pa.array(OF_OPERATORS)
        files = self.tables["result_changes"].files_where(version, lambda f: pc.is_in(f["partition.cause"], causes))
        chosen = overlapping(files, "window_end", "window_end", self.calendar.span(1))
        return merged(self._counted("result_changes", file, "window_end") for file in chosen)

    def events(self, table: str, files: Iterable[DataFile]) -> dict[date, DayCount] | None:
        """Rows of a table by the day of their event time; None if there are too many."""
        chosen = overlapping(files, "event_time", "event_time", self.calendar.span(0))
        if sum(file.rows for file in chosen) > MOST_ROWS:
            return None
        return merged(self._counted(table, file, "event_time") for file in chosen)

    def _counted(self, table: str, file: DataFile, time: str) -> DayCounts:
        return self.cache.of(f"{table}/{file.path}", partial(self._count, table, file, time))

    def _count(self, table: str, file: DataFile, time: str) -> DayCounts:
        """Counts the rows of a file by the day of a time. The end of a window counts in the day before it."""
        stored = pq.ParquetFile(opened(self.tables[table].store, file.path, file.size_bytes))
        further = {
            "results": [output.name for output in self.headline],
            "result_changes": ["batch_id"],
            "late_events": ["readmitted_by"],
        }.get(table, [])
        present = {*stored.schema_arrow.names}
        rows = stored.read(columns=[time, *(name for name in further if name in present)])
        rows = rows.filter(pc.is_valid(rows[time])) if rows[time].null_count else rows
        if table == "late_events":
            rows = rows.filter(pc.is_null(rows["readmitted_by"]))
        moments = times_ms(rows[time]) - (1 if time == "window_end" else 0)
        if not len(moments):
            return {}
        days = self.calendar.around(int(moments.min()), int(moments.max()))
        return by_day(days, moments, rows.drop_columns([time]), self.headline if table == "results" else ())


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of the tables by day. `before` has the results at the chosen moment, None if they are not known."""

    results: DayCounts
    before: DayCounts | None
    late: DayCounts | None
    refused: DayCounts | None
    reworked: DayCounts


def days(
    definition: Definition, tables: Tables, tail: Tail, final_ms: int | None, since_ms: int, *, keep: bool = False
) -> Days:
    """Newest days of event time. Their results are compared with those at `since_ms`.

    With `keep`, the counts of each file are stored for the next page.
    """
    zone = ZoneInfo(definition.pages.time_zone)
    if why := why_no_days(definition):
        return Days(zone.key, final_ms, since_ms, why_none=why)
    versions = tail.runs[0].versions if tail.runs else {}
    files = tables["results"].files(versions.get("results"))
    newest_ms = _newest_ms(files, newest_event_ms(tail.in_force[:RUNS_SHOWN]))
    if newest_ms is None:
        return Days(zone.key, final_ms, since_ms)
    first, last = _first_day(files, zone) or day_of(newest_ms, zone), day_of(newest_ms, zone)
    calendar = _calendar(files, first, last, zone)
    headline = headline_of(definition, tables, files)
    terms = " ".join(["1", zone.key, *(f"{output.name}:{output.combine}" for output in headline)])
    cache = CountCache[DayCounts].read(definition.store, FILE, terms, parsed, plain)
    reader = DayReader(tables, calendar, headline, cache)
    late, refused = (
        reader.events(name, tables[name].files(versions.get(name))) for name in ("late_events", "quarantine")
    )
    reworked = reader.reworked(versions.get("result_changes"))
    counted = Counted(reader.results(files), _before(reader, tail, since_ms), late, refused, reworked)
    if keep:
        cache.write()
    passed = {run.batch_id: run.watermark_out_ms for run in tail.runs}
    lateness_ms = definition.spec.allowed_lateness_ms
    oldest_first = [_day(reader, day, counted, passed, lateness_ms, final_ms) for day in calendar.days]
    first_open = _first_open(first, final_ms, zone)
    if first_open is None or first_open > last:
        return Days(zone.key, final_ms, since_ms, headline, oldest_first[::-1])
    open_until_ms = start_ms(first_open + timedelta(days=1), zone) - 1 + lateness_ms
    return Days(zone.key, final_ms, since_ms, headline, oldest_first[::-1], first_open, open_until_ms)


def _first_open(first: date, final_ms: int | None, zone: ZoneInfo) -> date | None:
    """First day that is not final, from the `first` day with a result; None if every day is final."""
    if final_ms == MAX_WATERMARK:
        return None
    return first if final_ms in (None, MIN_WATERMARK) else max(first, day_of(final_ms, zone))


def why_no_days(definition: Definition) -> str | None:
    """Reason why windows belong to no day of event time; None if they do."""
    spec = definition.spec
    if spec.time != "event":
        return "windows use processing time"
    if not definition.plan.windows_end or geometry_of(spec.assigner).ends is False:
        return "windows have no end in time"
    return None


def _newest_ms(files: Iterable[DataFile], newest_event_ms: int | None) -> int | None:
    """Newest millisecond of a result or an event; None before the first event."""
    ends = [time_of(end) - 1 for file in files if (end := file.high.get("window_end")) is not None]
    return max([*ends, *([] if newest_event_ms is None else [newest_event_ms])], default=None)


def _first_day(files: Sequence[DataFile], zone: ZoneInfo) -> date | None:
    """First day with a result; None if it is not known."""
    ends = [time_of(end) for file in files if (end := file.low.get("window_end")) is not None]
    return day_of(min(ends) - 1, zone) if len(ends) == len(files) > 0 else None


def _calendar(files: Sequence[DataFile], first: date, last: date, zone: ZoneInfo) -> DayCalendar:
    """Days that are shown. With very many results, these are fewer days."""
    calendar = DayCalendar.of(last, last, zone)
    for shown in (SHOWN, SHOWN // 2, 1):
        calendar = DayCalendar.of(max(first, last - timedelta(days=shown - 1)), last, zone)
        if sum(file.rows for file in overlapping(files, "window_end", "window_end", calendar.span(1))) <= MOST_ROWS:
            break
    return calendar


def _before(reader: DayReader, tail: Tail, since_ms: int) -> DayCounts | None:
    """Results at a moment; None if they are no longer known."""
    run = next((run for run in tail.runs if run.at_ms <= since_ms), None)
    if run is None:
        return {} if tail.is_whole else None
    try:
        return reader.results(reader.tables["results"].files(run.versions.get("results")))
    except (DeltaError, FileNotFoundError, WindowError):
        return None  # the log or the files were cleaned up


def _day(
    reader: DayReader,
    day: date,
    counted: Counted,
    passed: Mapping[int, int | None],
    lateness_ms: int,
    final_ms: int | None,
) -> Day:
    headline, (begin_ms, end_ms) = reader.headline, reader.calendar.bounds_ms(day)
    final_at_ms = end_ms - 1 + lateness_ms

    def values(counts: DayCounts) -> list[Number | None]:
        of_day = counts.get(day, DayCount()).values or [DayValue()] * len(headline)
        return [value.shown(output.combine) for value, output in zip(of_day, headline, strict=True)]

    def rows(counts: DayCounts | None) -> int | None:
        return None if counts is None else counts.get(day, DayCount()).rows

    batches = counted.reworked.get(day, DayCount()).batches
    return Day(
        day=day,
        start_ms=begin_ms,
        end_ms=end_ms,
        is_final=final_ms is not None and final_ms >= end_ms,
        final_at_ms=final_at_ms,
        results=rows(counted.results) or 0,
        values=values(counted.results),
        results_before=rows(counted.before),
        values_before=values(counted.before or {}),
        late=rows(counted.late),
        refused=rows(counted.refused),
        reworks=[Rework(batch, (passed.get(batch) or MIN_WATERMARK) >= final_at_ms) for batch in batches],
    )
