"""Which events of the source made a window, and which others lie in its bounds, and why they are not in it.

The rows of the source come from its files, what became of those that are in no window from `late_events` and
`quarantine`. An admitted event is in a window that holds its time and was not past its cleanup time when the batch of
the event began. Of sessions that is one: two that are published may overlap where the earlier one had been cleaned up
before the other began, and then the one that ends first had taken the event while it could.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jobs.instants import instant
from jobs.late.events import NO_WINDOW, how_late, late_rows, reason
from jobs.lineage.cuts import Cut, Key, overlapping, time_of, within
from jobs.lineage.key_windows import Bounds, KeyWindows, span_of
from jobs.lineage.source_events import SourceEvent, parsed, raw_row, read_events, shown_columns
from windowlib.lateness import is_late
from windowlib.rerun import TimeRange
from windowlib.windows import TimeWindow


@dataclass(frozen=True, slots=True)
class EventOf:
    """An event in a window's bounds. `why` it is not in the window, None where it is; `readmitted_by` a rerun."""

    file: str
    row: int | None
    time_ms: int
    batch_id: int
    values: Mapping[str, Any]
    why: str | None = None
    readmitted_by: int | None = None


@dataclass(slots=True)
class Events:
    """The events of a window, the others in its bounds, and what could not be looked at, in sentences."""

    inside: list[EventOf] = field(default_factory=list)
    beside: list[EventOf] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def events_of(windows: KeyWindows, bounds: Bounds, *, until_batch: int | None = None) -> Events:
    """The events in a window's bounds. `until_batch`: what came later is not in it, but in a window in flight."""
    cut, key, span = windows.cut, windows.key, span_of(bounds)
    by_event_time = cut.definition.spec.time == "event"
    read = read_events(cut, key, span, by_event_time=by_event_time)
    told = [*_late(cut, key, span), *_refused(cut, key, span)] if by_event_time else []
    known, rest = _matched(read.events, told)
    rivals = _rivals(windows, bounds)
    found = Events(problems=read.problems)
    judged = [_judged(cut, event, told_of, bounds, rivals, until_batch) for event, told_of in known]
    for one in [*judged, *rest]:
        (found.inside if one.why is None else found.beside).append(one)
    for events in (found.inside, found.beside):
        events.sort(key=lambda event: (event.time_ms, event.batch_id, event.file, event.row or 0))
    return found


def _judged(
    cut: Cut,
    event: SourceEvent,
    told: EventOf | None,
    bounds: Bounds,
    rivals: Iterable[Bounds],
    until_batch: int | None,
) -> EventOf:
    """An event of the source with what became of it. `told`: by `late_events` or `quarantine`."""
    known = EventOf(event.file, event.row, event.time_ms, event.batch_id, event.values)
    if told is not None and told.why is not None:
        return replace(known, why=told.why)
    if told is not None:
        return replace(known, readmitted_by=told.readmitted_by)
    if until_batch is not None and event.batch_id > until_batch:
        return replace(known, why="it came after this result; it is in the window in flight that will replace it")
    if cut.definition.spec.time != "event":
        return known
    open_then = [one for one in (bounds, *rivals) if _open_to(cut, event, one)]
    if cut.definition.spec.assigner.merges:
        holder = min(open_then, key=lambda one: one[1], default=bounds)
        return known if holder == bounds else replace(known, why=f"it is in the session {in_words(holder)}")
    if not open_then and not _rerun_since(cut, event, bounds):
        return replace(known, why="this window was past its cleanup time when it came; it is in later ones only")
    return known


def _open_to(cut: Cut, event: SourceEvent, bounds: Bounds) -> bool:
    """Whether a window holds an event's time, and was not past its cleanup time when the event's batch began."""
    if not bounds[0] <= event.time_ms < bounds[1]:
        return False
    watermark_ms = cut.batches[event.batch_id].watermark_in_ms
    return not is_late(TimeWindow(*bounds), cut.definition.spec.allowed_lateness_ms, watermark_ms)


def _rerun_since(cut: Cut, event: SourceEvent, bounds: Bounds) -> bool:
    """Whether a rerun of a range that meets the window came after an event."""
    return any(
        run.correction.from_ms < bounds[1] and bounds[0] < run.correction.to_ms
        for number, run in cut.batches.items()
        if number > event.batch_id and run.correction is not None
    )


def _rivals(windows: KeyWindows, bounds: Bounds) -> list[Bounds]:
    """Other sessions of the key that overlap a session; not those that one of them will replace."""
    if not windows.cut.definition.spec.assigner.merges:
        return []
    span = span_of(bounds)
    flying = windows.in_flight(span)
    pairs = {(one.bounds_ms, old) for one in flying for old in one.replaces_ms}
    others = {row["bounds"] for row in windows.published(span)} | {one.bounds_ms for one in flying}
    return sorted(one for one in others - {bounds} if (one, bounds) not in pairs and (bounds, one) not in pairs)


# -- what the tables tell -----------------------------------------------------------------------------------------


def _late(cut: Cut, key: Key, span: TimeRange) -> Iterable[EventOf]:
    for row in late_rows(cut, span, readmitted=True, key=key):
        again = row["readmitted_by"]
        why = None if again is not None else _why_late(row)
        yield _told(cut, row, why, again)


def _why_late(row: Mapping[str, Any]) -> str:
    if reason(row) == NO_WINDOW:
        return f"late by {how_late(row['late_by_ms'])}, and between two windows"
    window = in_words((time_of(row["window_start"]), time_of(row["window_end"])))
    return f"late: {window} had been past its cleanup time by {how_late(row['late_by_ms'])} when it came"


def _refused(cut: Cut, key: Key, span: TimeRange) -> Iterable[EventOf]:
    """Quarantined rows in the span: of the key, as far as the row tells one."""
    files = overlapping(cut.files("quarantine"), "event_time", "event_time", span)
    for row in cut.rows("quarantine", files, where=within("event_time", span)):
        if key.is_of(raw_row(row["raw"], cut.definition)):
            yield _told(cut, row, f"quarantined: {row['reason']}", None)


def _told(cut: Cut, row: Mapping[str, Any], why: str | None, readmitted_by: int | None) -> EventOf:
    """What a table says of a row of the source."""
    is_text = cut.definition.source.format in ("json", "csv")
    raw = raw_row(row["raw"], cut.definition)
    whole = parsed(raw, cut.definition.source.columns) or raw
    values = {name: whole.get(name) for name in shown_columns(cut.definition)}
    place = row["source_file"], None if is_text else row["source_row"]
    return EventOf(*place, time_of(row["event_time"]), row["batch_id"], values, why, readmitted_by)


def _matched(
    events: Iterable[SourceEvent], told: Iterable[EventOf]
) -> tuple[list[tuple[SourceEvent, EventOf | None]], list[EventOf]]:
    """Each row of the source with what a table says of it; and what tables say of rows that could not be read.

    Rows of text have no numbers here: of those with the same time, one with the same values is taken.
    """
    waiting: dict[tuple[Any, ...], list[EventOf]] = {}
    for one in told:
        waiting.setdefault((one.file, one.row, one.time_ms), []).append(one)
    known: list[tuple[SourceEvent, EventOf | None]] = []
    for event in events:
        there = waiting.get((event.file, event.row, event.time_ms), [])
        match = next((one for one in there if event.row is not None or one.values == event.values), None)
        if match is not None:
            there.remove(match)
        known.append((event, match))
    return known, [one for ones in waiting.values() for one in ones]


def in_words(bounds: Bounds) -> str:
    """The bounds of a window for people.

    >>> in_words((0, 3_600_000))
    '1970-01-01 00:00:00 to 1970-01-01 01:00:00 UTC'
    """
    return f"{instant(bounds[0]).removesuffix(' UTC')} to {instant(bounds[1])}"
