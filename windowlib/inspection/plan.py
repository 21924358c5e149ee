"""The plan that runs a pipeline's windows, the reason for it, and its effect on state, jobs and limits."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from windowlib.definition import explosion
from windowlib.definition.definition import Definition
from windowlib.definition.several import sharing_refusal
from windowlib.definition.toml.durations import format_duration as duration
from windowlib.definition.toml.file import Storage
from windowlib.definition.toml.windows import (
    firing_in_words,
    uses_processing_time,
    why_element_by_element,
    windows_in_words,
)
from windowlib.model.geometry import geometry_of
from windowlib.model.spec import WindowSpec
from windowlib.source.footers import may_suffice

ORDER_FREE = (
    "the windows use event time and fire when the watermark passes their end, and their aggregates can be merged. So"
    " the order of events inside a batch cannot change a result, and slices are shuffled instead of events"
)
BY_NUMBER = (
    "the running number of an event in its key decides its windows, so events are numbered in order of arrival, and"
    " slices of consecutive events are merged"
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Description of the plan of a definition. `jobs` has a line for each Spark job of a batch."""

    pipeline: str
    plan: str
    windows: str
    why: str
    slices: str
    state: str
    jobs: list[str]
    together: str
    notes: list[str]


def explain(definition: Definition) -> Explanation:
    """Describes the plan that runs a definition. Reads no table and does not start Spark."""
    why, slices, state = _of(definition)
    return Explanation(
        pipeline=definition.name,
        plan=definition.plan.name,
        windows="; ".join(_windows(definition)),
        why=why,
        slices=slices,
        state=f"{state}, {_partitions(definition.spec, definition.storage)}",
        jobs=list(_jobs(definition)),
        together=_together(definition),
        notes=list(_notes(definition)),
    )


def _together(definition: Definition) -> str:
    why = sharing_refusal(definition)
    if why is None:
        return "it shares one read and one set of slices with other definitions over the same files"
    return f"it shares nothing with other definitions: {why}"


def _windows(definition: Definition) -> list[str]:
    window, keys = definition.window, definition.source.key
    words = [windows_in_words(window), f"by {', '.join(keys)}" if keys else "over all events (no key)"]
    if window.size_and_slide is None:
        words.append(f"fires {firing_in_words(window)}")
        if window.time == "event" and window.ends:
            kept_for = f"kept {duration(window.allowed_lateness_ms)}" if window.allowed_lateness_ms else "not kept"
            words.append(f"{kept_for} for late events")
    if window.own_evictor:
        words.append(f"of its events {window.own_evictor.words}")
    if window.function:
        words.append(f"results by {window.function}")
    return words


def _of(definition: Definition) -> tuple[str, str, str]:
    """Reason for the plan, shuffled rows, and state, in words."""
    session_state = "one row for each key and session in flight"
    aligned_state = "one row for each key and slice that a window in flight covers"
    window, geometry = definition.window, geometry_of(definition.spec.assigner)
    if definition.plan.runs_operator:
        state = "one row for each key and window, with what its trigger remembers"
        if definition.spec.keeps_elements:
            state += "; the elements themselves are in state_windows, which is append-only"
        return _why_general(definition), "nothing: every event goes to the task of its key, in order of arrival", state
    if window.size_and_slide is not None:
        slices = f"{gcd(*window.size_and_slide):,} events of a key that follow one another"
        return BY_NUMBER, slices, "one row for each key and slice in flight"
    if geometry.gap_column is not None:
        return ORDER_FREE, "the events of a key at one time, with the longest of their gaps", session_state
    if geometry.calendar is not None:
        shared = geometry.most_windows or 1
        bucket = f"the events of a key in {geometry.calendar.every} of {geometry.calendar.time_zone}"
        return ORDER_FREE, bucket + (f", shared by up to {shared:,} windows" if shared > 1 else ""), aligned_state
    assert geometry.slice_ms is not None, f"no native plan for {definition.spec.assigner}"
    width, shared = duration(geometry.slice_ms), geometry.most_windows or 1
    if geometry.merges:
        bucket = f"the events of a key in one bucket of {width}, which belong to one session in any case"
        return ORDER_FREE, bucket, session_state
    whole = "one window of " if geometry.slice_ms == geometry.longest_ms == geometry.starts_every_ms else ""
    bucket = f"the events of a key in {whole}{width}" + (f", shared by up to {shared:,} windows" if shared > 1 else "")
    return ORDER_FREE, bucket, aligned_state


def _why_general(definition: Definition) -> str:
    """Sentence that names the parts of the definition that no native plan can run exactly."""
    reasons = "; ".join(why_element_by_element(definition.window))
    return f"{reasons}: so the operator runs for each key, element by element in order of arrival"


def _partitions(spec: WindowSpec, storage: Storage) -> str:
    if geometry_of(spec.assigner).ends is False:
        return "in one partition, as they have no end"
    return f"in partitions of {duration(storage.state_partition_ms)} of their end"


def _jobs(definition: Definition) -> list[str]:
    source, spec = definition.source, definition.spec
    jobs = []
    if source.is_text:
        jobs.append("parsing: the text is read once")
    if source.event_id:
        horizon_ms = definition.dedup_horizon_ms
        over = "all earlier events" if horizon_ms is None else duration(horizon_ms)
        jobs.append(f"duplicates: two jobs, by {source.event_id}, over {over}")
    by_time = may_suffice(spec.assigner, by_event_time=spec.time == "event")
    by_footers = not source.is_text and not source.event_id and by_time
    when = ", only if the footers of the files cannot rule out refused rows" if by_footers else ""
    jobs.append(f"figures: the new watermark{when}")
    jobs.append(f"windows: {definition.plan.work}, windows, what fires, what stays in flight")
    jobs.append("quarantine, late events, replaced results: one or two jobs each, only if there are such rows")
    return jobs


def _notes(definition: Definition) -> list[str]:
    aggregates, notes, spec = definition.aggregates, [], definition.spec
    general, geometry = definition.plan.runs_operator, geometry_of(spec.assigner)
    if aggregates.needs_arrival and not general:
        notes.append("first and last go by event time, then arrival: they need a sort, which is slower")
    if geometry.gap_column is not None and not general:
        notes.append("each event has its own gap: events share a slice only if their times are equal")
    notes += explosion.notes(definition.window)
    if not definition.source.key:
        notes.append("without a key, one task gets all events or slices of a batch")
    if not definition.spec.updates_results:
        notes.append("each firing is a result of its own, numbered by firing")
    if uses_processing_time(definition.window):
        notes.append("processing time is the plan time of a run: it does not advance between runs")
        if spec.time == "event" and geometry.ends is not False:
            notes.append(
                "a window is dropped without that result if the watermark passes it before the clock has fired it"
            )
    if general and spec.keeps_elements:
        notes.append("a task holds the elements of one key's windows in flight in memory, one key at a time")
    if general and geometry.ends is False:
        notes.append("the window never ends: every key keeps a row in the state forever")
    return notes
