"""Events of a window, and other events inside its bounds with the reason why they are not in the window.

Events are read from the source files. `late_events` and `quarantine` record the events that are in no window. An
admitted event is in a window if the window contains the event's time, and was not past its cleanup time when the
event's batch began. Published sessions may overlap if the earlier session was cleaned up before the later session
began. Then the event belongs only to the session that ends first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from windowlib.definition.instants import in_words, time_of
from windowlib.delta.statistics import overlapping
from windowlib.inspection.late.events import NO_WINDOW, how_late, late_rows, reason
from windowlib.inspection.lineage.cuts import Cut, within
from windowlib.inspection.lineage.key_windows import KeyWindows, span_of
from windowlib.inspection.lineage.recomputed import recomputed
from windowlib.inspection.lineage.source_events import SourceEvent, read_events, shown_columns
from windowlib.model.lateness import was_cleaned_up
from windowlib.model.rerun import TimeRange
from windowlib.model.windows import TimeWindow
from windowlib.plans.kinds.kind import Bounds
from windowlib.publication.key import Key


@dataclass(frozen=True, slots=True)
class WindowEvent(SourceEvent):
    """An event inside a window's bounds.

    `why` is the reason why the event is not in the window, or None if the event is in the window. `readmitted_by` is
    the rerun that readmitted the event.
    """

    why: str | None = None
    readmitted_by: int | None = None


@dataclass(slots=True)
class WindowEvents:
    """The events of a window, excluded events inside its bounds, and sentences about files that could not be read."""

    inside: list[WindowEvent] = field(default_factory=list)
    excluded: list[WindowEvent] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def events_of(windows: KeyWindows, bounds: Bounds, *, until_batch: int | None = None) -> WindowEvents:
    """Events inside a window's bounds. Events of batches after `until_batch` are in another window, in flight."""
    cut, key, span = windows.cut, windows.key, span_of(bounds)
    by_event_time = cut.definition.spec.time == "event"
    read = read_events(cut, key, span, by_event_time=by_event_time)
    recorded = [*_late(cut, key, span), *_refused(cut, key, span, read.events)] if by_event_time else []
    matched, rest = _matched(read.events, recorded)
    candidates, again = [bounds, *_rivals(windows, bounds)], _recomputed_by(cut, bounds)
    window = WindowEvents(problems=read.problems)
    judged = [_judged(cut, event, record, candidates, until_batch, again) for event, record in matched]
    for window_event in [*judged, *rest]:
        (window.inside if window_event.why is None else window.excluded).append(window_event)
    for events in (window.inside, window.excluded):
        events.sort(key=lambda event: (event.time_ms, event.batch_id, event.file, event.row))
    return window


def _judged(
    cut: Cut,
    event: SourceEvent,
    record: WindowEvent | None,
    candidates: Sequence[Bounds],
    until_batch: int | None,
    recomputed_by: int,
) -> WindowEvent:
    """Decides if a source event is in the requested window, which is the first of `candidates`.

    `record` is the event's row in `late_events` or `quarantine`, or None if neither has a row of the event.
    """
    admitted = WindowEvent(event.file, event.row, event.time_ms, event.batch_id, event.values)
    if record is not None and record.why is not None:
        return replace(admitted, why=record.why)
    if record is not None:
        return replace(admitted, readmitted_by=record.readmitted_by)
    if until_batch is not None and event.batch_id > until_batch:
        return replace(admitted, why="it came after this result; it is in the window in flight that will replace it")
    if cut.definition.spec.time != "event":
        return admitted
    open_then = [bounds for bounds in candidates if _open_to(cut, event, bounds)]
    if cut.definition.spec.assigner.merges:
        holder = min(open_then, key=lambda bounds: bounds[1], default=candidates[0])
        return (
            admitted if holder == candidates[0] else replace(admitted, why=f"it is in the session {in_words(holder)}")
        )
    if not open_then and event.batch_id >= recomputed_by:
        return replace(admitted, why="this window was past its cleanup time when it came; it is in later windows only")
    return admitted


def _open_to(cut: Cut, event: SourceEvent, bounds: Bounds) -> bool:
    """Tests if a window holds the event's time, and was not past its cleanup time when the event's batch began."""
    if not bounds[0] <= event.time_ms < bounds[1]:
        return False
    return not was_cleaned_up(TimeWindow(*bounds), cut.batches[event.batch_id].late_in_ms)


def _recomputed_by(cut: Cut, bounds: Bounds) -> int:
    """Batch of the last rerun that recomputed an aligned window; 0 if none did."""
    if cut.definition.spec.assigner.merges:
        return 0
    window = TimeWindow(*bounds)
    return max((batch_id for batch_id, span in recomputed(cut).items() if span.meets(window)), default=0)


def _rivals(windows: KeyWindows, bounds: Bounds) -> list[Bounds]:
    """Overlapping sessions of the same key.

    Excludes sessions that will replace this session, and sessions that this session will replace.
    """
    if not windows.cut.definition.spec.assigner.merges:
        return []
    span = span_of(bounds)
    flying = windows.in_flight(span)
    pairs = {(window.bounds_ms, old) for window in flying for old in window.replaces_ms}
    others = {row["bounds"] for row in windows.published(span)} | {window.bounds_ms for window in flying}
    return sorted(other for other in others - {bounds} if (other, bounds) not in pairs and (bounds, other) not in pairs)


# -- records in the tables -----------------------------------------------------------------------------------------


def _late(cut: Cut, key: Key, span: TimeRange) -> Iterable[WindowEvent]:
    for row in late_rows(cut, span, readmitted=True, key=key):
        again = row["readmitted_by"]
        why = None if again is not None else _why_late(row)
        yield _recorded(cut, row, why, again)


def _why_late(row: Mapping[str, Any]) -> str:
    if reason(row) == NO_WINDOW:
        return f"late by {how_late(row['late_by_ms'])}, and between two windows"
    window = in_words((time_of(row["window_start"]), time_of(row["window_end"])))
    return f"late: {window} had been past its cleanup time by {how_late(row['late_by_ms'])} when it came"


def _refused(cut: Cut, key: Key, span: TimeRange, events: Iterable[SourceEvent]) -> Iterable[WindowEvent]:
    """Quarantined rows in the span that are rows of the given events, or whose stored raw row has this key."""
    places = {(event.file, event.row) for event in events}
    files = overlapping(cut.files("quarantine"), "event_time", "event_time", span)
    for row in cut.rows("quarantine", files, where=within("event_time", span)):
        if (row["source_file"], row["source_row"]) in places or is_raw_of(key, row["raw"]):
            yield _recorded(cut, row, f"quarantined: {row['reason']}", None)


def _recorded(cut: Cut, row: Mapping[str, Any], why: str | None, readmitted_by: int | None) -> WindowEvent:
    """Converts a row of `late_events` or `quarantine` to its event."""
    raw = raw_row(row["raw"])
    values = {name: raw.get(name) for name in shown_columns(cut.definition)}
    at_ms = time_of(row["event_time"])
    return WindowEvent(row["source_file"], row["source_row"], at_ms, row["batch_id"], values, why, readmitted_by)


def raw_row(raw: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Parses a row of the source, which `late_events` and `quarantine` store as a JSON object.

    Returns {} for a malformed line.

    >>> raw_row('{"user": "ann"}'), raw_row("ann,17,x"), raw_row("17")
    ({'user': 'ann'}, {}, {})
    """
    try:
        row = json.loads(raw, parse_float=parse_float)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def is_raw_of(key: Key, raw: str) -> bool:
    """Tests if a row stored as JSON has this key. Numbers are compared with all their digits."""
    return key.is_of(raw_row(raw, Decimal))


def _matched(
    events: Iterable[SourceEvent], records: Iterable[WindowEvent]
) -> tuple[list[tuple[SourceEvent, WindowEvent | None]], list[WindowEvent]]:
    """Pairs each source row with its record in a table. Also returns the records of rows that could not be read."""
    waiting = {(record.file, record.row): record for record in records}
    matched = [(event, waiting.pop((event.file, event.row), None)) for event in events]
    return matched, list(waiting.values())
