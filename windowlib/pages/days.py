"""Days of event time: if a day is final, its results and headline values, and their changes since a moment.

A day is final when the watermark has passed its last millisecond by the allowed lateness: only reruns and other
decisions change its results. A result belongs to the day of its window's last millisecond. A day begins at midnight of
the zone of the pages (`page_zone`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from deltalake.exceptions import DeltaError

from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of
from windowlib.delta.data_files import DataFile
from windowlib.delta.statistics import overlapping
from windowlib.delta.tables import Tables
from windowlib.model.errors import WindowError
from windowlib.model.geometry import geometry_of
from windowlib.model.watermark import MAX_WATERMARK, MIN_WATERMARK
from windowlib.pages.counts.count_cache import CountCache
from windowlib.pages.counts.row_counts import (
    FILE,
    DayCounts,
    HourCounts,
    NumericOutput,
    OutputValue,
    PeriodCount,
    by_day,
    day_of,
    merged,
    numeric_outputs,
    parsed,
    plain,
)
from windowlib.pages.counts.row_reader import MOST_ROWS, RowReader, ShownDays
from windowlib.pages.hours import newest_event_ms
from windowlib.pages.local_hours import hours_in, page_zone, zone_terms
from windowlib.pages.newest_rows import RUNS_SHOWN, Tail
from windowlib.reruns.totals import Number

SHOWN = 14  # days


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
class ResultHour:
    """Results whose windows end in an hour: their number, and the headline values, in their order."""

    start_ms: int
    is_final: bool
    results: int
    values: Sequence[Number | None]


@dataclass(frozen=True, slots=True)
class Days:
    """Days, newest first, or the reason why windows belong to no day.

    `final_ms` is the end of the results that only operators change (exclusive), None before the first event.
    `first_open` is the first day that is not final, `open_until_ms` the watermark that makes it final; None if there is
    no such day. `since_ms` is the moment with which results are compared. `hours` are the hours of these days, oldest
    first, from the first result to the newest. `values` has the numeric outputs by file of the results.
    """

    zone: str
    final_ms: int | None
    since_ms: int
    headline: Sequence[NumericOutput] = ()
    days: Sequence[Day] = ()
    hours: Sequence[ResultHour] = ()
    values: Mapping[str, Mapping[str, OutputValue]] = field(default_factory=dict)
    first_open: date | None = None
    open_until_ms: int | None = None
    why_none: str | None = None

    @property
    def all_final(self) -> bool:
        """Tests if every window is past its cleanup time."""
        return self.final_ms == MAX_WATERMARK


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of the tables by day, and of the results by hour. `before`, at the chosen moment, is None if not known."""

    headline: Sequence[NumericOutput]
    values: Mapping[str, Mapping[str, OutputValue]]
    by_hour: HourCounts
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
    zone = ZoneInfo(page_zone(definition))
    if why := why_no_days(definition):
        return Days(zone.key, final_ms, since_ms, why_none=why)
    versions = tail.runs[0].versions if tail.runs else {}
    files = tables["results"].files(versions.get("results"))
    newest_ms = _newest_ms(files, newest_event_ms(tail.in_force[:RUNS_SHOWN]))
    if newest_ms is None:
        return Days(zone.key, final_ms, since_ms)
    first, last = _first_day(files, zone) or day_of(newest_ms, zone), day_of(newest_ms, zone)
    outputs, in_headline = numeric_outputs(definition, tables, files)
    terms = " ".join(["2", zone_terms(zone.key), *(f"{output.name}:{output.combine}" for output in outputs)])
    cache = CountCache[HourCounts].read(definition.store, FILE, terms, parsed, plain)
    reader = RowReader(tables, _shown(files, first, last, zone), outputs, in_headline, cache)
    counted = _counted(reader, tail, files, since_ms)
    if keep:
        cache.write()
    passed = {run.batch_id: run.watermark_out_ms for run in tail.runs}
    lateness_ms = definition.spec.allowed_lateness_ms
    first_open = _first_open(first, last, final_ms, zone)
    return Days(
        zone=zone.key,
        final_ms=final_ms,
        since_ms=since_ms,
        headline=reader.headline,
        days=[_day(reader.shown, day, counted, passed, lateness_ms, final_ms) for day in reader.shown.days[::-1]],
        hours=[*_hours(reader.shown, counted, final_ms)],
        values=counted.values,
        first_open=first_open,
        open_until_ms=None if first_open is None else reader.shown.bounds_ms(first_open)[1] - 1 + lateness_ms,
    )


def _counted(reader: RowReader, tail: Tail, files: Sequence[DataFile], since_ms: int) -> Counted:
    """Counts the tables of the newest batch. `files` are those of its results."""
    tables, zone, versions = reader.tables, reader.shown.zone, tail.runs[0].versions if tail.runs else {}
    late, refused = (
        reader.events(name, tables[name].files(versions.get(name))) for name in ("late_events", "quarantine")
    )
    by_file, before = reader.results(files), _before(reader, tail, since_ms)
    results = merged(by_file.values())
    return Counted(
        headline=reader.headline,
        values={path: reader.values(counts) for path, counts in by_file.items()},
        by_hour=results,
        results=by_day(results, zone),
        before=None if before is None else by_day(before, zone),
        late=None if late is None else by_day(late, zone),
        refused=None if refused is None else by_day(refused, zone),
        reworked=by_day(reader.reworked(versions.get("result_changes")), zone),
    )


def _first_open(first: date, last: date, final_ms: int | None, zone: ZoneInfo) -> date | None:
    """First day from `first` to `last` that is not final; None if every day is final."""
    if final_ms == MAX_WATERMARK:
        return None
    day = first if final_ms in (None, MIN_WATERMARK) else max(first, day_of(final_ms, zone))
    return day if day <= last else None


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


def _shown(files: Sequence[DataFile], first: date, last: date, zone: ZoneInfo) -> ShownDays:
    """Days that are shown. With very many results, these are fewer days."""
    shown = ShownDays.of(last, last, zone)
    for number in (SHOWN, SHOWN // 2, 1):
        shown = ShownDays.of(max(first, last - timedelta(days=number - 1)), last, zone)
        if sum(file.rows for file in overlapping(files, "window_end", "window_end", shown.span(1))) <= MOST_ROWS:
            break
    return shown


def _before(reader: RowReader, tail: Tail, since_ms: int) -> HourCounts | None:
    """Results at a moment; None if they are no longer known."""
    run = next((run for run in tail.runs if run.at_ms <= since_ms), None)
    if run is None:
        return {} if tail.is_whole else None
    try:
        return merged(reader.results(reader.tables["results"].files(run.versions.get("results"))).values())
    except (DeltaError, FileNotFoundError, WindowError):
        return None  # the log or the files were cleaned up


def _day(
    shown: ShownDays,
    day: date,
    counted: Counted,
    passed: Mapping[int, int | None],
    lateness_ms: int,
    final_ms: int | None,
) -> Day:
    begin_ms, end_ms = shown.bounds_ms(day)
    final_at_ms = end_ms - 1 + lateness_ms

    def rows(counts: DayCounts | None) -> int | None:
        return None if counts is None else counts.get(day, PeriodCount()).rows

    batches = counted.reworked.get(day, PeriodCount()).batches
    return Day(
        day=day,
        start_ms=begin_ms,
        end_ms=end_ms,
        is_final=final_ms is not None and final_ms >= end_ms,
        final_at_ms=final_at_ms,
        results=rows(counted.results) or 0,
        values=_values(counted.results.get(day), counted.headline),
        results_before=rows(counted.before),
        values_before=_values((counted.before or {}).get(day), counted.headline),
        late=rows(counted.late),
        refused=rows(counted.refused),
        reworks=[Rework(batch, (passed.get(batch) or MIN_WATERMARK) >= final_at_ms) for batch in batches],
    )


def _values(count: PeriodCount | None, headline: Sequence[NumericOutput]) -> list[Number | None]:
    """Headline values of some results; None if there are no results."""
    values = count.values if count else [OutputValue()] * len(headline)
    return [value.shown(output.combine) for value, output in zip(values, headline, strict=False)]


def _hours(shown: ShownDays, counted: Counted, final_ms: int | None) -> Iterator[ResultHour]:
    """Yields the hours of the shown days, from the first with results to the last."""
    span, calendar = shown.span(0), hours_in(shown.zone.key)
    with_results = [hour_ms for hour_ms in counted.by_hour if span.from_ms <= hour_ms < span.to_ms]
    if not with_results:
        return
    for number in range(calendar.number(min(with_results)), calendar.number(max(with_results)) + 1):
        hour_ms = calendar.edge_ms(number)
        is_final = final_ms is not None and final_ms >= calendar.next_ms(hour_ms)
        count = counted.by_hour.get(hour_ms)
        yield ResultHour(hour_ms, is_final, count.rows if count else 0, _values(count, counted.headline))
