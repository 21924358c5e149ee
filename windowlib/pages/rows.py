"""Rows of tables that a page shows: the newest results, refused rows, late events, windows in flight, each bounded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import median_low
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.contract.result_tables import FILLED
from windowlib.definition.commands import to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant, iso_instant, time_of
from windowlib.delta import data_files
from windowlib.delta.data_files import DataFile
from windowlib.delta.statistics import overlapping
from windowlib.delta.tables import Tables
from windowlib.inspection.late.events import how_late
from windowlib.inspection.lineage.cuts import within
from windowlib.model.rerun import TimeRange
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS
from windowlib.pages.local_hours import hours_in, page_zone
from windowlib.pages.newest_rows import RecentRun, parts_of_newest, rows_of_newest
from windowlib.plans.admission import REASONS
from windowlib.publication.key import Key, key_of, key_text
from windowlib.reruns.preview_text import HIDDEN
from windowlib.storage.object_file import opened

KEY = "key."  # begins the names of form fields for key columns
EXAMPLES = 10  # rows per reason, or per hour
LATE_LOOKED_AT, LATE_HOURS = 2_000, 8
RESULTS_SHOWN, RESULTS_FOUND = 25, 100
IN_FLIGHT_LOOKED_AT, IN_FLIGHT_SHOWN = 2_000, 10
LONGEST_CELL = 160  # characters
WINDOWS = ("window", "state_window")  # prefixes of the bounds of a row of state; the first that exists is used


@dataclass(frozen=True, slots=True)
class TextRows:
    """Some rows of a table as text: the columns, and a cell per row and column.

    * `commands` has a command per row that explains it, to paste, and `queries` the fields of the page that does the
      same. Both are empty if no row can be explained.
    * `marked` cells have changed, by row and column.
    """

    columns: Sequence[str]
    cells: Sequence[Sequence[str]]
    commands: Sequence[str] = ()
    queries: Sequence[Mapping[str, str]] = ()
    marked: Collection[tuple[int, int]] = ()

    def __bool__(self) -> bool:
        return bool(self.cells)


@dataclass(frozen=True, slots=True)
class ResultFilter:
    """Filter for results with a window that ends in `span` and with these values (as strings) of key columns."""

    span: TimeRange | None = None
    key: Mapping[str, str] = field(default_factory=dict)

    def where(self, schema: pa.Schema) -> pc.Expression | None:
        """Expression that selects rows of a file, or None for all rows. Raises `CannotLook` if a key does not fit its
        column.
        """
        if self.span is None and not self.key:
            return None
        condition = pc.scalar(True) if self.span is None else within("window_end", self.span)
        return condition & self._key(schema).where(schema)

    def may_be_in(self, file: DataFile, schema: pa.Schema) -> bool:
        """Tests by statistics if a file may have a matching row. Raises `CannotLook` like `where`."""
        if self.span is not None and not overlapping([file], "window_end", "window_end", self.span):
            return False
        return self._key(schema).may_be_in(file, schema)

    def _key(self, schema: pa.Schema) -> Key:
        return key_of(list(self.key), list(self.key.values()), schema)


@dataclass(frozen=True, slots=True)
class RefusedRows:
    """Rows refused for one reason in the batches shown: their number, and the newest rows."""

    reason: str
    count: int
    examples: TextRows


@dataclass(frozen=True, slots=True)
class LateHour:
    """Late events of an hour of a zone, among the newest late events: their number, lateness and examples."""

    start_ms: int
    zone: str
    count: int
    median_late_ms: int
    most_late_ms: int
    examples: TextRows


def results(
    definition: Definition, tables: Tables, versions: Mapping[str, int], looked_for: ResultFilter | None = None
) -> TextRows:
    """Newest results that match the filter `looked_for`, each with a command that explains it.

    Raises `CannotLook` if a key value of the filter does not fit its column.
    """
    filter_, rows = looked_for or ResultFilter(), list[dict[str, Any]]()
    window = [*definition.source.key, "window_start", "window_end"]
    columns = [*window, *definition.outputs, FILLED, "timing", "firing", "batch_id"]
    if files := tables["results"].files(versions.get("results")):
        first = opened(tables["results"].store, files[0].path, files[0].size_bytes)
        schema = pq.read_schema(first)
        files = [file for file in files if filter_.may_be_in(file, schema)]
        at_most = RESULTS_FOUND if looked_for else RESULTS_SHOWN
        rows = rows_of_newest(tables, "results", files, at_most, filter_.where(schema), columns)
    columns = [name for name in columns if name != FILLED or any(FILLED in row for row in rows)]
    queries = explain_queries(definition, rows)
    commands = [explain_command(definition, query) for query in queries]
    return replace(text_rows(definition, rows, columns), commands=commands, queries=queries)


def explain_queries(definition: Definition, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Key and time of each result, as fields of a form. Empty if windows have no start or keys are hidden."""
    if {*definition.source.key} & definition.hidden or any(row.get("window_start") is None for row in rows):
        return []
    times = (str(iso_instant(time_of(row["window_start"]))) for row in rows)
    keys = ({f"{KEY}{name}": key_text(row[name]) for name in definition.source.key} for row in rows)
    return [{**key, "at": at} for key, at in zip(keys, times, strict=True)]


def explain_command(definition: Definition, query: Mapping[str, str]) -> str:
    """Command that explains the result with this key and time."""
    key = (part for name in definition.source.key for part in ("--key", query[f"{KEY}{name}"]))
    return to_paste("explain", definition.file, *key, "--at", query["at"])


def refused(definition: Definition, tables: Tables, runs: Sequence[RecentRun]) -> list[RefusedRows]:
    """Refused rows by reason in the batches shown, most frequent reason first."""
    reasons = []
    for reason in REASONS:
        count = sum(run.figures.get(f"quarantined_{reason}", 0) for run in runs)
        if count:
            files = tables["quarantine"].files(runs[0].versions.get("quarantine"))
            rows = rows_of_newest(tables, "quarantine", files, EXAMPLES, pc.starts_with(pc.field("reason"), reason))
            columns = ["source_file", "source_row", "event_time", "raw", "batch_id"]
            reasons.append(RefusedRows(reason, count, text_rows(definition, rows, columns)))
    return sorted(reasons, key=lambda refused_rows: (-refused_rows.count, refused_rows.reason))


def late_hours(definition: Definition, tables: Tables, versions: Mapping[str, int]) -> list[LateHour]:
    """Newest hours of event time, newest first, of the late events that arrived last."""
    files = tables["late_events"].files(versions.get("late_events"))
    rows = rows_of_newest(tables, "late_events", files, LATE_LOOKED_AT)
    zone, hours = page_zone(definition), dict[int, list[dict[str, Any]]]()
    calendar = hours_in(zone)
    for row in rows:
        hours.setdefault(calendar.start_ms(time_of(row["event_time"])), []).append(row)
    columns = [*definition.source.key, "event_time", "late by", "source_file", "source_row", "batch_id"]
    columns += ["readmitted by"] if any(row.get("readmitted_by") is not None for row in rows) else []
    return [
        _late_hour(definition, zone, start_ms, hours[start_ms], columns)
        for start_ms in sorted(hours, reverse=True)[:LATE_HOURS]
    ]


def _late_hour(
    definition: Definition, zone: str, start_ms: int, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> LateHour:
    late_ms = [row["late_by_ms"] for row in rows]
    examples = text_rows(definition, [{**row, **_late_words(row)} for row in rows[:EXAMPLES]], columns)
    return LateHour(start_ms, zone, len(rows), median_low(late_ms), max(late_ms), examples)


def _late_words(row: Mapping[str, Any]) -> dict[str, str]:
    again = f"batch {row['readmitted_by']}" if row.get("readmitted_by") is not None else ""
    return {"late by": how_late(row["late_by_ms"]), "readmitted by": again}


def in_flight(definition: Definition, tables: Tables, versions: Mapping[str, int]) -> TextRows:
    """Windows or slices in flight that end first, among the rows that were read."""
    keys, files = definition.source.key, tables["open_windows"].files(versions.get("open_windows"))
    names = [*keys, *(f"{name}_{side}_ms" for name in WINDOWS for side in ("start", "end")), "elements"]
    parts = parts_of_newest(tables, "open_windows", files, IN_FLIGHT_LOOKED_AT, columns=names)
    rows = [row for _, part in parts for row in data_files.rows_of(_first_to_end(part))]
    if not rows:
        return TextRows((), ())
    bounds = _bounds(rows[0])
    next_to_end = sorted(rows, key=lambda row: row[f"{bounds}_end_ms"] if bounds else 0)[:IN_FLIGHT_SHOWN]
    worded_rows = [
        {
            **row,
            "from": _start(row[f"{bounds}_start_ms"]) if bounds else "",
            "to": _end(row[f"{bounds}_end_ms"]) if bounds else "",
            "events": row.get("elements"),
        }
        for row in next_to_end
    ]
    columns = [*keys, *(["from", "to"] if bounds else []), *(["events"] if "elements" in rows[0] else [])]
    return text_rows(definition, worded_rows, columns)


def _bounds(names: Collection[str]) -> str | None:
    """Prefix of the bounds that rows of state have; None if they have no bounds."""
    return next((prefix for prefix in WINDOWS if f"{prefix}_end_ms" in names), None)


def _start(time_ms: int) -> str:
    return "no start" if time_ms == MIN_TIME_MS else instant(time_ms).removesuffix(" UTC")


def _end(time_ms: int) -> str:
    return "no end" if time_ms == MAX_TIME_MS else instant(time_ms).removesuffix(" UTC")


def _first_to_end(part: pa.Table) -> pa.Table:
    """Rows of a part that end first, in their stored order. Returns at most as many rows as the page shows."""
    bounds = _bounds(part.column_names)
    if bounds is None:
        return part.slice(0, IN_FLIGHT_SHOWN)
    first = np.argsort(part[f"{bounds}_end_ms"].to_numpy(), kind="stable")[:IN_FLIGHT_SHOWN]
    return part.take(np.sort(first))


def text_rows(definition: Definition, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> TextRows:
    """Formats `columns` of rows as text. Hides values of columns that `[pages]` hides, and in that case also `raw`.

    Key values have the form that commands take.
    """
    hidden = {*definition.hidden, *(["raw"] if definition.pages.hide else [])}
    keys = {*definition.source.key}

    def cell(name: str, value: Any) -> str:
        if name in hidden:
            return HIDDEN
        return _text(value if value is None or name not in keys else key_text(value))

    return TextRows(columns, [[cell(name, row.get(name)) for name in columns] for row in rows])


def _text(value: Any) -> str:
    """Text of a cell, shortened to `LONGEST_CELL` characters.

    >>> _text(None), _text(1234567), _text(0.1 + 0.2), _text("x" * 500)[-3:]
    ('null', '1,234,567', '0.3', 'xx…')
    """
    match value:
        case None:
            return "null"
        case datetime():
            return instant(time_of(value)).removesuffix(" UTC")
        case bool() | str():
            text = str(value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.6g}"
        case _:
            text = str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
