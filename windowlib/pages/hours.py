"""Events and results hour by hour of event time, so that hours without any are seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.definition.definition import Definition
from windowlib.model.assigners import Session, Sliding, Staggered
from windowlib.model.rerun import TimeRange
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.pages.gaps import HOUR_MS, must_have_ended, notes, step_ms
from windowlib.pages.newest import Run
from windowlib.tables import delta
from windowlib.tables.data_files import DataFile
from windowlib.tables.opened import Tables
from windowlib.tables.statistics import overlapping, overlapping_ms

HOURS = 72
MOST_ROWS = 3_000_000  # of results that are read: fewer hours are shown where there are more


@dataclass(frozen=True, slots=True)
class ByHour:
    """Windows, and events in them, by the hour in which they start; and further hours in which they have events."""

    rows: Counter[int] = field(default_factory=Counter)
    events: Counter[int] = field(default_factory=Counter)
    reached: set[int] = field(default_factory=set)

    def __contains__(self, hour_ms: int) -> bool:
        return bool(self.rows[hour_ms]) or hour_ms in self.reached


@dataclass(frozen=True, slots=True)
class Reach:
    """How far sessions reach in a span: to their last event, as with a gap below an hour each hour before has one."""

    span: TimeRange
    gap_ms: int

    @classmethod
    def of(cls, definition: Definition, span: TimeRange) -> Reach | None:
        """Of a pipeline's sessions; None where windows are none, or gaps are not known."""
        assigner = definition.spec.assigner
        if not isinstance(assigner, Session) or step_ms(definition.spec) is None:
            return None
        return cls(span, assigner.gap_ms)

    def add(self, found: ByHour, start_ms: pa.ChunkedArray, end_ms: pa.ChunkedArray) -> None:
        """Adds the hours of some sessions."""
        hours = pa.table({"hour": _hour(start_ms), "last": _hour(pc.subtract(end_ms, self.gap_ms))})
        hours = hours.filter(pc.greater(hours["last"], hours["hour"])).group_by(["hour", "last"]).aggregate([])
        for first_ms, last_ms in _tuples(hours):
            reached = range(max(first_ms, self.span.from_ms), min(last_ms + HOUR_MS, self.span.to_ms), HOUR_MS)
            found.reached.update(reached)


@dataclass(frozen=True, slots=True)
class Hour:
    """An hour of event time, by the start of windows: rows of results, events in them, events in windows that have not
    fired, and late events that no rerun has readmitted.

    `events` and `in_flight` are None where results do not say how many there are: no aggregate is `count(*)`, or
    windows overlap. `is_gap`: a window should have been there (`windowlib.pages.gaps`), and none is; what came too late
    is in none.
    """

    start_ms: int
    results: int
    events: int | None
    in_flight: int | None
    late: int
    is_gap: bool = False


def hours(definition: Definition, tables: Tables, runs: Sequence[Run]) -> list[Hour]:
    """The newest hours, oldest first; none before the first event, and where windows have no bounds in time."""
    newest_ms = newest_event_ms(definition, runs)
    if newest_ms is None or not definition.plan.windows_end:
        return []
    end_ms = newest_ms // HOUR_MS * HOUR_MS + HOUR_MS
    counted = count_column(definition)
    versions = runs[0].versions
    files = {name: delta.files(tables[name], versions.get(name)) for name in ("results", "late_events", "open_windows")}
    span, chosen = TimeRange(end_ms - HOURS * HOUR_MS, end_ms), list[DataFile]()
    for back in (HOURS, HOURS // 3, HOURS // 12):
        span = TimeRange(end_ms - back * HOUR_MS, end_ms)
        chosen = overlapping(files["results"], "window_start", "window_start", span)
        if sum(file.rows for file in chosen) <= MOST_ROWS:
            break
    watermark_ms, reach = runs[0].watermark_out_ms, Reach.of(definition, span)
    found = _results(tables, chosen, counted, reach)
    flying = _in_flight(tables, files["open_windows"], span, watermark_ms, reach)
    late = _late(tables, overlapping(files["late_events"], "event_time", "event_time", span))
    begun = [hour for hour in range(span.from_ms, span.to_ms, HOUR_MS) if hour in found or hour in flying]
    return [
        Hour(
            hour,
            found.rows[hour],
            found.events[hour] if counted else None,
            flying.events[hour] if counted else None,
            late[hour],
            not (hour in found or hour in flying) and must_have_ended(definition.spec, hour, watermark_ms),
        )
        for hour in range(begun[0] if begun else span.to_ms, span.to_ms, HOUR_MS)
    ]


def newest_event_ms(definition: Definition, runs: Sequence[Run]) -> int | None:
    """The newest event time that some batches have admitted; None where they have none."""
    ahead_ms = definition.watermark.out_of_orderness_ms + 1
    found = [run.figures["watermark_candidate_ms"] for run in runs if "watermark_candidate_ms" in run.figures]
    known = [candidate + ahead_ms for candidate in found if candidate is not None and candidate != MAX_WATERMARK]
    return max(known, default=None)


def hour_notes(definition: Definition) -> Iterator[str]:
    """What is to be known about the hours, in sentences."""
    counts = count_column(definition) is not None
    return notes(definition.spec, counts_events=counts, overlaps=windows_overlap(definition))


def windows_overlap(definition: Definition) -> bool:
    """Whether an event may be in several windows, or in none."""
    assigner = definition.spec.assigner
    if isinstance(assigner, Staggered):
        assigner = assigner.of
    return isinstance(assigner, Sliding) and assigner.slide_ms != assigner.size_ms


def count_column(definition: Definition) -> str | None:
    """The output that says how many events each window has, where each event is in one window."""
    if windows_overlap(definition):
        return None
    plain = {name: expression.replace(" ", "").lower() for name, expression in definition.expressions.items()}
    return next(
        (name for name, expression in plain.items() if expression == "count(*)" and name not in definition.added), None
    )


def _results(tables: Tables, files: Sequence[DataFile], counted: str | None, reach: Reach | None) -> ByHour:
    """Results by hour; with `reach` also where they reach in it."""
    found = ByHour()
    for file in files:
        columns = ["window_start", *([counted] if counted else []), *(["window_end"] if reach else [])]
        data = pq.ParquetFile(tables["results"].folder / file.path).read(columns=columns)
        amount = data[counted] if counted else pa.nulls(data.num_rows, pa.int64())
        _add(found, _in_ms(data["window_start"]), amount)
        if reach:
            reach.add(found, _in_ms(data["window_start"]), _in_ms(data["window_end"]))
    return found


def _in_flight(
    tables: Tables, files: Sequence[DataFile], span: TimeRange, watermark_ms: int | None, reach: Reach | None
) -> ByHour:
    """Windows, or slices, that the watermark has not passed: results have none of them."""
    found = ByHour()
    for file in overlapping_ms(files, ("window_start_ms", "window_start_ms"), span):
        stored = pq.ParquetFile(tables["open_windows"].folder / file.path)
        names = stored.schema_arrow.names
        start = next((one for one in ("window_start_ms", "state_window_start_ms") if one in names), None)
        if start is None or "elements" not in names:
            continue
        end = start.replace("start", "end")
        data = stored.read(columns=[start, end, "elements"])
        if watermark_ms is not None:
            data = data.filter(pc.greater(data[end], pa.scalar(watermark_ms + 1, pa.int64())))
        _add(found, data[start], data["elements"])
        if reach:
            reach.add(found, data[start], data[end])
    return found


def _add(found: ByHour, start_ms: pa.ChunkedArray, events: pa.ChunkedArray) -> None:
    by_hour = pa.table({"hour": _hour(start_ms), "events": events}).group_by("hour")
    for hour_ms, rows, many in _tuples(by_hour.aggregate([([], "count_all"), ("events", "sum")])):
        found.rows[hour_ms] += rows
        found.events[hour_ms] += many or 0


def _late(tables: Tables, files: Sequence[DataFile]) -> Counter[int]:
    """Late events by hour."""
    found: Counter[int] = Counter()
    for file in files:
        data = pq.ParquetFile(tables["late_events"].folder / file.path).read(columns=["event_time", "readmitted_by"])
        data = data.filter(pc.is_null(data["readmitted_by"]))
        by_hour = pa.table({"hour": _hour(_in_ms(data["event_time"]))}).group_by("hour")
        for hour_ms, many in _tuples(by_hour.aggregate([([], "count_all")])):
            found[hour_ms] += many
    return found


def _in_ms(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Each TIMESTAMP, in ms."""
    return pc.divide(times.cast(pa.timestamp("us")).cast(pa.int64()), 1000)


def _hour(times_ms: pa.ChunkedArray) -> pa.ChunkedArray:
    """The hour of each time, in ms."""
    return pc.floor_temporal(times_ms.cast(pa.timestamp("ms")), unit="hour").cast(pa.int64())


def _tuples(table: pa.Table) -> list[tuple[int, ...]]:
    """The rows whose hour is known, the hour first."""
    names = ["hour", *(name for name in table.column_names if name != "hour")]
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    return [row for row in rows if row[0] is not None]
