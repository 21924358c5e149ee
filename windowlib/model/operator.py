"""The window operator: the reference implementation, and the specification of all plans.

The operator takes one input at a time, for one key at a time. An element takes eight steps: *assign* windows, *merge*
these with windows in flight, *drop late* windows, *add* the element, ask the *trigger*, *fire*, *purge*, *clean up*.
Time is an input too: a watermark or a processing time runs the timers that it has reached. The semantics follow Flink's
WindowOperator and EvictingWindowOperator, with eleven intended differences:

- The earliest state window survives a merge, and merged elements are in arrival order. Flink orders by hash code.
- An element whose own window equals a merged session joins it. Flink loses the session's contents.
- Firings of a watermark are in order of (time, key). Flink orders them by time, then by the layout of its heap.
- If a trigger has deleted a window's cleanup timer, the window is still cleaned up at that time, without a firing.
  Flink keeps it for ever.
- If the allowed lateness changes (`resume`), cleaned-up windows stay late, and windows past a shorter lateness go at
  once. Flink would start a cleaned-up window again, empty, and would never remove the others.
- Near the ends of the 64-bit range, starts and ends of windows are exact. Flink's wrap around. A window without end
  that fires by intervals fires twice more at the end of the input. Flink fires it for every remaining interval.
- For an element in no window, timestamp plus allowed lateness saturates at the greatest 64-bit integer. Flink's sum
  wraps around: with an unlimited allowed lateness the element counts as late.
- For the time evictor an element without a timestamp is the oldest, unless it is the first. Flink fails.
- A watermark that is sent again after a restore (`resend_watermark`) is the watermark since the previous restore, if
  there was any. Flink uses the last watermark that the source has sent.
- A processing-time timer that is set after its time fires when the clock moves next. Flink fires it at once. In a
  pipeline that is the next run. An event-time window that the watermark passes before that loses this firing.
- For the delta trigger and the delta evictor a null is like NaN: it exceeds nothing, and nothing exceeds it. Flink's
  own delta functions fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from windowlib.model import contents
from windowlib.model.elements import Element, Firing, Input, Late, Output, ProcessingTime, Timing, Watermark
from windowlib.model.errors import InvalidSpec
from windowlib.model.functions import ProcessContext
from windowlib.model.spec import WindowSpec
from windowlib.model.state import KeyState, OperatorState
from windowlib.model.triggers import Timers, TriggerContext, TriggerResult
from windowlib.model.windows import MIN_TIME_MS, TimeWindow


def run(spec: WindowSpec, state: OperatorState, inputs: Iterable[Input]) -> list[Output]:
    """Processes the inputs in order and returns the outputs; changes ``state``.

    >>> from windowlib import Session, Sum
    >>> spec = WindowSpec(Session(gap_ms=3), Sum())
    >>> [firing] = run(spec, OperatorState(), [Element("a", 0, 5), Element("a", 3, 7), Watermark(5)])
    >>> firing.window, firing.result
    (TimeWindow(start_ms=0, end_ms=6), 12)
    """
    return [output for event in inputs for output in step(spec, state, event)]


def step(spec: WindowSpec, state: OperatorState, event: Input) -> list[Output]:
    """Processes one input and returns the outputs; changes ``state``."""
    match event:
        case Element():
            return list(_key(spec, state, event.key).on_element(event))
        case Watermark(watermark_ms):
            state.watermark_ms = watermark_ms
            return _in_order(state, lambda key: _key(spec, state, key).on_watermark())
        case ProcessingTime(processing_time_ms):
            state.processing_time_ms = processing_time_ms
            return _in_order(state, lambda key: _key(spec, state, key).on_processing_time())


def resume(spec: WindowSpec, state: OperatorState, before: WindowSpec | None = None) -> None:
    """Continues a state under ``spec``. The spec ``before``, which wrote the state, may have another allowed lateness.

    Late windows stay late; without ``before``, they are known only from `OperatorState.late_up_to_ms`. Windows in
    flight that are now past their cleanup time are retired without a firing, because the watermark had already reached
    their ends. All other windows get a timer at their new cleanup time. The old timer stays and asks the trigger
    once more, as in Flink.

    >>> from windowlib import Count, Tumbling
    >>> short, long = (WindowSpec(Tumbling(10), Count(), allowed_lateness_ms=ms) for ms in (5, 50))
    >>> state = OperatorState()
    >>> [firing] = run(short, state, [Element("a", 3), Element("a", 12), Watermark(14)])  # [0, 10) is cleaned up
    >>> resume(long, state, short)
    >>> run(long, state, [Element("a", 4)])
    [Late(element=Element(key='a', timestamp_ms=4, value=None, arrival=0))]
    >>> [firing] = run(long, state, [Watermark(30)])
    >>> resume(short, state, long)
    >>> state.in_flight
    []
    """
    for applied in (before or spec, spec):
        state.late_up_to_ms = applied.late_up_to_ms(state.watermark_ms, state.late_up_to_ms)
    for key in sorted(state.keys):
        _key(spec, state, key).on_resume()
    state.forget_empty()


def _in_order(state: OperatorState, fire: Callable[[Any], Iterable[tuple[int, Firing]]]) -> list[Output]:
    """The firings of all keys in order of (time, key)."""
    timed = [(time_ms, key, firing) for key in sorted(state.keys) for time_ms, firing in fire(key)]
    state.forget_empty()
    return [firing for _, _, firing in sorted(timed, key=lambda fired: fired[:2])]


def _key(spec: WindowSpec, state: OperatorState, key: Any) -> _Key:
    if key not in state.keys:
        state.keys[key] = KeyState()
    return _Key(spec, key, state.keys[key], state)


@dataclass
class _Key:
    """The operator of one key: the key's own state, and the times shared by all keys."""

    spec: WindowSpec
    key: Any
    state: KeyState
    shared: OperatorState

    def on_element(self, element: Element) -> Iterator[Output]:
        """Runs the eight steps for each window of an element."""
        spec, watermark_ms, up_to_ms = self.spec, self.shared.watermark_ms, self.shared.late_up_to_ms
        timestamp_ms = MIN_TIME_MS if element.timestamp_ms is None else element.timestamp_ms
        time_ms = timestamp_ms if spec.time == "event" else self.shared.processing_time_ms
        accepted = False
        for assigned in spec.assigner.assign(time_ms, element.value, self.key):  # 1 assign
            window = self._merge(assigned) if spec.assigner.merges else assigned  # 2 merge
            if spec.is_late(window, watermark_ms, up_to_ms):  # 3 drop late
                if spec.assigner.merges:
                    self.state.retire(window)
                continue
            accepted = True
            self._add(window, element)  # 4 add
            answer = spec.active_trigger.on_element(element.value, timestamp_ms, self._trigger(window))  # 5 trigger
            yield from self._obey(answer, window, self._timing_of_element(window))  # 6 fire, 7 purge
            self._set_cleanup(window)  # 8 clean up, when it is time
        if not accepted and spec.is_element_late(timestamp_ms, watermark_ms, up_to_ms):
            yield Late(element)

    def on_resume(self) -> None:
        """Applies the spec's allowed lateness: retires windows past their cleanup time, sets timers for all others."""
        for window in sorted(self.state.remembered_windows):
            if self.spec.is_late(window, self.shared.watermark_ms, self.shared.late_up_to_ms):
                self._clean_up(window)
            elif self.spec.time == "event":
                self._set_cleanup(window)

    def on_watermark(self) -> Iterator[tuple[int, Firing]]:
        """Runs the event timers that the watermark has reached; yields their firings."""
        while due := _next(self.state.event_timers, self.shared.watermark_ms):
            yield from self._on_timer(*due, self.spec.active_trigger.on_event_time, "event")
        self._sweep("event", self.shared.watermark_ms)

    def on_processing_time(self) -> Iterator[tuple[int, Firing]]:
        """Runs the processing timers that processing time has reached; yields their firings."""
        while due := _next(self.state.processing_timers, self.shared.processing_time_ms):
            yield from self._on_timer(*due, self.spec.active_trigger.on_processing_time, "processing")
        self._sweep("processing", self.shared.processing_time_ms)

    def _on_timer(
        self, time_ms: int, window: TimeWindow, ask: Callable[[int, TriggerContext], TriggerResult], kind: str
    ) -> Iterator[tuple[int, Firing]]:
        answer = ask(time_ms, self._trigger(window))
        by_own_time = kind == self.spec.time
        timing = _timing_of_timer(time_ms, window) if by_own_time else self._timing_of_element(window)
        for firing in self._obey(answer, window, timing):
            yield time_ms, firing
        if by_own_time and time_ms == self.spec.cleanup_time_ms(window):
            self._clean_up(window)

    def _merge(self, assigned: TimeWindow) -> TimeWindow:
        """Merges the window with the windows in flight that it touches, including their trigger states and contents."""
        state = self.state
        window, merge = state.windows.add(assigned)
        if merge:
            trigger_states = [state.trigger_states.get(merged, {}) for merged in merge.merged]
            self.spec.active_trigger.on_merge(trigger_states, self._trigger(window))
            for merged in merge.merged:
                self.spec.active_trigger.clear(self._trigger(merged))
                state.forget(merged)
            for merged in merge.merged_state_windows:
                if merged in state.contents:
                    held = state.contents.get(merge.state_window, contents.empty(self.spec))
                    state.contents[merge.state_window] = contents.merge(self.spec, held, state.contents.pop(merged))
        return window

    def _add(self, window: TimeWindow, element: Element) -> None:
        state_window = self._state_window(window)
        held = self.state.contents.get(state_window, contents.empty(self.spec))
        self.state.contents[state_window] = contents.add(self.spec, held, element)

    def _obey(self, answer: TriggerResult, window: TimeWindow, timing: Timing) -> Iterator[Firing]:
        """Fires and purges as the trigger answers; a window without contents does not fire."""
        if not isinstance(answer, TriggerResult):
            raise InvalidSpec(f"{self.spec.active_trigger} returned {answer!r}: need a TriggerResult")
        state_window = self._state_window(window)
        if answer.fires and state_window in self.state.contents:
            for result in self._evaluate(window, state_window):
                yield Firing(self.key, window, result, timing)
        if answer.purges:
            self.state.contents.pop(state_window, None)

    def _evaluate(self, window: TimeWindow, state_window: TimeWindow) -> Iterator[Any]:
        """Yields the results of the window, and removes evicted elements for good."""
        spec, held = self.spec, self.state.contents[state_window]
        if spec.evictor:
            held = list(spec.evictor.evict_before(held, window))
        result = contents.result(spec, held)
        yield from spec.process.process(result, self._process(window)) if spec.process else [result]
        if spec.evictor:
            self.state.contents[state_window] = list(spec.evictor.evict_after(held, window))
            if not self.state.contents[state_window]:
                del self.state.contents[state_window]

    def _set_cleanup(self, window: TimeWindow) -> None:
        """Sets a timer at the window's cleanup time; none if the window is never cleaned up."""
        time_ms = self.spec.cleanup_time_ms(window)
        timers = self.state.event_timers if self.spec.time == "event" else self.state.processing_timers
        if time_ms is not None:
            timers.add((time_ms, window))

    def _sweep(self, kind: str, now_ms: int) -> None:
        """Cleans up windows past their cleanup time whose trigger deleted the cleanup timer."""
        if kind == self.spec.time:
            for window in sorted(self.state.remembered_windows):
                time_ms = self.spec.cleanup_time_ms(window)
                if time_ms is not None and time_ms <= now_ms:
                    self._clean_up(window)

    def _clean_up(self, window: TimeWindow) -> None:
        self.spec.active_trigger.clear(self._trigger(window))
        if self.spec.process:
            self.spec.process.clear(self._process(window))
        self.state.retire(window)

    def _timing_of_element(self, window: TimeWindow) -> Timing:
        over_up_to_ms = over_up_to_ms_of(self.spec, self.shared)
        return Timing.LATE if window.max_timestamp_ms <= over_up_to_ms else Timing.EARLY

    def _state_window(self, window: TimeWindow) -> TimeWindow:
        return self.state.windows.state_window(window) if self.spec.assigner.merges else window

    def _trigger(self, window: TimeWindow) -> TriggerContext:
        state = self.state
        remembered = state.trigger_states.setdefault(window, {})
        times = (self.shared.watermark_ms, self.shared.processing_time_ms)
        return TriggerContext(window, *times, remembered, state.event_timers, state.processing_timers)

    def _process(self, window: TimeWindow) -> ProcessContext:
        own = None if self.spec.assigner.merges else self.state.window_states.setdefault(window, {})
        times = (self.shared.watermark_ms, self.shared.processing_time_ms)
        return ProcessContext(self.key, window, *times, self.state.key_state, own)


def _next(timers: Timers, reached_ms: int) -> tuple[int, TimeWindow] | None:
    """Removes and returns the earliest timer that time has reached; None if there is none."""
    first = min(timers, default=None)
    if first is None or first[0] > reached_ms:
        return None
    timers.remove(first)
    return first


def over_up_to_ms_of(spec: WindowSpec, shared: OperatorState) -> int:
    """The last millisecond that is over: the watermark, or for processing time the millisecond before now."""
    return shared.watermark_ms if spec.time == "event" else shared.processing_time_ms - 1


def _timing_of_timer(time_ms: int, window: TimeWindow) -> Timing:
    if time_ms == window.max_timestamp_ms:
        return Timing.ON_TIME
    return Timing.EARLY if time_ms < window.max_timestamp_ms else Timing.LATE
