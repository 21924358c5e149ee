"""What other allowances would have kept of the late events, and what that would have changed.

With an allowance L from the beginning on, an event would have been kept exactly if the watermark that made it late was
less than L past the last millisecond of its window: the watermark moves by event times alone, whatever is kept. Which
allowance it was late under does not matter.
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
from windowlib.model.assigners import Sliding, Staggered
from windowlib.model.rerun import TimeRange
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.publication.key import CannotLook

USUAL_MS = tuple(n * UNITS[unit] for n, unit in ((5, "m"), (1, "h"), (6, "h"), (1, "d"), (7, "d")))
BOUNDS = ("window_start", "window_end")


@dataclass(frozen=True, slots=True)
class AllowanceEffect:
    """What an allowance would have kept: `events` of all late ones, which are part of `windows` other results.

    `windows_kept`: published windows that would still be kept for late events after the newest batch.
    """

    allowed_lateness_ms: int
    events: int
    share: float
    windows: int
    windows_kept: int | None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The late events of a pipeline under the allowance it has, and under others (`rows`)."""

    pipeline: str
    allowed_lateness_ms: int
    late: int
    windows_kept: int | None
    rows: list[AllowanceEffect]
    notes: list[str]


def allowances(asked_ms: Sequence[int], present_ms: int) -> list[int]:
    """The allowances to look at; raises `CannotLook` for one that is not larger than the present one.

    >>> [format_duration(ms) for ms in allowances([], 3_600_000)]
    ['6h', '1d', '7d']
    """
    for ms in asked_ms:
        if ms <= present_ms:
            raise CannotLook(
                f"--allow {format_duration(ms)} is not more than the allowed_lateness that the pipeline has"
                f" ({format_duration(present_ms)}), so it would have kept nothing more"
            )
    found = sorted(set(asked_ms)) or [ms for ms in USUAL_MS if ms > present_ms]
    if not found:
        raise CannotLook(
            f"choose one: --allow with more than the present allowed_lateness {format_duration(present_ms)}"
        )
    return found


def what_if(cut: Cut, asked_ms: Sequence[int], span: TimeRange = EVER, *, published_too: bool = True) -> WhatIf:
    """What other allowances would have kept of the late events with an event time in the span.

    Unless `published_too`, published windows are not counted: their files are then not opened.
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

    found = []
    for allowed_ms in chosen:
        events = sum(row["window_start"] is not None and _past_ms(row) < allowed_ms for row in rows)
        changed = {window for row in rows for window in _windows(cut, row, allowed_ms)}
        share = events / len(rows) if rows else 0.0
        found.append(AllowanceEffect(allowed_ms, events, share, len(changed), published(allowed_ms)))
    notes = list(_notes(cut, rows))
    return WhatIf(definition.name, present_ms, len(rows), published(present_ms), found, notes)


def _past_ms(row: Mapping[str, Any]) -> int:
    """How far the watermark was past the last millisecond of the window that a late event missed."""
    if row["late_by_ms"] > LONGEST_MS:  # the end of the source had been declared
        return int(row["late_by_ms"])
    return time_of(row["watermark"]) - (time_of(row["window_end"]) - 1)


def _windows(cut: Cut, row: Mapping[str, Any], allowed_ms: int) -> Iterator[tuple[Any, ...]]:
    """The windows that an allowance would have let a late event into."""
    if row["window_start"] is None:
        return
    key = tuple(row[name] for name in cut.definition.source.key)
    start_ms, end_ms, event_ms = time_of(row["window_start"]), time_of(row["window_end"]), time_of(row["event_time"])
    assigner, past_ms = cut.definition.spec.assigner, _past_ms(row)
    if isinstance(assigner, Staggered):
        assigner = assigner.of
    while past_ms < allowed_ms and event_ms < end_ms:
        yield (*key, start_ms, end_ms)
        if not isinstance(assigner, Sliding):
            return
        start_ms, end_ms = start_ms - assigner.slide_ms, end_ms - assigner.slide_ms  # the window before
        past_ms += assigner.slide_ms


def _ends(cut: Cut, longest_ms: int) -> list[pa.ChunkedArray] | None:
    """The ends of the published windows that the longest allowance would keep; None where firings are many a window."""
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
    assigner = cut.definition.spec.assigner
    if isinstance(assigner, Staggered):
        assigner = assigner.of
    if not rows:
        return
    yield (
        "another allowed_lateness in the definition comes into force with the next batch: what has been cleaned up"
        " stays late, and a rerun brings these events in"
    )
    if assigner.merges:
        yield (
            "sessions: a lower bound. An event that is kept makes its session longer, which may keep others that are"
            " late now; windows are those that the events had missed, which may be one session"
        )
    if isinstance(assigner, Sliding) and assigner.slide_ms < assigner.size_ms:
        yield (
            "sliding windows: a lower bound of windows. Events that came too late for some of their windows only are"
            " not in late_events"
        )
    if between := sum(row["window_start"] is None for row in rows):
        yield f"{between:,} of them fell between two windows: no allowed_lateness brings them into one"
    if again := sum(row["readmitted_by"] is not None for row in rows):
        yield f"{again:,} of them {'was' if again == 1 else 'were'} readmitted by a rerun since"
    if finished := sum(row["late_by_ms"] > LONGEST_MS for row in rows):
        yield f"{finished:,} of them came after --finish had fired every window: no allowed_lateness keeps them"
