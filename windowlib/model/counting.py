"""Faster equivalent of the operator for count triggers over aggregates: about six times as many elements a second.

Most elements of a key join the window of the previous element. This module adds such elements in a few steps, with the
window's bounds, contents and count in local variables. All other elements go to the operator itself. Outputs and state
equal the operator's; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from windowlib.model.assigners import DynamicSession, Global, Session, Tumbling
from windowlib.model.elements import Element, Firing, Input, Output, ProcessingTime, Timing, Watermark
from windowlib.model.operator import over_up_to_ms_of, step
from windowlib.model.spec import WindowSpec
from windowlib.model.state import KeyState, OperatorState
from windowlib.model.triggers import CountTrigger, PurgingTrigger, Timers
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS, TimeWindow, touches


def fits(spec: WindowSpec) -> bool:
    """Tests if this module can run the spec.

    >>> from windowlib import CountEvictor, Sum
    >>> fits(WindowSpec(Session(5), Sum(), CountTrigger(3))), fits(WindowSpec(Session(5), Sum()))
    (True, False)
    """
    has_one_window = isinstance(spec.assigner, Session | DynamicSession | Tumbling | Global)
    return has_one_window and not spec.keeps_elements and spec.process is None and _count_of(spec) is not None


def on_elements(spec: WindowSpec, shared: OperatorState, key: Any, elements: Iterable[Element]) -> Iterator[Output]:
    """Adds the elements of a key and yields the outputs; ``shared`` is complete only after the last output."""
    n, aggregate, purges = _count_of(spec) or 0, spec.aggregate, isinstance(spec.trigger, PurgingTrigger)
    assert aggregate is not None
    add, assign = aggregate.add, spec.assigner.assign
    gap_ms: int | None = getattr(spec.assigner, "gap_ms", None)
    merges, by_event_time = spec.assigner.merges, spec.time == "event"
    over_up_to_ms = over_up_to_ms_of(spec, shared)
    current: _Current | None = None
    for element in elements:
        time_ms = shared.processing_time_ms
        if by_event_time:
            time_ms = MIN_TIME_MS if element.timestamp_ms is None else element.timestamp_ms
        own = (time_ms, time_ms + gap_ms) if gap_ms else (time_ms, time_ms)
        if merges and not gap_ms:
            own = assign(time_ms, element.value, key)[0]
        if current is None or not (
            current.above_ms < own[0] <= current.end_ms and current.start_ms <= own[1] < current.below_ms
        ):
            if current is not None:
                current.leave(spec)
            first = TimeWindow(*own) if merges else assign(time_ms)[0]
            current = _Current.for_window(spec, shared.keys[key], first, shared)
            if current is None:
                yield from step(spec, shared, element)
                continue
        if merges:
            if own[0] < current.start_ms:
                current.start_ms = own[0]
            if own[1] > current.end_ms:
                current.end_ms = own[1]
        held = aggregate.create_accumulator() if current.contents is None else current.contents
        current.contents = held = add(held, element.value)
        current.count += 1
        if current.count >= n:
            yield current.fire(key, aggregate.get_result(held), over_up_to_ms, purges=purges)
    if current is not None:
        current.leave(spec)


def on_time(spec: WindowSpec, shared: OperatorState, key: Any, moved: Input) -> None:
    """Advances the watermark or processing time. Retires windows past their cleanup time. Other timers do not exist."""
    state = shared.keys[key]
    match moved:
        case Watermark(watermark_ms):
            shared.watermark_ms = watermark_ms
            _clean_up(spec, state, state.event_timers, watermark_ms)
        case ProcessingTime(time_ms):
            shared.processing_time_ms = time_ms
            _clean_up(spec, state, state.processing_timers, time_ms)


def _clean_up(spec: WindowSpec, state: KeyState, timers: Timers, reached_ms: int) -> None:
    due = [timer for timer in timers if timer[0] <= reached_ms]
    timers.difference_update(due)
    for time_ms, window in due:
        if time_ms == spec.cleanup_time_ms(window):
            state.retire(window)


class _Current:
    """The window of the last element. Its bounds, contents and count are kept outside the state."""

    __slots__ = ("above_ms", "below_ms", "contents", "count", "end_ms", "start_ms", "state", "window")

    def __init__(self, state: KeyState, window: TimeWindow, *, merges: bool) -> None:
        self.state, self.window = state, window
        self.start_ms, self.end_ms = window
        self.count: int = state.trigger_states.get(window, {}).get("count", 0)
        self.contents = state.contents.get(state.windows.state_windows.get(window, window))
        # An element that joins lies between these two bounds, both exclusive. Beyond them are the key's other windows.
        self.above_ms, self.below_ms = MIN_TIME_MS - 1, window.end_ms
        if merges:
            others = [other for other in state.windows.state_windows if other != window]
            self.above_ms = max((w.end_ms for w in others if w.end_ms < window.start_ms), default=MIN_TIME_MS - 1)
            self.below_ms = min((w.start_ms for w in others if w.start_ms > window.end_ms), default=2 * MAX_TIME_MS)

    @classmethod
    def for_window(cls, spec: WindowSpec, state: KeyState, own: TimeWindow, shared: OperatorState) -> _Current | None:
        """The window that an element's ``own`` window joins or opens; None if the operator must handle the element."""
        if spec.assigner.merges:
            touched = [window for window in state.windows.state_windows if touches(window, own)]
            if len(touched) > 1:
                return None
            if touched:
                return cls(state, touched[0], merges=True)
        if spec.time == "event" and spec.is_late(own, shared.watermark_ms, shared.late_up_to_ms):
            return None
        if spec.assigner.merges:
            state.windows.state_windows[own] = own
        return cls(state, own, merges=spec.assigner.merges)

    def fire(self, key: Any, result: Any, over_up_to_ms: int, *, purges: bool) -> Firing:
        """Returns the window's firing and resets the count to 0. Drops the contents if ``purges``."""
        timing = Timing.LATE if self.end_ms - 1 <= over_up_to_ms else Timing.EARLY
        self.count = 0
        if purges:
            self.contents = None
        return Firing(key, TimeWindow(self.start_ms, self.end_ms), result, timing)

    def leave(self, spec: WindowSpec) -> None:
        """Writes the window back into the state as the operator would."""
        state, old, window = self.state, self.window, TimeWindow(self.start_ms, self.end_ms)
        state_window = window
        if spec.assigner.merges:
            state_window = state.windows.state_windows[old]
            if window != old:
                state.windows.state_windows[window] = state.windows.state_windows.pop(old)
                state.forget(old)
        state.trigger_states[window] = {"count": self.count} if self.count else {}
        if self.contents is None:
            state.contents.pop(state_window, None)
        else:
            state.contents[state_window] = self.contents
        time_ms = spec.cleanup_time_ms(window)
        if time_ms is not None:
            (state.event_timers if spec.time == "event" else state.processing_timers).add((time_ms, window))


def _count_of(spec: WindowSpec) -> int | None:
    """The count at which the trigger fires; None for other triggers."""
    match spec.trigger:
        case CountTrigger(n=n) | PurgingTrigger(of=CountTrigger(n=n)):
            return n
    return None
