"""Events and results hour by hour of event time, so that hours without any are seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.definition.definition import Definition
from windowlib.definition.durations import UNITS
from windowlib.model.assigners import Sliding, Staggered
from windowlib.model.rerun import TimeRange
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.pages.newest import Run
from windowlib.tables import delta
from windowlib.tables.data_files import DataFile
from windowlib.tables.opened import Tables
from windowlib.tables.statistics import overlapping, overlapping_ms

HOUR_MS = UNITS["h"]
HOURS = 72
MOST_ROWS = 3_000_000  # of results that are read: fewer hours are shown where there are more


@dataclass(frozen=True, slots=True)
class Hour:
    """An hour of event time, by the start of windows: rows of results, events in them, events in windows that have not
    fired, and late events that no rerun has readmitted.

    `events` is None where results do not say how many there are: no aggregate is `count(*)`, or windows overlap.
    """

    start_ms: int
    results: int
    events: int | None
    in_flight: int
    late: int

    @property
    def is_empty(self) -> bool:
        """Whether no window of it has an event: what came too late is in none."""
        return not (self.results or self.events or self.in_flight)


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
    rows, events = _results(tables, chosen, counted)
    flying = _in_flight(tables, files["open_windows"], span, runs[0].watermark_out_ms)
    late = _late(tables, overlapping(files["late_events"], "event_time", "event_time", span))
    starts = range(span.from_ms, span.to_ms, HOUR_MS)
    made = [
        Hour(start, rows[start], events[start] if counted else None, flying[start] if counted else 0, late[start])
        for start in starts
    ]
    while made and made[0].is_empty:  # before the pipeline's first event
        made.pop(0)
    return made


def newest_event_ms(definition: Definition, runs: Sequence[Run]) -> int | None:
    """The newest event time that some batches have admitted; None where they have none."""
    ahead_ms = definition.watermark.out_of_orderness_ms + 1
    found = [run.figures["watermark_candidate_ms"] for run in runs if "watermark_candidate_ms" in run.figures]
    known = [candidate + ahead_ms for candidate in found if candidate is not None and candidate != MAX_WATERMARK]
    return max(known, default=None)


def count_column(definition: Definition) -> str | None:
    """The output that says how many events a window has, where each event is in one window."""
    assigner = definition.spec.assigner
    if isinstance(assigner, Staggered):
        assigner = assigner.of
    if isinstance(assigner, Sliding) and assigner.slide_ms != assigner.size_ms:
        return None
    plain = {name: expression.replace(" ", "").lower() for name, expression in definition.expressions.items()}
    return next((name for name, expression in plain.items() if expression == "count(*)"), None)


def _results(tables: Tables, files: Sequence[DataFile], counted: str | None) -> tuple[Counter[int], Counter[int]]:
    """Rows, and events in them, by hour."""
    rows, events = Counter[int](), Counter[int]()
    for file in files:
        columns = ["window_start", *([counted] if counted else [])]
        data = pq.ParquetFile(tables["results"].folder / file.path).read(columns=columns)
        amount = data[counted] if counted else pa.nulls(data.num_rows, pa.int64())
        by_hour = pa.table({"hour": _hour(data["window_start"]), "events": amount}).group_by("hour")
        for hour, found, many in _tuples(by_hour.aggregate([([], "count_all"), ("events", "sum")])):
            rows[hour] += found
            events[hour] += many or 0
    return rows, events


def _in_flight(tables: Tables, files: Sequence[DataFile], span: TimeRange, watermark_ms: int | None) -> Counter[int]:
    """Events by hour in windows, or slices, that the watermark has not passed: results have none of them."""
    found: Counter[int] = Counter()
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
        hour = pc.multiply(pc.divide(data[start], HOUR_MS), HOUR_MS)
        by_hour = pa.table({"hour": hour, "events": data["elements"]}).group_by("hour")
        for hour_ms, many in _tuples(by_hour.aggregate([("events", "sum")])):
            found[hour_ms] += many or 0
    return found


def _late(tables: Tables, files: Sequence[DataFile]) -> Counter[int]:
    """Late events by hour."""
    found: Counter[int] = Counter()
    for file in files:
        data = pq.ParquetFile(tables["late_events"].folder / file.path).read(columns=["event_time", "readmitted_by"])
        data = data.filter(pc.is_null(data["readmitted_by"]))
        by_hour = pa.table({"hour": _hour(data["event_time"])}).group_by("hour")
        for hour_ms, many in _tuples(by_hour.aggregate([([], "count_all")])):
            found[hour_ms] += many
    return found


def _hour(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """The hour of each TIMESTAMP, in ms."""
    floored = pc.floor_temporal(times.cast(pa.timestamp("us")), unit="hour")
    return pc.divide(floored.cast(pa.int64()), 1000)


def _tuples(table: pa.Table) -> list[tuple[int, ...]]:
    """The rows whose hour is known, the hour first."""
    names = ["hour", *(name for name in table.column_names if name != "hour")]
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    return [row for row in rows if row[0] is not None]
