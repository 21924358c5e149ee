"""Which events of the source made a window, and which others lie in its bounds, and why they are not in it.

The rows of the source come from its files, what became of those that are in no window from `late_events` and
`quarantine`. An admitted event is in a window that holds its time and was not past its cleanup time when the batch of
the event began. Of sessions that is one: two that are published may overlap where the earlier one had been cleaned up
before the other began, and then the one that ends first had taken the event while it could.
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
class EventOf(SourceEvent):
    """An event in a window's bounds. `why` it is not in the window, None where it is; `readmitted_by` a rerun."""

    why: str | None = None
    readmitted_by: int | None = None


@dataclass(slots=True)
class WindowEvents:
    """The events of a window, the others in its bounds, and what could not be looked at, in sentences."""

    inside: list[EventOf] = field(default_factory=list)
    excluded: list[EventOf] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def events_of(windows: KeyWindows, bounds: Bounds, *, until_batch: int | None = None) -> WindowEvents:
    """The events in a window's bounds. `until_batch`: what came later is not in it, but in a window in flight."""
    cut, key, span = windows.cut, windows.key, span_of(bounds)
    by_event_time = cut.definition.spec.time == "event"
    read = read_events(cut, key, span, by_event_time=by_event_time)
    said = [*_late(cut, key, span), *_refused(cut, key, span, read.events)] if by_event_time else []
    known, rest = _matched(read.events, said)
    candidates, again = [bounds, *_rivals(windows, bounds)], _recomputed_by(cut, bounds)
    found = WindowEvents(problems=read.problems)
    judged = [_judged(cut, event, said_of, candidates, until_batch, again) for event, said_of in known]
    for one in [*judged, *rest]:
        (found.inside if one.why is None else found.excluded).append(one)
    for events in (found.inside, found.excluded):
        events.sort(key=lambda event: (event.time_ms, event.batch_id, event.file, event.row))
    return found


def _judged(
    cut: Cut,
    event: SourceEvent,
    said: EventOf | None,
    candidates: Sequence[Bounds],
    until_batch: int | None,
    recomputed_by: int,
) -> EventOf:
    """An event of the source with what became of it. `said`: by `late_events` or `quarantine`.

    The first of the candidates is the window that is asked about.
    """
    known = EventOf(event.file, event.row, event.time_ms, event.batch_id, event.values)
    if said is not None and said.why is not None:
        return replace(known, why=said.why)
    if said is not None:
        return replace(known, readmitted_by=said.readmitted_by)
    if until_batch is not None and event.batch_id > until_batch:
        return replace(known, why="it came after this result; it is in the window in flight that will replace it")
    if cut.definition.spec.time != "event":
        return known
    open_then = [one for one in candidates if _open_to(cut, event, one)]
    if cut.definition.spec.assigner.merges:
        holder = min(open_then, key=lambda one: one[1], default=candidates[0])
        return known if holder == candidates[0] else replace(known, why=f"it is in the session {in_words(holder)}")
    if not open_then and event.batch_id >= recomputed_by:
        return replace(known, why="this window was past its cleanup time when it came; it is in later ones only")
    return known


def _open_to(cut: Cut, event: SourceEvent, bounds: Bounds) -> bool:
    """Whether a window holds an event's time, and was not past its cleanup time when the event's batch began."""
    if not bounds[0] <= event.time_ms < bounds[1]:
        return False
    return not was_cleaned_up(TimeWindow(*bounds), cut.batches[event.batch_id].late_in_ms)


def _recomputed_by(cut: Cut, bounds: Bounds) -> int:
    """The last rerun that has recomputed a tumbling or sliding window; 0 without any."""
    if cut.definition.spec.assigner.merges:
        return 0
    window = TimeWindow(*bounds)
    return max((batch_id for batch_id, span in recomputed(cut).items() if span.meets(window)), default=0)


def _rivals(windows: KeyWindows, bounds: Bounds) -> list[Bounds]:
    """Other sessions of the key that overlap a session; not those that one of them will replace."""
    if not windows.cut.definition.spec.assigner.merges:
        return []
    span = span_of(bounds)
    flying = windows.in_flight(span)
    pairs = {(one.bounds_ms, old) for one in flying for old in one.replaces_ms}
    others = {row["bounds"] for row in windows.published(span)} | {one.bounds_ms for one in flying}
    return sorted(one for one in others - {bounds} if (one, bounds) not in pairs and (bounds, one) not in pairs)


# -- what the tables say -----------------------------------------------------------------------------------------


def _late(cut: Cut, key: Key, span: TimeRange) -> Iterable[EventOf]:
    for row in late_rows(cut, span, readmitted=True, key=key):
        again = row["readmitted_by"]
        why = None if again is not None else _why_late(row)
        yield _said(cut, row, why, again)


def _why_late(row: Mapping[str, Any]) -> str:
    if reason(row) == NO_WINDOW:
        return f"late by {how_late(row['late_by_ms'])}, and between two windows"
    window = in_words((time_of(row["window_start"]), time_of(row["window_end"])))
    return f"late: {window} had been past its cleanup time by {how_late(row['late_by_ms'])} when it came"


def _refused(cut: Cut, key: Key, span: TimeRange, events: Iterable[SourceEvent]) -> Iterable[EventOf]:
    """Quarantined rows in the span that are among the events, or of which the table keeps this key."""
    places = {(event.file, event.row) for event in events}
    files = overlapping(cut.files("quarantine"), "event_time", "event_time", span)
    for row in cut.rows("quarantine", files, where=within("event_time", span)):
        if (row["source_file"], row["source_row"]) in places or is_raw_of(key, row["raw"]):
            yield _said(cut, row, f"quarantined: {row['reason']}", None)


def _said(cut: Cut, row: Mapping[str, Any], why: str | None, readmitted_by: int | None) -> EventOf:
    """What a table says of a row of the source."""
    raw = raw_row(row["raw"])
    values = {name: raw.get(name) for name in shown_columns(cut.definition)}
    at_ms = time_of(row["event_time"])
    return EventOf(row["source_file"], row["source_row"], at_ms, row["batch_id"], values, why, readmitted_by)


def raw_row(raw: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """A row as `late_events` and `quarantine` keep it, a JSON object; nothing for a line that could not be parsed.

    >>> raw_row('{"user": "ann"}'), raw_row("ann,17,x"), raw_row("17")
    ({'user': 'ann'}, {}, {})
    """
    try:
        row = json.loads(raw, parse_float=parse_float)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def is_raw_of(key: Key, raw: str) -> bool:
    """Whether a row that a table keeps as JSON has a key; its numbers are compared with all their digits."""
    return key.is_of(raw_row(raw, Decimal))


def _matched(
    events: Iterable[SourceEvent], said: Iterable[EventOf]
) -> tuple[list[tuple[SourceEvent, EventOf | None]], list[EventOf]]:
    """Each row of the source with what a table says of it; and what tables say of rows that could not be read."""
    waiting = {(one.file, one.row): one for one in said}
    known = [(event, waiting.pop((event.file, event.row), None)) for event in events]
    return known, list(waiting.values())
