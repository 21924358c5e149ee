"""A batch is a set: one run of an order-free spec over a batch of elements, as Spark plans do it.

Per key: all windows of the batch's elements are joined with one another into *islands*; each island is added to the
windows in flight; an island whose joined window is late is dropped whole. Then the watermark moves, every window fires
at most once, with its last contents, and what is past its cleanup time goes. That is the operator fed in descending
order of window ends, with only the last firing of each window kept; the order inside a batch does not matter.

A new island's state window is the island itself; on a merge the earliest state window in flight survives. But for
the names of state windows, the state left is the operator's: either can go on from the other's.
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
    """One run: the last firing of each window in order of (key, window), and late elements in order of arrival.

    ``state`` is changed; its watermark becomes ``watermark_ms``. Where ``spec`` allows another lateness than that
    which left the state, it comes into force first (`windowlib.model.operator.resume`). Raises InvalidSpec where order
    matters.

    >>> from windowlib import Count, Session
    >>> spec, batch = WindowSpec(Session(gap_ms=3), Count()), [Element("a", 3), Element("a", 0)]
    >>> firings, late = advance(spec, OperatorState(), batch, watermark_ms=5)
    >>> [(firing.window, firing.result) for firing in firings]
    [(TimeWindow(start_ms=0, end_ms=6), 2)]
    """
    if not spec.is_order_free:
        raise InvalidSpec(f"need a spec whose results do not depend on order, got {spec}; run the operator instead")
    if watermark_ms < state.watermark_ms:
        raise WatermarkRegression(f"need a watermark of {state.watermark_ms} or later, got {watermark_ms}")
    by_key = _by_key(batch)
    resume(spec, state)
    firings: list[Firing] = []
    late: list[Element] = []
    late_up_to_ms = spec.late_up_to_ms(watermark_ms, state.late_up_to_ms)
    for key in sorted({*by_key, *state.keys}):
        known = state.keys.setdefault(key, KeyState())
        touched, dropped = _admit(spec, known, by_key[key], state)
        late += dropped
        for window in known.in_flight:
            if window.max_timestamp_ms <= watermark_ms and (window in touched or _is_ahead(window, state)):
                timing = Timing.ON_TIME if _is_ahead(window, state) else Timing.LATE
                firings.append(Firing(key, window, _result(spec, known, window), timing))
        for window in known.in_flight:
            if spec.is_late(window, watermark_ms, late_up_to_ms):
                known.retire(window)
        known.event_timers = _timers(spec, known, watermark_ms)
    state.watermark_ms, state.late_up_to_ms = watermark_ms, late_up_to_ms
    state.forget_empty()
    return firings, [Late(element) for element in sorted(late, key=lambda element: element.arrival)]


def _by_key(batch: Iterable[Element]) -> dict[Any, list[Element]]:
    by_key: dict[Any, list[Element]] = defaultdict(list)
    for element in batch:
        by_key[element.key].append(element)
    return by_key


def _timers(spec: WindowSpec, state: KeyState, watermark_ms: int) -> Timers:
    """What the operator still waits for: the end and the cleanup time of every window in flight."""
    times = [(end_ms, w) for w in state.in_flight for end_ms in (w.max_timestamp_ms, spec.cleanup_time_ms(w))]
    return {(time_ms, window) for time_ms, window in times if time_ms is not None and time_ms > watermark_ms}


def _is_ahead(window: TimeWindow, state: OperatorState) -> bool:
    """Whether the window had not reached its end before this run."""
    return window.max_timestamp_ms > state.watermark_ms


def _admit(
    spec: WindowSpec, state: KeyState, elements: Sequence[Element], shared: OperatorState
) -> tuple[set[TimeWindow], list[Element]]:
    """Adds the elements to their windows; returns the windows that got some, and the elements that came late."""
    now = shared.watermark_ms, shared.late_up_to_ms
    touched: set[TimeWindow] = set()
    taken: set[int] = set()
    for island, members in sorted(_gather(spec, elements).items()):
        window, state_window = _join(spec, state, island) if spec.assigner.merges else (island, island)
        if not spec.is_late(window, *now):
            touched.add(window)
            taken |= {id(element) for element in members}
            held = state.contents.get(state_window, contents.empty(spec))
            for element in members:
                held = contents.add(spec, held, element)
            state.contents[state_window] = held
        elif spec.assigner.merges:
            state.retire(window)
    missed = [element for element in elements if id(element) not in taken]
    return touched, [element for element in missed if spec.is_element_late(_timestamp_ms(element), *now)]


def _gather(spec: WindowSpec, elements: Sequence[Element]) -> dict[TimeWindow, list[Element]]:
    """The islands of a batch with their elements; a window that never merges is an island of its own."""
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
    """Adds an island to the windows in flight; returns the window it ended up in, and its state window."""
    window, merge = state.windows.add(island)
    if merge:
        for merged in merge.merged_state_windows:
            held = state.contents[merge.state_window]
            state.contents[merge.state_window] = contents.merge(spec, held, state.contents.pop(merged))
    return window, state.windows.state_window(window)


def _result(spec: WindowSpec, state: KeyState, window: TimeWindow) -> Any:
    state_window = state.windows.state_window(window) if spec.assigner.merges else window
    return contents.result(spec, state.contents[state_window])
