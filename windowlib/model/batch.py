"""Batch rule: a run of an order-free spec over a batch of elements. As in Spark plans, a batch is a set.

Steps for each key:

1. The windows of the batch's elements are merged into *islands*.
2. Each island is added to the windows in flight. If the merged window is late, the whole island is dropped.
3. The watermark moves. Each window fires at most once, with its last contents.
4. Windows past their cleanup time are retired.

The result equals the operator's, if the operator gets elements in descending order of window ends, and only the last
firing of each window counts. The order inside a batch does not matter.

The state window of a new island is the island itself. On a merge the earliest state window in flight survives. Except
for the names of state windows, the resulting state equals the operator's. The operator and the batch rule can
each continue from the other's state.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from windowlib.model import contents
from windowlib.model.elements import Element, Firing, Late, Timing
from windowlib.model.errors import InvalidSpec, WatermarkRegression
from windowlib.model.operator import resume
from windowlib.model.spec import WindowSpec
from windowlib.model.state import KeyState, OperatorState
from windowlib.model.triggers import Timers
from windowlib.model.windows import MIN_TIME_MS, TimeWindow, islands


def advance(
    spec: WindowSpec, state: OperatorState, batch: Iterable[Element], watermark_ms: int
) -> tuple[list[Firing], list[Late]]:
    """Runs a batch: returns the last firing of each window by (key, window), and late elements by arrival.

    Changes ``state``. Its watermark becomes ``watermark_ms``. If the allowed lateness has changed since the state was
    written, the lateness of ``spec`` is applied first (`windowlib.model.operator.resume`). Raises InvalidSpec if the
    order of elements matters, and WatermarkRegression if the watermark would go back.

    >>> from windowlib import Count, Session
    >>> spec, batch = WindowSpec(Session(gap_ms=3), Count()), [Element("a", 3), Element("a", 0)]
    >>> firings, late = advance(spec, OperatorState(), batch, watermark_ms=5)
    >>> [(firing.window, firing.result) for firing in firings]
    [(TimeWindow(start_ms=0, end_ms=6), 2)]
    """
    if not spec.is_order_free:
        raise InvalidSpec(f"the results of {spec} depend on the order of elements: run the operator instead")
    if watermark_ms < state.watermark_ms:
        raise WatermarkRegression(f"the watermark would fall to {watermark_ms}: need {state.watermark_ms} or later")
    by_key = _by_key(batch)
    resume(spec, state)
    firings: list[Firing] = []
    late: list[Element] = []
    late_up_to_ms = spec.late_up_to_ms(watermark_ms, state.late_up_to_ms)
    for key in sorted({*by_key, *state.keys}):
        key_state = state.keys.setdefault(key, KeyState())
        touched, dropped = _admit(spec, key_state, by_key[key], state)
        late += dropped
        for window in key_state.in_flight:
            if window.max_timestamp_ms <= watermark_ms and (window in touched or _is_ahead(window, state)):
                timing = Timing.ON_TIME if _is_ahead(window, state) else Timing.LATE
                firings.append(Firing(key, window, _result(spec, key_state, window), timing))
        for window in key_state.in_flight:
            if spec.is_late(window, watermark_ms, late_up_to_ms):
                key_state.retire(window)
        key_state.event_timers = _timers(spec, key_state, watermark_ms)
    state.watermark_ms, state.late_up_to_ms = watermark_ms, late_up_to_ms
    state.forget_empty()
    return firings, [Late(element) for element in sorted(late, key=lambda element: element.arrival)]


def _by_key(batch: Iterable[Element]) -> dict[Any, list[Element]]:
    by_key: dict[Any, list[Element]] = defaultdict(list)
    for element in batch:
        by_key[element.key].append(element)
    return by_key


def _timers(spec: WindowSpec, state: KeyState, watermark_ms: int) -> Timers:
    """Timers after the watermark, at the end and the cleanup time of every window in flight."""
    times = [(end_ms, w) for w in state.in_flight for end_ms in (w.max_timestamp_ms, spec.cleanup_time_ms(w))]
    return {(time_ms, window) for time_ms, window in times if time_ms is not None and time_ms > watermark_ms}


def _is_ahead(window: TimeWindow, state: OperatorState) -> bool:
    """Tests if the window had not reached its end before this run."""
    return window.max_timestamp_ms > state.watermark_ms


def _admit(
    spec: WindowSpec, state: KeyState, elements: Sequence[Element], shared: OperatorState
) -> tuple[set[TimeWindow], list[Element]]:
    """Adds the elements to their windows. Returns the windows that received elements, and the late elements."""
    now = shared.watermark_ms, shared.late_up_to_ms
    touched: set[TimeWindow] = set()
    added: set[int] = set()
    for island, members in sorted(_gather(spec, elements).items()):
        window, state_window = _join(spec, state, island) if spec.assigner.merges else (island, island)
        if not spec.is_late(window, *now):
            touched.add(window)
            added |= {id(element) for element in members}
            held = state.contents.get(state_window, contents.empty(spec))
            for element in members:
                held = contents.add(spec, held, element)
            state.contents[state_window] = held
        elif spec.assigner.merges:
            state.retire(window)
    missed = [element for element in elements if id(element) not in added]
    return touched, [element for element in missed if spec.is_element_late(_timestamp_ms(element), *now)]


def _gather(spec: WindowSpec, elements: Sequence[Element]) -> dict[TimeWindow, list[Element]]:
    """The islands of a batch with their elements. If windows do not merge, each window is an island."""
    assigned = [
        (window, element)
        for element in elements
        for window in spec.assigner.assign(_timestamp_ms(element), element.value, element.key)
    ]
    joined = islands(window for window, _ in assigned) if spec.assigner.merges else []
    starts = [island.start_ms for island in joined]
    gathered: dict[TimeWindow, list[Element]] = defaultdict(list)
    for window, element in assigned:
        island = joined[bisect_right(starts, window.start_ms) - 1] if spec.assigner.merges else window
        gathered[island].append(element)
    return gathered


def _timestamp_ms(element: Element) -> int:
    return MIN_TIME_MS if element.timestamp_ms is None else element.timestamp_ms


def _join(spec: WindowSpec, state: KeyState, island: TimeWindow) -> tuple[TimeWindow, TimeWindow]:
    """Adds an island to the windows in flight. Returns the merged window and its state window."""
    window, merge = state.windows.add(island)
    if merge:
        for merged in merge.merged_state_windows:
            held = state.contents[merge.state_window]
            state.contents[merge.state_window] = contents.merge(spec, held, state.contents.pop(merged))
    return window, state.windows.state_window(window)


def _result(spec: WindowSpec, state: KeyState, window: TimeWindow) -> Any:
    state_window = state.windows.state_window(window) if spec.assigner.merges else window
    return contents.result(spec, state.contents[state_window])
