"""Which plan runs a pipeline's windows, why, and what that means for its state, its jobs and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from jobs.definition import Definition
from jobs.durations import format_duration as duration
from windowlib.assigners import DynamicSession, Session, Sliding, Tumbling

ORDER_FREE = (
    "windows of event time that fire when the watermark passes their end, over aggregates that can be merged: the order"
    " of events inside a batch cannot change a result, so slices of them are shuffled, never the events themselves"
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a definition is run, in words. `jobs` are the Spark jobs of a batch, one line each."""

    pipeline: str
    plan: str
    windows: str
    why: str
    slices: str
    state: str
    jobs: list[str]
    notes: list[str]


def explain(definition: Definition) -> Explanation:
    """Says how a definition is run. Reads no table, starts no Spark."""
    assigner, source = definition.window.assigner, definition.source
    keys = f"by {', '.join(source.key)}" if source.key else "over all events (no key)"
    lateness = f"kept {duration(definition.window.allowed_lateness_ms)} for late events"
    name, windows, slices, state = _of(assigner)
    return Explanation(
        pipeline=definition.name,
        plan=name,
        windows=f"{windows}, {keys}, {lateness}",
        why=ORDER_FREE,
        slices=slices,
        state=f"{state}, in partitions of {duration(definition.storage.state_partition_ms)} of their end",
        jobs=list(_jobs(definition)),
        notes=list(_notes(definition)),
    )


def _of(assigner: Tumbling | Sliding | Session | DynamicSession) -> tuple[str, str, str, str]:
    """The name of the plan, the windows, the slices and the state in words."""
    session_state = "one row for each key and session in flight"
    aligned_state = "one row for each key and slice that a window in flight covers"
    match assigner:
        case Session(gap_ms=gap_ms):
            bucket = f"the events of a key in one bucket of {duration(gap_ms)}, which belong to one session in any case"
            return "sessions", f"sessions with a gap of {duration(gap_ms)}", bucket, session_state
        case DynamicSession(gap_column=column):
            bucket = "the events of a key at one time, with the longest of their gaps"
            return "sessions", f"sessions with the gap that each event has in {column}", bucket, session_state
        case Tumbling(size_ms=size_ms):
            bucket = f"the events of a key in one window of {duration(size_ms)}"
            return "aligned", f"tumbling windows of {duration(size_ms)}", bucket, aligned_state
        case Sliding(size_ms=size_ms, slide_ms=slide_ms):
            width, windows = gcd(size_ms, slide_ms), -(-size_ms // slide_ms)
            bucket = f"the events of a key in {duration(width)}, shared by up to {windows:,} windows"
            text = f"sliding windows of {duration(size_ms)} every {duration(slide_ms)}"
            return "aligned", text, bucket, aligned_state


def _jobs(definition: Definition) -> list[str]:
    source, assigner = definition.source, definition.window.assigner
    has_holes = isinstance(assigner, Sliding) and assigner.slide_ms > assigner.size_ms
    found = []
    if source.format in ("json", "csv"):
        found.append("parsing: the text is read once")
    if source.event_id:
        found.append(f"duplicates: two jobs, by {source.event_id}, over {duration(source.dedup_horizon_ms)}")
    by_rows = source.format in ("json", "csv") or source.event_id or has_holes or isinstance(assigner, DynamicSession)
    when = "" if by_rows else ", only where the footers of the files leave open whether a row is refused"
    found.append(f"figures: how far time moves{when}")
    found.append("windows: slices, windows, what fires, what stays in flight")
    found.append("quarantine, late events, replaced results: one or two jobs each, only where there are any")
    return found


def _notes(definition: Definition) -> list[str]:
    aggregates, notes = definition.aggregates, []
    if aggregates.needs_arrival:
        notes.append("first and last go by event time, then by arrival: they aggregate by sorting, which is slower")
    if isinstance(definition.window.assigner, DynamicSession):
        notes.append("a gap for each event: events share a slice only where their times are equal")
    if not definition.source.key:
        notes.append("without a key the slices of a batch meet in one task")
    return notes
