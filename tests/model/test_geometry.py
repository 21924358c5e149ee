"""Laws of geometry: each answer against brute force over `assign`, and the columns of plans against the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import TIMESTAMPS, cumulatings, sessions, slidings, time_assigners, tumblings
from windowlib.model.assigners import Assigner, DynamicSession, Global, Session, Staggered, Tumbling
from windowlib.model.geometry import Geometry, geometry_of
from windowlib.model.rerun import TimeRange, first_slack_ms, needed, readmitted, touching
from windowlib.model.windows import GLOBAL_WINDOW, TimeWindow, islands

FAR = range(-120, 121)
"""Times that hold every window that an event of `TIMESTAMPS` can have, and further periods of these windows."""
KEYS = "abcdefghij"
GAPS = st.integers(1, 12)
ALIGNED = st.one_of(tumblings(), slidings(), cumulatings())
KNOWN = st.one_of(time_assigners(), st.just(Global()))


class HalfHours(Tumbling):
    """User's class that inherits the fields of windowlib's class, but assigns other windows."""

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        return [TimeWindow(timestamp_ms, timestamp_ms + 30)]


class Merging:
    """User's class of windows that merge."""

    merges: ClassVar[bool] = True

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        return [TimeWindow(timestamp_ms, timestamp_ms + value["size"])]


def windows_of(assigner: Assigner, times: Iterable[int] = FAR, gap_ms: int = 1) -> set[TimeWindow]:
    """All windows of events at some times, for some keys."""
    value = {"gap_ms": gap_ms}
    return {window for t in times for key in KEYS for window in assigner.assign(t, value, key)}


@given(KNOWN, GAPS)
def test_no_window_is_longer_than_the_longest_and_one_is_that_long(assigner: Assigner, gap_ms: int) -> None:
    lengths = {window.end_ms - window.start_ms for window in windows_of(assigner, gap_ms=gap_ms)}
    longest_ms = geometry_of(assigner).longest_ms
    if isinstance(assigner, DynamicSession | Global):
        assert longest_ms is None
    else:
        assert max(lengths) == longest_ms


@given(KNOWN)
def test_windows_that_never_end_are_the_global_window(assigner: Assigner) -> None:
    assert (geometry_of(assigner).ends is False) == (windows_of(assigner) == {GLOBAL_WINDOW})


@given(KNOWN)
def test_there_are_holes_where_a_time_is_in_no_window_of_any_key(assigner: Assigner) -> None:
    empty = {key: [t for t in FAR if not assigner.assign(t, {"gap_ms": 1}, key)] for key in KEYS}
    holes = geometry_of(assigner).has_holes
    assert bool(any(empty.values())) == (holes is not False)
    if holes is None:
        assert isinstance(assigner, Staggered)
        assert len({tuple(times) for times in empty.values()}) > 1 or assigner.of.size_ms == 1


@given(KNOWN)
def test_the_greatest_number_of_windows_of_an_event(assigner: Assigner) -> None:
    numbers = [len(assigner.assign(t, {"gap_ms": 1}, key)) for t in FAR for key in KEYS]
    assert max(numbers, default=0) <= (geometry_of(assigner).most_windows or 0)
    if not isinstance(assigner, Staggered):  # few keys may leave no key at the best time
        assert max(numbers) == geometry_of(assigner).most_windows


@given(KNOWN, TIMESTAMPS, GAPS)
def test_no_window_of_an_event_ends_after_its_latest_end(assigner: Assigner, timestamp_ms: int, gap_ms: int) -> None:
    latest_ms = geometry_of(assigner).latest_end_ms(timestamp_ms)
    ends = {window.end_ms for window in windows_of(assigner, [timestamp_ms], gap_ms)} or {timestamp_ms + 1}
    if latest_ms is None:
        assert isinstance(assigner, DynamicSession)
    elif geometry_of(assigner).by_time:
        assert max(ends) == latest_ms
    else:
        assert max(ends) <= latest_ms


@given(KNOWN, TIMESTAMPS, GAPS, GAPS)
def test_the_time_alone_decides_the_windows_where_it_is_said_to(
    assigner: Assigner, timestamp_ms: int, gap_ms: int, other_gap_ms: int
) -> None:
    by_key = {key: assigner.assign(timestamp_ms, {"gap_ms": gap_ms}, key) for key in KEYS}
    others = {key: assigner.assign(timestamp_ms, {"gap_ms": other_gap_ms}, key) for key in KEYS}
    if geometry_of(assigner).by_time:
        assert all(windows == by_key["a"] for windows in (*by_key.values(), *others.values()))


@given(KNOWN, st.integers(-60, 60))
def test_the_last_start_is_the_last_one_at_or_before_a_time(assigner: Assigner, time_ms: int) -> None:
    last_ms = geometry_of(assigner).last_start_ms(time_ms)
    starts = {window.start_ms for window in windows_of(assigner) if window.start_ms <= time_ms}
    if last_ms is None:
        assert isinstance(assigner, Global)
    elif isinstance(assigner, Staggered):
        assert max(starts) <= last_ms == time_ms
    else:
        assert max(starts) == last_ms


@given(KNOWN, TIMESTAMPS, st.integers(1, 60))
def test_windows_that_meet_a_range(assigner: Assigner, from_ms: int, length_ms: int) -> None:
    to_ms = from_ms + length_ms
    met = geometry_of(assigner).meeting(from_ms, to_ms)
    if met is None:
        assert isinstance(assigner, Staggered | Session | DynamicSession | Global)
        return
    meeting = [w for w in windows_of(assigner) if TimeRange(from_ms, to_ms).meets(w)]
    assert met == (
        min([from_ms, *(w.start_ms for w in meeting)]),
        max([to_ms, *(w.end_ms for w in meeting)]),
    )


@given(ALIGNED, TIMESTAMPS, st.integers(1, 60))
def test_a_rerun_reads_all_events_of_its_windows_and_counts_whole_windows_or_none(
    assigner: Assigner, from_ms: int, length_ms: int
) -> None:
    requested = TimeRange(from_ms, from_ms + length_ms)
    counted, read = readmitted(assigner, requested), needed(assigner, requested)
    assert read.holds(counted)
    assert counted.holds(requested)
    recomputed = [window for window in windows_of(assigner) if counted.meets(window)]
    assert all(read.from_ms <= window.start_ms and window.end_ms <= read.to_ms for window in recomputed)
    if not geometry_of(assigner).starts_overlap:
        assert counted == read


@given(ALIGNED)
def test_starts_overlap_where_windows_with_different_starts_share_a_time(assigner: Assigner) -> None:
    shared = any(len({window.start_ms for window in assigner.assign(t)}) > 1 for t in FAR)
    assert geometry_of(assigner).starts_overlap == shared


@given(sessions(), st.lists(TIMESTAMPS, min_size=1, max_size=9), TIMESTAMPS)
def test_an_event_outside_of_the_reach_of_a_chain_does_not_touch_it(
    assigner: Session, times: list[int], other_ms: int
) -> None:
    chain = islands(window for t in times for window in assigner.assign(t))[0]
    reach = touching(assigner, TimeRange(*chain))
    if not reach.from_ms <= other_ms < reach.to_ms:
        assert chain in islands([chain, *assigner.assign(other_ms)])
    assert first_slack_ms(assigner) >= assigner.gap_ms


@given(st.one_of(ALIGNED, sessions()), TIMESTAMPS)
def test_a_slice_is_inside_or_outside_of_each_window_and_no_further_than_said(
    assigner: Assigner, timestamp_ms: int
) -> None:
    geometry = geometry_of(assigner)
    slice_ms = geometry.slice_ms or 0
    start_ms = timestamp_ms - (timestamp_ms - geometry.offset_ms) % slice_ms
    inside = range(start_ms, start_ms + slice_ms)
    if geometry.merges:
        assert len(islands(window for t in inside for window in assigner.assign(t))) == 1
        return
    windows = assigner.assign(timestamp_ms)
    assert all(assigner.assign(t) == windows for t in inside)
    beyond = [max(start_ms - w.start_ms, w.end_ms - start_ms - slice_ms) for w in windows]
    assert max(beyond, default=0) <= geometry.beyond_slice_ms


@given(ALIGNED)
def test_some_window_reaches_as_far_beyond_a_slice_as_said(assigner: Assigner) -> None:
    geometry = geometry_of(assigner)
    width_ms = geometry.slice_ms or 0
    starts = [t for t in FAR if (t - geometry.offset_ms) % width_ms == 0]
    assert max(s - w.start_ms for s in starts for w in assigner.assign(s)) == geometry.beyond_slice_ms


@given(KNOWN, TIMESTAMPS, st.sampled_from(KEYS))
def test_the_windows_of_an_event_from_its_last_window_back(assigner: Assigner, timestamp_ms: int, key: str) -> None:
    windows = assigner.assign(timestamp_ms, {"gap_ms": 3}, key)
    if windows:
        assert geometry_of(assigner).windows_until(windows[-1], timestamp_ms) == windows[::-1]


@given(st.one_of(ALIGNED, sessions()), TIMESTAMPS, TIMESTAMPS, st.integers(1, 20))
def test_bounds_are_those_of_a_window_with_this_newest_event(
    assigner: Assigner, newest_ms: int, start_ms: int, length_ms: int
) -> None:
    bounds = TimeWindow(start_ms, start_ms + length_ms)
    own = assigner.assign(newest_ms)
    # A session may have begun with an earlier event.
    begun_before = start_ms <= newest_ms and bounds.end_ms == own[-1].end_ms if own else False
    geometry = geometry_of(assigner)
    fits = begun_before if geometry.merges else bounds in own
    assert geometry.are_bounds(*bounds, newest_ms) == fits
    assert all(geometry.are_bounds(*window, newest_ms) for window in own)
    arrays = (np.array([time_ms, time_ms]) for time_ms in (*bounds, newest_ms))
    assert geometry.are_bounds(*arrays).tolist() == [fits, fits]


@pytest.mark.parametrize("assigner", [HalfHours(10), Merging()])
def test_all_is_unknown_of_a_users_windows_but_whether_they_merge(assigner: Assigner) -> None:
    geometry = geometry_of(assigner)
    assert geometry == Geometry(merges=assigner.merges)
    unknown: Mapping[str, Callable[[], Any]] = {
        "ends": lambda: geometry.ends,
        "holes": lambda: geometry.has_holes,
        "most windows": lambda: geometry.most_windows,
        "longest": lambda: geometry.longest_ms,
        "last start": lambda: geometry.last_start_ms(5),
        "latest end": lambda: geometry.latest_end_ms(5),
        "slice": lambda: geometry.slice_ms,
        "windows of a range": lambda: geometry.meeting(0, 5),
    }
    assert {question: answer() for question, answer in unknown.items()} == dict.fromkeys(unknown)
    assert (geometry.by_time, geometry.starts_overlap, geometry.beyond_slice_ms) == (False, False, 0)
    assert geometry.windows_until(TimeWindow(0, 30), 5) == [TimeWindow(0, 30)]
    assert geometry.are_bounds(0, 77, 5)
    assert readmitted(assigner, TimeRange(0, 5)) == needed(assigner, TimeRange(0, 5)) == TimeRange(0, 5)
