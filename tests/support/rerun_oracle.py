"""Expected tables after a rerun, from the rule alone: plain Python over all events, one key after another.

Of the project's assigners only the parameters are read; which windows and slices hold an event is worked out here.
Edges of calendars are those of the model, which has an oracle of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tests.support.aligned_windows import cumulating_at, slice_at, windows_at
from windowlib.model.assigners import (
    Assigner,
    CalendarCumulating,
    CalendarWindows,
    Cumulating,
    DynamicSession,
    Session,
    Sliding,
    Tumbling,
)

Place = tuple[str, int]  # file, row
Bounds = tuple[str, int, int]  # key, start, end
Held = tuple[int, int]  # count, sum


@dataclass(frozen=True)
class Row:
    """An event and where it stands in the source."""

    key: str
    time_ms: int
    value: int
    gap_ms: int
    place: Place


@dataclass
class Standing:
    """Contents of the tables: windows published, windows (aligned: slices) in flight, late events in no window."""

    results: dict[Bounds, Held] = field(default_factory=dict)
    in_flight: dict[Bounds, Held] = field(default_factory=dict)
    late: set[Place] = field(default_factory=set)


@dataclass(frozen=True)
class Asked:
    """A rerun: of a range, or of the late events in it (of one key)."""

    from_ms: int
    to_ms: int
    late_only: bool = False
    key: str | None = None

    def holds(self, row: Row) -> bool:
        return self.from_ms <= row.time_ms < self.to_ms and self.key in (None, row.key)

    def meets(self, start_ms: int, end_ms: int) -> bool:
        return start_ms < self.to_ms and self.from_ms < end_ms


@dataclass(frozen=True)
class Pipeline:
    """The windows, and the watermark that stands."""

    assigner: Assigner
    allowed_lateness_ms: int
    watermark_ms: int

    def fired(self, end_ms: int) -> bool:
        return end_ms - 1 <= self.watermark_ms

    def kept(self, end_ms: int) -> bool:
        return end_ms - 1 + self.allowed_lateness_ms > self.watermark_ms

    def windows(self, row: Row) -> list[tuple[int, int]]:
        match self.assigner:
            case Session(gap_ms=gap_ms):
                return [(row.time_ms, row.time_ms + gap_ms)]
            case DynamicSession():
                return [(row.time_ms, row.time_ms + row.gap_ms)]
        return _windows_at(self.assigner, row.time_ms)


def _windows_at(assigner: Assigner, time_ms: int) -> list[tuple[int, int]]:
    if isinstance(assigner, Cumulating):
        return cumulating_at(time_ms, assigner.max_size_ms, assigner.step_ms, assigner.offset_ms)
    if isinstance(assigner, CalendarWindows | CalendarCumulating):
        return [(window.start_ms, window.end_ms) for window in assigner.assign(time_ms)]
    return windows_at(time_ms, *_grid(assigner))


def _slice_at(assigner: Assigner, time_ms: int) -> tuple[int, int]:
    if isinstance(assigner, Cumulating):
        return slice_at(time_ms, assigner.step_ms, assigner.step_ms, assigner.offset_ms)
    if isinstance(assigner, CalendarWindows | CalendarCumulating):
        calendar = assigner.calendar if isinstance(assigner, CalendarWindows) else assigner.step
        return calendar.start_ms(time_ms), calendar.next_ms(time_ms)
    return slice_at(time_ms, *_grid(assigner))


def _grid(assigner: Assigner) -> tuple[int, int, int]:
    assert isinstance(assigner, Tumbling | Sliding)
    slide_ms = assigner.size_ms if isinstance(assigner, Tumbling) else assigner.slide_ms
    return assigner.size_ms, slide_ms, assigner.offset_ms


def rerun(pipeline: Pipeline, before: Standing, rows: Sequence[Row], asked: Asked) -> Standing:
    """Contents after a rerun over the present rows of the source."""
    if isinstance(pipeline.assigner, Session | DynamicSession):
        return _sessions(pipeline, before, rows, asked)
    return _aligned(pipeline, before, rows, asked)


def _total(rows: Iterable[Row]) -> Held:
    values = [row.value for row in rows]
    return len(values), sum(values)


def _touching(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start_ms, end_ms in sorted(intervals):
        if joined and start_ms <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end_ms)
        else:
            joined.append((start_ms, end_ms))
    return joined


def _sessions(pipeline: Pipeline, before: Standing, rows: Sequence[Row], asked: Asked) -> Standing:
    after = Standing(dict(before.results), dict(before.in_flight), set(before.late))
    for key in sorted({row.key for row in rows} | {b[0] for b in (*before.results, *before.in_flight)}):
        own = [row for row in rows if row.key == key]
        chosen = [row for row in own if row.place in before.late and asked.holds(row)]
        if asked.late_only:
            own = [row for row in own if row.place not in before.late or row in chosen]
        known = [(start, end) for k, start, end in (*before.results, *before.in_flight) if k == key]
        for start_ms, end_ms in _touching([*known, *(pipeline.windows(row)[0] for row in own)]):
            inside = [row for row in own if start_ms <= row.time_ms < end_ms]
            if asked.late_only and not set(inside) & set(chosen):
                continue
            if not asked.late_only and not asked.meets(start_ms, end_ms):
                continue
            for old in [b for b in (*before.results, *before.in_flight) if b[0] == key]:
                if start_ms <= old[1] and old[2] <= end_ms:
                    after.results.pop(old, None)
                    after.in_flight.pop(old, None)
            for first_ms, last_ms in _touching(pipeline.windows(row)[0] for row in inside):
                held = _total(row for row in inside if first_ms <= row.time_ms < last_ms)
                if pipeline.fired(last_ms):
                    after.results[key, first_ms, last_ms] = held
                if pipeline.kept(last_ms):
                    after.in_flight[key, first_ms, last_ms] = held
            after.late -= {row.place for row in inside}
    return after


def _aligned(pipeline: Pipeline, before: Standing, rows: Sequence[Row], asked: Asked) -> Standing:
    assigner = pipeline.assigner
    disjoint = not isinstance(assigner, Sliding) or assigner.slide_ms >= assigner.size_ms
    if isinstance(assigner, CalendarWindows):
        disjoint = assigner.intervals == 1
    if asked.late_only:
        chosen = {row.place for row in rows if row.place in before.late and asked.holds(row)}
        times = [row.time_ms for row in rows if row.place in chosen]
        asked = replace(asked, from_ms=min(times), to_ms=max(times) + 1)
    else:
        chosen = {
            row.place
            for row in rows
            if (any(asked.meets(*bounds) for bounds in pipeline.windows(row)) if disjoint else asked.holds(row))
        }
    if isinstance(
        assigner, Cumulating | CalendarCumulating
    ):  # an event of the range may be in all windows with the same start
        (from_ms, _), (_, to_ms) = (_windows_at(assigner, ms)[-1] for ms in (asked.from_ms, asked.to_ms - 1))
        asked = replace(asked, from_ms=from_ms, to_ms=to_ms)
    chosen = {row.place for row in rows if row.place in chosen and pipeline.windows(row)}
    counted = [row for row in rows if row.place not in before.late or row.place in chosen]
    after = Standing(
        {b: held for b, held in before.results.items() if not asked.meets(b[1], b[2])},
        dict(before.in_flight),
        before.late - chosen,
    )
    windows: dict[Bounds, list[Row]] = {}
    slices: dict[Bounds, list[Row]] = {}
    for row in counted:
        for start_ms, end_ms in pipeline.windows(row):
            if asked.meets(start_ms, end_ms) and pipeline.fired(end_ms):
                windows.setdefault((row.key, start_ms, end_ms), []).append(row)
        start_ms, end_ms = _slice_at(assigner, row.time_ms)
        over = _windows_at(assigner, start_ms)
        if over and pipeline.kept(over[-1][1]):
            slices.setdefault((row.key, start_ms, end_ms), []).append(row)
    after.results |= {bounds: _total(held) for bounds, held in windows.items()}
    if not any(row.place in chosen or asked.holds(row) for row in rows) and not before.in_flight:
        return after
    # A slice outside of what was asked has the events it had: only those of the range have changed.
    after.in_flight = {bounds: _total(held) for bounds, held in slices.items()}
    return after
