"""A faster twin of the operator, for count triggers over aggregates: elements of one key, one after the other.

Most elements join the window of the element before them. Those are added here in a few steps, with the window's bounds,
contents and count at hand; any other goes to the operator itself. What comes out, and the state left, is the
operator's (tested against it). About six times as many elements a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from windowlib.assigners import DynamicSession, Global, Session, Tumbling
from windowlib.elements import Element, Firing, Output, Timing
from windowlib.operator import step
from windowlib.spec import WindowSpec
from windowlib.state import KeyState, OperatorState
from windowlib.triggers import CountTrigger, PurgingTrigger
from windowlib.windows import MIN_TIME_MS, TimeWindow, touches


def fits(spec: WindowSpec) -> bool:
    """Whether elements of this spec can go this way.

    >>> from windowlib import CountEvictor, Sum
    >>> fits(WindowSpec(Session(5), Sum(), CountTrigger(3))), fits(WindowSpec(Session(5), Sum()))
    (True, False)
    """
    has_one_window = isinstance(spec.assigner, Session | DynamicSession | Tumbling | Global)
    return has_one_window and not spec.keeps_elements and spec.process is None and _count_of(spec) is not None


def on_elements(spec: WindowSpec, shared: OperatorState, key: Any, elements: Iterable[Element]) -> Iterator[Output]:
    """What happens when the elements of a key come; ``shared`` is changed, and as it must be once all is taken."""
    n, aggregate, purges = _count_of(spec) or 0, spec.aggregate, isinstance(spec.trigger, PurgingTrigger)
    assert aggregate is not None
    add, get_result, gap_ms = aggregate.add, aggregate.get_result, getattr(spec.assigner, "gap_ms", None)
    merges, by_event_time = spec.assigner.merges, spec.time == "event"
    now_ms = shared.watermark_ms if by_event_time else shared.processing_time_ms
    current: _Current | None = None
    for element in elements:
        time_ms = element.timestamp_ms if by_event_time else shared.processing_time_ms
        if current is not None and time_ms is not None:
            if not merges:
                start_ms, end_ms = current.start_ms, current.end_ms
                joins = start_ms <= time_ms < end_ms
            else:
                own_end_ms = time_ms + gap_ms if gap_ms else spec.assigner.assign(time_ms, element.value, key)[0].end_ms
                joins = time_ms <= current.end_ms and current.start_ms <= own_end_ms
                start_ms = time_ms if time_ms < current.start_ms else current.start_ms
                end_ms = own_end_ms if own_end_ms > current.end_ms else current.end_ms
                if joins and current.others and (start_ms != current.start_ms or end_ms != current.end_ms):
                    grown = TimeWindow(start_ms, end_ms)
                    joins = not any(touches(other, grown) for other in current.others)
            if joins:
                current.start_ms, current.end_ms = start_ms, end_ms
                held = current.contents
                current.contents = held = add(aggregate.create_accumulator() if held is None else held, element.value)
                current.count += 1
                if current.count >= n:
                    window = TimeWindow(start_ms, end_ms)
                    timing = Timing.LATE if end_ms - 1 <= now_ms else Timing.EARLY
                    yield Firing(key, window, get_result(held), timing)
                    current.count = 0
                    if purges:
                        current.contents = None
                continue
        if current is not None:
            current.leave(spec)
        yield from step(spec, shared, element)
        current = _Current.of(spec, shared.keys[key], time_ms)
    if current is not None:
        current.leave(spec)


class _Current:
    """The window that the last element went to, with what it holds taken out of the state."""

    __slots__ = ("contents", "count", "end_ms", "others", "start_ms", "state", "window")

    def __init__(self, state: KeyState, window: TimeWindow) -> None:
        self.state, self.window = state, window
        self.start_ms, self.end_ms = window
        self.count: int = state.trigger_states.get(window, {}).get("count", 0)
        self.contents = state.contents.get(state.windows.state_windows.get(window, window))
        self.others = [other for other in state.windows.state_windows if other != window]

    @classmethod
    def of(cls, spec: WindowSpec, state: KeyState, time_ms: int | None) -> _Current | None:
        """The window in flight that holds a time; None where there is none, as after a late element."""
        if time_ms is None or time_ms == MIN_TIME_MS:
            return None
        known = state.windows.state_windows if spec.assigner.merges else state.trigger_states
        window = next((w for w in known if w.start_ms <= time_ms < w.end_ms), None)
        return None if window is None else cls(state, window)

    def leave(self, spec: WindowSpec) -> None:
        """Puts everything back as the operator would have left it."""
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
    """At which element the trigger fires; None for other triggers."""
    match spec.trigger:
        case CountTrigger(n=n) | PurgingTrigger(of=CountTrigger(n=n)):
            return n
    return None
