"""Windows, assigners, slices and lateness: brute force against the formulas, and the boundaries one by one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.slice_oracle import last_window_end_ms, session_of_slice, slice_of
from tests.support.strategies import TIMESTAMPS, sessions, slidings, tumblings
from windowlib.model.assigners import DynamicSession, Session, Sliding, Staggered, Tumbling
from windowlib.model.errors import InvalidElement, InvalidSpec
from windowlib.model.lateness import cleanup_time_ms, is_late
from windowlib.model.slices import shared_slices, shared_slices_of_a_session
from windowlib.model.windows import GLOBAL_WINDOW, MAX_TIME_MS, MIN_TIME_MS, TimeWindow, islands, touches, window_start

BOUNDS = st.builds(lambda start_ms, size_ms: TimeWindow(start_ms, start_ms + size_ms), TIMESTAMPS, st.integers(1, 12))


@given(st.one_of(tumblings(), slidings()), TIMESTAMPS)
def test_aligned_windows_are_all_that_hold_the_timestamp(assigner: Tumbling | Sliding, timestamp_ms: int) -> None:
    slide_ms = assigner.slide_ms if isinstance(assigner, Sliding) else assigner.size_ms
    starts = (assigner.offset_ms + k * slide_ms for k in range(-99, 99))
    holding = [s for s in starts if s <= timestamp_ms < s + assigner.size_ms]
    assert assigner.assign(timestamp_ms) == [TimeWindow(s, s + assigner.size_ms) for s in holding]


@given(st.one_of(tumblings(), slidings()), st.text(max_size=3))
def test_staggered_windows_are_those_of_an_assigner_with_another_offset(of: Tumbling | Sliding, key: str) -> None:
    shift_ms = crc32(key.encode()) % of.size_ms
    for timestamp_ms in range(-15, 15):
        unshifted = of.assign(timestamp_ms - shift_ms)
        windows = Staggered(of).assign(timestamp_ms, key=key)
        assert [(w.start_ms - shift_ms, w.end_ms - shift_ms) for w in windows] == [
            (w.start_ms, w.end_ms) for w in unshifted
        ]
        assert all(w.start_ms <= timestamp_ms < w.end_ms for w in windows)


@given(BOUNDS, BOUNDS)
def test_windows_touch_when_the_milliseconds_of_one_reach_the_other(a: TimeWindow, b: TimeWindow) -> None:
    closed = [set(range(window.start_ms, window.end_ms + 1)) for window in (a, b)]
    assert touches(a, b) == bool(closed[0] & closed[1]) == touches(b, a)


@given(st.lists(BOUNDS, max_size=8))
def test_islands_never_touch_and_hold_every_window(windows: list[TimeWindow]) -> None:
    joined = islands(windows)
    assert not any(touches(a, b) for a, b in combinations(joined, 2))
    assert all(sum(touches(window, island) for island in joined) == 1 for window in windows)
    assert {i.start_ms for i in joined} <= {w.start_ms for w in windows}
    assert {i.end_ms for i in joined} <= {w.end_ms for w in windows}


@given(st.one_of(tumblings(), slidings()), TIMESTAMPS)
def test_every_millisecond_of_a_slice_is_in_the_same_windows(assigner: Tumbling | Sliding, timestamp_ms: int) -> None:
    bounds = slice_of(assigner, timestamp_ms)
    assert bounds.start_ms <= timestamp_ms < bounds.end_ms
    windows = assigner.assign(bounds.start_ms)
    assert all(assigner.assign(t) == windows for t in range(bounds.start_ms, bounds.end_ms))
    assert last_window_end_ms(assigner, bounds.start_ms) == max((w.end_ms for w in windows), default=None)


@given(slidings(), st.lists(TIMESTAMPS, max_size=20))
def test_windows_put_together_from_slices_equal_windows_of_elements(assigner: Sliding, times: list[int]) -> None:
    from_elements: dict[TimeWindow, int] = {}
    from_slices: dict[TimeWindow, int] = {}
    for timestamp_ms in times:
        for window in assigner.assign(timestamp_ms):
            from_elements[window] = from_elements.get(window, 0) + 1
    slices = {start: sum(slice_of(assigner, t).start_ms == start for t in times) for start in range(-60, 60)}
    for start, count in slices.items():
        for window in assigner.assign(start) if count else ():
            from_slices[window] = from_slices.get(window, 0) + count
    assert from_slices == from_elements


@given(
    st.lists(st.one_of(tumblings(), slidings(), sessions()), min_size=1, max_size=4), st.lists(TIMESTAMPS, max_size=12)
)
def test_what_shares_slices_gets_the_slices_of_its_own(
    assigners: list[Tumbling | Sliding | Session], times: list[int]
) -> None:
    width_ms, offset_ms = shared_slices(assigners)
    assert width_ms >= 1
    shared: dict[int, list[int]] = {}
    for timestamp_ms in times:
        shared.setdefault(window_start(timestamp_ms, width_ms, offset_ms), []).append(timestamp_ms)
    for assigner in assigners:
        if isinstance(assigner, Session):
            bucket_ms = shared_slices_of_a_session(assigner.gap_ms, width_ms)
            buckets: dict[int, list[int]] = {}
            for start_ms, held in shared.items():
                buckets.setdefault(window_start(start_ms, bucket_ms, offset_ms), []).extend(held)
            found = islands(session_of_slice(assigner, min(held), max(held)) for held in buckets.values())
            assert found == islands(window for t in times for window in assigner.assign(t))
        else:
            for start_ms, held in shared.items():
                assert {slice_of(assigner, t) for t in held} == {slice_of(assigner, start_ms)}


@given(sessions(), st.lists(TIMESTAMPS, max_size=20))
def test_sessions_put_together_from_slices_equal_sessions_of_elements(assigner: Session, times: list[int]) -> None:
    slices: dict[TimeWindow, list[int]] = {}
    for timestamp_ms in times:
        slices.setdefault(slice_of(assigner, timestamp_ms), []).append(timestamp_ms)
    from_slices = islands(session_of_slice(assigner, min(held), max(held)) for held in slices.values())
    assert from_slices == islands(window for t in times for window in assigner.assign(t))


@pytest.mark.parametrize(
    "build",
    [
        lambda: Tumbling(0),
        lambda: Tumbling(5, offset_ms=5),
        lambda: Tumbling(5, offset_ms=-5),
        lambda: Sliding(0, 5),
        lambda: Sliding(5, 0),
        lambda: Sliding(9, 5, offset_ms=5),
        lambda: Session(0),
        lambda: DynamicSession(len).gap_column,
    ],
)
def test_what_cannot_be_is_refused(build: Callable[[], object]) -> None:
    with pytest.raises(InvalidSpec, match=": need "):
        build()


@pytest.mark.parametrize("value", [{"gap_ms": 0}, {"gap_ms": None}, {}, None, {"gap_ms": "5"}])
def test_an_element_needs_a_gap_above_zero(value: object) -> None:
    with pytest.raises(InvalidElement, match=": need "):
        DynamicSession("gap_ms").assign(0, value)


@pytest.mark.parametrize("assigner", [Tumbling(10), Sliding(10, 5)])
def test_an_aligned_window_needs_a_timestamp(assigner: Tumbling | Sliding) -> None:
    with pytest.raises(InvalidElement, match="has no timestamp"):
        assigner.assign(MIN_TIME_MS)


@given(BOUNDS, st.integers(0, 20))
def test_a_window_is_late_from_its_cleanup_time_on(window: TimeWindow, lateness_ms: int) -> None:
    cleanup_ms = cleanup_time_ms(window, lateness_ms)
    assert cleanup_ms == window.end_ms - 1 + lateness_ms
    assert [is_late(window, lateness_ms, cleanup_ms + d) for d in (-1, 0, 1)] == [False, True, True]


def test_an_allowance_that_overflows_means_never_until_the_end_of_time() -> None:
    window = TimeWindow(0, 10)
    assert not is_late(window, MAX_TIME_MS, MAX_TIME_MS - 1)
    assert is_late(window, MAX_TIME_MS, MAX_TIME_MS)
    assert not is_late(GLOBAL_WINDOW, 0, MAX_TIME_MS)
