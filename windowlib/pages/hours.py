"""Events and results by hour of event time, to show hours without results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of
from windowlib.delta.data_files import DataFile
from windowlib.delta.statistics import overlapping, overlapping_ms
from windowlib.delta.tables import Tables
from windowlib.model.calendar import Calendar
from windowlib.model.geometry import geometry_of
from windowlib.model.rerun import TimeRange
from windowlib.model.spec import WindowSpec
from windowlib.pages.counts.hour_counts import HourCounts, counts, hour_count_cache, numbers, times_ms
from windowlib.pages.gaps import must_have_ended, notes, step_ms
from windowlib.pages.local_hours import hours_in, page_zone, zone_terms
from windowlib.pages.newest_rows import RecentRun
from windowlib.storage.object_file import opened

HOURS = 72
STARTS = ("window_start_ms", "state_window_start_ms")  # columns of windows, otherwise of slices
ENDS = tuple(start.replace("start", "end") for start in STARTS)
MOST_ROWS = 3_000_000  # rows of results that are read; with more rows, fewer hours are shown


@dataclass(frozen=True, slots=True)
class ByHour:
    """Windows and their events by the hour of their start, and all further hours in which these windows have events."""

    rows: Counter[int] = field(default_factory=Counter)
    events: Counter[int] = field(default_factory=Counter)
    reached: list[tuple[int, int]] = field(default_factory=list)

    def __contains__(self, hour_ms: int) -> bool:
        return bool(self.rows[hour_ms]) or any(first_ms <= hour_ms < end_ms for first_ms, end_ms in self.reached)

    @classmethod
    def of(cls, files: Iterable[HourCounts], span: TimeRange) -> ByHour:
        """Counts of files together. Hours in which windows have events are those near the span."""
        by_hour = cls()
        for file in files:
            for hour_ms, windows, events in file.hours:
                by_hour.rows[hour_ms] += windows
                by_hour.events[hour_ms] += events
            by_hour.reached.extend(
                reached for reached in file.reached if reached[0] < span.to_ms and span.from_ms < reached[1]
            )
        return by_hour


@dataclass(frozen=True, slots=True)
class CountingRule:
    """Rule for counting windows. `counted` is the output with the number of events of a window, or None.

    `gap_ms` is the gap of sessions; None for other windows and if gaps in the results are unknown.
    Sessions with a gap below an hour have an event in every hour up to their last event.
    """

    tables: Tables
    zone: str
    counted: str | None
    gap_ms: int | None

    @classmethod
    def of(cls, definition: Definition, tables: Tables) -> CountingRule:
        """Rule for a pipeline."""
        geometry = geometry_of(definition.spec.assigner)
        gap_ms = geometry.longest_ms if geometry.merges and step_ms(definition.spec) is not None else None
        return cls(tables, page_zone(definition), count_column(definition), gap_ms)

    @property
    def terms(self) -> str:
        """Key of the stored counts: everything that they depend on, except the file."""
        return f"2 {zone_terms(self.zone)} {self.gap_ms} {self.counted}"

    @property
    def hours(self) -> Calendar:
        return hours_in(self.zone)

    def results(self, file: DataFile) -> HourCounts:
        """Counts the results in a file. Reads window ends only if windows may extend to an hour without a start."""
        stored = self._opened("results", file)
        data = stored.read(columns=["window_start", *([self.counted] if self.counted else [])])
        has_start = pc.is_valid(data["window_start"]) if data["window_start"].null_count else None
        data = data if has_start is None else data.filter(has_start)
        events = numbers(data[self.counted].fill_null(0)) if self.counted else np.zeros(data.num_rows, np.int64)
        start_ms = times_ms(data["window_start"])
        by_start = counts(self.hours, start_ms, events)
        if self.gap_ms is None or not by_start.hours or self._reaches_no_other_hour(file, by_start):
            return by_start
        end = stored.read(columns=["window_end"])["window_end"]
        return counts(
            self.hours, start_ms, events, times_ms(end if has_start is None else end.filter(has_start)) - self.gap_ms
        )

    def _reaches_no_other_hour(self, file: DataFile, by_start: HourCounts) -> bool:
        """Tests by statistics if a window starts in every hour from a file's first window to its last event."""
        if self.gap_ms is None or "window_end" not in file.high:
            return False
        started = {hour_ms for hour_ms, *_ in by_start.hours}
        last_ms = time_of(file.high["window_end"]) - self.gap_ms
        numbers = range(self.hours.number(min(started)), self.hours.number(last_ms) + 1)
        return len(started) >= len(numbers) and started.issuperset(map(self.hours.edge_ms, numbers))

    def in_flight(self, watermark_ms: int | None, file: DataFile) -> HourCounts:
        """Counts the windows, or slices, that the watermark has not passed. These windows are not in `results`."""
        stored = self._opened("open_windows", file)
        names = stored.schema_arrow.names
        start = next((name for name in STARTS if name in names), None)
        if start is None or "elements" not in names:
            return HourCounts()
        end = start.replace("start", "end")
        data = stored.read(columns=[start, end, "elements"])
        if watermark_ms is not None:
            data = data.filter(pc.greater(data[end], pa.scalar(watermark_ms + 1, pa.int64())))
        data = data.filter(pc.is_valid(data[start]))
        events = numbers(data["elements"].fill_null(0))
        last_ms = None if self.gap_ms is None else numbers(data[end]) - self.gap_ms
        return counts(self.hours, numbers(data[start]), events, last_ms)

    def late(self, file: DataFile) -> HourCounts:
        """Counts the late events in a file that no rerun has readmitted."""
        data = self._opened("late_events", file).read(columns=["event_time", "readmitted_by"])
        data = data.filter(pc.and_(pc.is_null(data["readmitted_by"]), pc.is_valid(data["event_time"])))
        return counts(self.hours, times_ms(data["event_time"]), np.zeros(data.num_rows, np.int64))

    def _opened(self, table: str, file: DataFile) -> pq.ParquetFile:
        return pq.ParquetFile(opened(self.tables[table].store, file.path, file.size_bytes))


@dataclass(frozen=True, slots=True)
class Hour:
    """An hour of event time, with the windows that start in it.

    results:   rows of results
    events:    events in these results; None if unknown, because no aggregate is `count(*)` or windows overlap
    in_flight: events in windows that have not fired; None if unknown, as for `events`
    late:      late events that no rerun has readmitted
    is_gap:    no window starts in the hour or has events in it, although one must have (`windowlib.pages.gaps`)
    zone:      time zone of the hours
    """

    start_ms: int
    results: int
    events: int | None
    in_flight: int | None
    late: int
    is_gap: bool = False
    zone: str = "UTC"

    @property
    def end_ms(self) -> int:
        return hours_in(self.zone).next_ms(self.start_ms)


def hours(definition: Definition, tables: Tables, runs: Sequence[RecentRun], *, keep: bool = False) -> list[Hour]:
    """Newest hours, oldest first; none before the first event, or if windows have no bounds in time.

    With `keep`, the counts of each file are stored for the next page.
    """
    newest_ms = newest_event_ms(runs)
    if newest_ms is None or not definition.plan.windows_end:
        return []
    counting = CountingRule.of(definition, tables)
    zone, calendar = counting.zone, counting.hours
    versions, watermark_ms = runs[0].versions, runs[0].watermark_out_ms
    files = {name: tables[name].files(versions.get(name)) for name in ("results", "late_events", "open_windows")}
    span, chosen = _span(files["results"], calendar, calendar.number(newest_ms) + 1)
    cache = hour_count_cache(definition.store, counting.terms)
    published = ByHour.of(cache.of_all({f"results/{file.path}": file for file in chosen}, counting.results), span)
    state = {
        f"open_windows/{file.path}{'' if _is_ahead(file, watermark_ms) else f' {watermark_ms}'}": file
        for file in files["open_windows"]
        if _may_start_in(file, span)
    }
    in_flight = ByHour.of(cache.of_all(state, partial(counting.in_flight, watermark_ms)), span)
    events = overlapping(files["late_events"], "event_time", "event_time", span)
    late = ByHour.of(cache.of_all({f"late_events/{file.path}": file for file in events}, counting.late), span)
    if keep:
        cache.write()
    starts = [calendar.edge_ms(n) for n in range(calendar.number(span.from_ms), calendar.number(span.to_ms - 1) + 1)]
    begun = next((at for at, hour in enumerate(starts) if hour in published or hour in in_flight), len(starts))
    return [
        Hour(
            hour,
            published.rows[hour],
            published.events[hour] if counting.counted else None,
            in_flight.events[hour] if counting.counted else None,
            late.rows[hour],
            not (hour in published or hour in in_flight)
            and must_have_ended(definition.spec, hour, next_ms, watermark_ms),
            zone,
        )
        for hour, next_ms in [*pairwise([*starts, span.to_ms])][begun:]
    ]


def _may_start_in(state: DataFile, span: TimeRange) -> bool:
    """Tests if a file of state may have windows, or slices, that start in a span."""
    start = next((column for column in STARTS if column in state.low), STARTS[0])
    return bool(overlapping_ms([state], (start, start), span))


def _is_ahead(state: DataFile, watermark_ms: int | None) -> bool:
    """Tests if the watermark has passed no window in a file of state."""
    low = next((state.low[end] for end in ENDS if end in state.low), None)
    return watermark_ms is None or (low is not None and low > watermark_ms + 1)


def _span(results: Sequence[DataFile], hours: Calendar, end: int) -> tuple[TimeRange, Sequence[DataFile]]:
    """Range of the hours that are shown, up to the hour number `end`, and the files with windows that start in it."""
    for back in (HOURS, HOURS // 3, HOURS // 12):
        span = TimeRange(hours.edge_ms(end - back), hours.edge_ms(end))
        chosen = overlapping(results, "window_start", "window_start", span)
        if sum(file.rows for file in chosen) <= MOST_ROWS:
            break
    return span, chosen


def newest_event_ms(runs: Sequence[RecentRun]) -> int | None:
    """Newest event time that the batches have admitted; None if they admitted none."""
    newest = (run.figures.get("newest_event_ms") for run in runs)
    return max((time_ms for time_ms in newest if time_ms is not None), default=None)


def hour_notes(definition: Definition) -> Iterator[str]:
    """Sentences that explain the hours."""
    counts = count_column(definition) is not None
    return notes(definition.spec, counts_events=counts, overlaps=windows_overlap(definition.spec))


def windows_overlap(spec: WindowSpec) -> bool:
    """Tests if an event may be in several windows, or in none. Unknown windows may overlap."""
    geometry = geometry_of(spec.assigner)
    return geometry.most_windows != 1 or geometry.has_holes is not False


def count_column(definition: Definition) -> str | None:
    """NumericOutput with the number of events of each window; None if an event may be in several windows or in none."""
    if windows_overlap(definition.spec):
        return None
    plain = {name: expression.replace(" ", "").lower() for name, expression in definition.expressions.items()}
    return next(
        (name for name, expression in plain.items() if expression == "count(*)" and name not in definition.added), None
    )
