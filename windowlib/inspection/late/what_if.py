"""Effect of other allowed latenesses: late events that they would have kept, and results that would differ.

Assumes that the allowed lateness was L from the first batch on. An event is then kept if `watermark_ms -
max_timestamp_ms < L`. `watermark_ms` is the watermark that made the event late; `max_timestamp_ms` belongs to its
window. The watermark depends on event times alone, so it is the same for every L.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowlib.definition.instants import nearest_utc, time_of, utc
from windowlib.definition.toml.durations import LONGEST_MS, UNITS, format_duration
from windowlib.delta.statistics import overlapping
from windowlib.inspection.late.events import late_rows
from windowlib.inspection.lineage.cuts import EVER, Cut
from windowlib.model.geometry import geometry_of
from windowlib.model.rerun import TimeRange
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.model.windows import TimeWindow
from windowlib.publication.key import CannotLook

USUAL_MS = tuple(n * UNITS[unit] for n, unit in ((5, "m"), (1, "h"), (6, "h"), (1, "d"), (7, "d")))
BOUNDS = ("window_start", "window_end")


@dataclass(frozen=True, slots=True)
class AllowanceEffect:
    """Effect of an allowed lateness. It would have kept `events` late events, and `windows` results would differ.

    `windows_kept` counts the published windows that would still accept late events after the newest batch. It is None
    if they cannot be counted.
    """

    allowed_lateness_ms: int
    events: int
    share: float
    windows: int
    windows_kept: int | None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Late events of a pipeline with its present allowed lateness. `rows` holds the effects of other allowed
    latenesses.
    """

    pipeline: str
    allowed_lateness_ms: int
    late: int
    windows_kept: int | None
    rows: list[AllowanceEffect]
    notes: list[str]


def allowances(asked_ms: Sequence[int], present_ms: int) -> list[int]:
    """Requested allowed latenesses. If none is requested, the usual values above the present allowed lateness.

    Raises `CannotLook` if a requested value does not exceed the present allowed lateness, or if no usual value does.

    >>> [format_duration(ms) for ms in allowances([], 3_600_000)]
    ['6h', '1d', '7d']
    """
    for ms in asked_ms:
        if ms <= present_ms:
            raise CannotLook(
                f"--allow {format_duration(ms)} would not have kept more events: allowed_lateness is already"
                f" {format_duration(present_ms)}. Give a longer duration"
            )
    chosen_ms = sorted(set(asked_ms)) or [ms for ms in USUAL_MS if ms > present_ms]
    if not chosen_ms:
        raise CannotLook(
            f"the present allowed_lateness of {format_duration(present_ms)} exceeds the usual choices: give a longer"
            " duration with --allow"
        )
    return chosen_ms


def what_if(cut: Cut, asked_ms: Sequence[int], span: TimeRange = EVER, *, published_too: bool = True) -> WhatIf:
    """Effect of other allowed latenesses on the late events with an event time in the span.

    Without `published_too`, published windows are not counted, and their files are not opened.
    """
    definition = cut.definition
    present_ms = definition.spec.allowed_lateness_ms
    chosen = allowances(asked_ms, present_ms)
    columns = [*definition.source.key, "event_time", *BOUNDS, "watermark", "late_by_ms", "readmitted_by"]
    rows = late_rows(cut, span, readmitted=True, columns=columns)
    ends = _ends(cut, chosen[-1]) if published_too else None

    def published(allowed_ms: int) -> int | None:
        if ends is None:
            return None
        if not ends:
            return 0
        after = pa.scalar(utc(max(EVER.from_ms, cut.batch.watermark_out_ms + 1 - allowed_ms)))
        return sum(pc.sum(pc.greater(column, after)).as_py() or 0 for column in ends)

    effects = []
    for allowed_ms in chosen:
        events = sum(row["window_start"] is not None and _past_ms(row) < allowed_ms for row in rows)
        changed = {window for row in rows for window in _windows(cut, row, allowed_ms)}
        share = events / len(rows) if rows else 0.0
        effects.append(AllowanceEffect(allowed_ms, events, share, len(changed), published(allowed_ms)))
    notes = list(_notes(cut, rows))
    return WhatIf(definition.name, present_ms, len(rows), published(present_ms), effects, notes)


def _past_ms(row: Mapping[str, Any]) -> int:
    """Watermark minus the `max_timestamp_ms` of the window that a late event missed."""
    if row["late_by_ms"] > LONGEST_MS:  # the end of the source had been declared
        return int(row["late_by_ms"])
    return time_of(row["watermark"]) - (time_of(row["window_end"]) - 1)


def _windows(cut: Cut, row: Mapping[str, Any], allowed_ms: int) -> Iterator[tuple[Any, ...]]:
    """Windows that would have accepted a late event with the allowed lateness `allowed_ms`."""
    if row["window_start"] is None:
        return
    key = tuple(row[name] for name in cut.definition.source.key)
    last = TimeWindow(time_of(row["window_start"]), time_of(row["window_end"]))
    past_ms = _past_ms(row)
    for window in geometry_of(cut.definition.spec.assigner).windows_until(last, time_of(row["event_time"])):
        if past_ms + last.end_ms - window.end_ms < allowed_ms:
            yield (*key, *window)


def _ends(cut: Cut, longest_ms: int) -> list[pa.ChunkedArray] | None:
    """Ends of the published windows that the longest allowed lateness would keep. None if they cannot be counted."""
    definition, watermark_ms = cut.definition, cut.batch.watermark_out_ms
    if not definition.plan.windows_end or not definition.spec.updates_results or definition.spec.time != "event":
        return None
    if watermark_ms == MAX_WATERMARK:
        return []
    span = TimeRange(max(EVER.from_ms, watermark_ms - longest_ms), EVER.to_ms)
    files = overlapping(cut.files("results"), "window_end", "window_end", span)
    later = pc.field("window_end") > pa.scalar(nearest_utc(span.from_ms))
    return [rows["window_end"] for _, rows in cut.read("results", files, columns=["window_end"], where=later)]


def _notes(cut: Cut, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    geometry = geometry_of(cut.definition.spec.assigner)
    if not rows:
        return
    yield (
        "a changed allowed_lateness takes effect with the next batch. Events of windows that are already cleaned up"
        " stay late until a rerun readmits them"
    )
    if geometry.merges:
        yield (
            "sessions: the events are a lower bound, because a kept event extends its session, which may keep other"
            " late events. The windows are those that the events missed; several may belong to one session"
        )
    elif (geometry.most_windows or 1) > 1:
        yield (
            "windows that overlap: the windows are a lower bound, because events that were too late for only some of"
            " their windows are not in late_events"
        )
    if between := sum(row["window_start"] is None for row in rows):
        yield f"{between:,} of them fell between two windows: no allowed_lateness brings them into one"
    if again := sum(row["readmitted_by"] is not None for row in rows):
        yield f"{again:,} of them {'was' if again == 1 else 'were'} readmitted by a rerun since"
    if finished := sum(row["late_by_ms"] > LONGEST_MS for row in rows):
        yield f"{finished:,} of them came after --finish had fired every window: no allowed_lateness keeps them"
