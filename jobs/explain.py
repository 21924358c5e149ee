"""Which plan runs a pipeline's windows, why, and what that means for its state, its jobs and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from jobs import definition_windows as windows
from jobs.definition import Definition
from jobs.durations import format_duration as duration
from jobs.window_words import evictor_in_words, trigger_in_words, windows_in_words
from windowlib.assigners import DynamicSession, Global, Session, Sliding, Tumbling
from windowlib.plans.kind import PlanKind

ORDER_FREE = (
    "windows of event time that fire when the watermark passes their end, over aggregates that can be merged: the order"
    " of events inside a batch cannot change a result, so slices of them are shuffled, never the events themselves"
)
BY_NUMBER = (
    "which window an event is in follows from its running number in its key, so numbers are counted in order of arrival"
    " and slices of consecutive events are put together"
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
    why, slices, state = _of(definition)
    return Explanation(
        pipeline=definition.name,
        plan=definition.plan.value,
        windows="; ".join(_windows(definition)),
        why=why,
        slices=slices,
        state=f"{state}, in partitions of {duration(definition.storage.state_partition_ms)} of their end",
        jobs=list(_jobs(definition)),
        notes=list(_notes(definition)),
    )


def _windows(definition: Definition) -> list[str]:
    window, keys = definition.window, definition.source.key
    said = [windows_in_words(window), f"by {', '.join(keys)}" if keys else "over all events (no key)"]
    trigger, evictor = getattr(window, "own_trigger", None), getattr(window, "own_evictor", None)
    if not isinstance(window, windows.TumblingCountWindow | windows.SlidingCountWindow):
        said.append(f"fires {trigger_in_words(trigger, window)}")
        said.append(f"kept {duration(window.allowed_lateness_ms)} for late events")
    if evictor:
        said.append(f"of its events {evictor_in_words(evictor)}")
    if window.function:
        said.append(f"results by {window.function}")
    return said


def _of(definition: Definition) -> tuple[str, str, str]:
    """Why this plan, what is shuffled, and the state, in words."""
    session_state = "one row for each key and session in flight"
    aligned_state = "one row for each key and slice that a window in flight covers"
    window, assigner = definition.window, definition.spec.assigner
    if definition.plan is PlanKind.GENERAL:
        state = "one row for each key and window, with what its trigger remembers"
        if definition.spec.keeps_elements:
            state += "; the elements themselves in state_windows, appended and not written again when a window grows"
        return _why_general(definition), "nothing: every event goes to the task of its key, in order of arrival", state
    if isinstance(window, windows.TumblingCountWindow | windows.SlidingCountWindow):
        width = gcd(window.size, window.slide)
        return (
            BY_NUMBER,
            f"{width:,} events of a key that follow one another",
            "one row for each key and slice in flight",
        )
    match assigner:
        case Session(gap_ms=gap_ms):
            bucket = f"the events of a key in one bucket of {duration(gap_ms)}, which belong to one session in any case"
            return ORDER_FREE, bucket, session_state
        case DynamicSession():
            return ORDER_FREE, "the events of a key at one time, with the longest of their gaps", session_state
        case Tumbling(size_ms=size_ms):
            return ORDER_FREE, f"the events of a key in one window of {duration(size_ms)}", aligned_state
        case Sliding(size_ms=size_ms, slide_ms=slide_ms):
            width, shared = gcd(size_ms, slide_ms), -(-size_ms // slide_ms)
            bucket = f"the events of a key in {duration(width)}, shared by up to {shared:,} windows"
            return ORDER_FREE, bucket, aligned_state
    raise AssertionError(f"no native plan for {assigner}")


def _why_general(definition: Definition) -> str:
    """What of the definition no native plan can do exactly."""
    window, reasons = definition.window, []
    trigger, evictor = getattr(window, "own_trigger", None), getattr(window, "own_evictor", None)
    if window.function:
        reasons.append(f"{window.function} is Python code")
    if trigger and not isinstance(trigger, windows.EventTime):
        reasons.append(f"the trigger {trigger.type} is asked at every element or timer")
    if evictor:
        reasons.append(f"the evictor {evictor.type} chooses among the elements of a window")
    if window.time == "processing":
        reasons.append("windows of processing time depend on when a run takes an event in")
    if getattr(window, "stagger", False):
        reasons.append("each key's windows are shifted by a share of its own")
    if isinstance(window, windows.GlobalWindow | windows.OwnWindow):
        reasons.append(f"no slices can be told for {windows_in_words(window)}")
    return f"{'; '.join(reasons)}: so the operator runs for each key, element by element in order of arrival"


def _jobs(definition: Definition) -> list[str]:
    source, assigner = definition.source, definition.spec.assigner
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
    aggregates, notes, spec = definition.aggregates, [], definition.spec
    general = definition.plan is PlanKind.GENERAL
    if aggregates.needs_arrival and not general:
        notes.append("first and last go by event time, then by arrival: they aggregate by sorting, which is slower")
    if isinstance(spec.assigner, DynamicSession) and not general:
        notes.append("a gap for each event: events share a slice only where their times are equal")
    if not definition.source.key:
        notes.append("without a key the events or slices of a batch meet in one task")
    if general and spec.keeps_elements:
        notes.append("a task holds the elements of one key's windows in flight while it is that key's turn")
    if general and isinstance(spec.assigner, Global):
        notes.append("the window never ends: every key keeps a row in the state for ever")
    return notes
