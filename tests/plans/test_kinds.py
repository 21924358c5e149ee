"""Kinds of plan: the state files that a batch reaches, decided from statistics alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.plans.state_file import File
from tests.plans.visits import Visits
from windowlib.engines.spark_dialect import SPARK
from windowlib.model.aggregates import Count
from windowlib.model.assigners import Assigner, Session, Sliding, Tumbling
from windowlib.model.lateness import late_up_to_ms
from windowlib.model.spec import WindowSpec
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS, TimeWindow, touches
from windowlib.plans.kinds.aligned import Aligned
from windowlib.plans.kinds.count_windows import CountWindows
from windowlib.plans.kinds.counts import Counts
from windowlib.plans.kinds.general import General
from windowlib.plans.kinds.kind import STATE_WINDOW_BOUNDS, PlanKind
from windowlib.plans.kinds.sessions import Sessions
from windowlib.plans.partitions import PARTITION
from windowlib.plans.reach import Bucket, Reach
from windowlib.plans.step import Step

KINDS: Sequence[PlanKind] = (Sessions(), Aligned(), Counts(CountWindows(3, 2)), General())
COUNTED = WindowSpec(Tumbling(10), Count())


def windows(start_ms: int, end_ms: int, *, first_end_ms: int | None = None, **more: Any) -> File:
    low = {"window_start_ms": start_ms, "window_end_ms": end_ms if first_end_ms is None else first_end_ms, **more}
    return File(low, {"window_end_ms": end_ms}, {"end_partition": end_ms // 100})


def slices(first_ms: int, last_ms: int) -> File:
    return File({"state_window_start_ms": first_ms}, {"state_window_start_ms": last_ms})


def step(assigner: Assigner, before_ms: int, after_ms: int, lateness_ms: int = 0) -> Step:
    late = (late_up_to_ms(lateness_ms, watermark_ms) for watermark_ms in (before_ms, after_ms))
    return Step(assigner, ("key",), None, before_ms, after_ms, *late, 1, 100, plan_time_ms=1_000, dialect=SPARK)


def event(timestamp_ms: int, end_ms: int) -> list[Bucket]:
    return [Bucket(timestamp_ms, timestamp_ms, end_ms)]


def what(kind: PlanKind, file: File, buckets: Sequence[Bucket], of: Step) -> str:
    found = kind.reach([file], buckets, of)
    return "rewritten" if found.rewritten else "read" if found.read else "dropped" if found.dropped else "left"


def test_every_kind_has_its_own_name_and_tells_if_it_can_be_rerun() -> None:
    assert [kind.name for kind in KINDS] == ["sessions", "aligned", "counts", "general"]
    assert [isinstance(kind.rerun, str) for kind in KINDS] == [False, False, True, True]


@pytest.mark.parametrize(
    ("file", "buckets", "lateness_ms", "expected"),
    [
        (windows(0, 49), event(50, 60), 0, "left"),
        (windows(0, 50), event(50, 60), 0, "rewritten"),  # windows that touch merge
        (windows(70, 100), event(50, 69), 0, "left"),
        (windows(70, 100), event(50, 70), 0, "rewritten"),
        (windows(0, 31), (), 0, "rewritten"),  # fires: its last ms is the watermark
        (windows(0, 32), (), 0, "left"),
        (windows(0, 21), (), 9, "dropped"),  # had fired, and is past its cleanup time
        (windows(0, 21), (), 10, "left"),
        (windows(0, 22, first_end_ms=21), (), 9, "rewritten"),  # only one of its windows has
    ],
)
def test_sessions(file: File, buckets: Sequence[Bucket], lateness_ms: int, expected: str) -> None:
    before_ms = 20 if lateness_ms == 0 else 29
    of = step(Session(gap_ms=10), before_ms, 30 if lateness_ms == 0 else 29, lateness_ms)
    assert what(Sessions(), file, buckets, of) == expected


@pytest.mark.parametrize(
    ("last_ms", "lateness_ms", "expected"),
    [(20, 30, False), (21, 30, True), (30, 30, True), (31, 30, False), (15, 15, True), (15, 16, False)],
)
def test_time_is_due_where_a_session_fires_or_is_past_its_cleanup(
    last_ms: int, lateness_ms: int, expected: bool
) -> None:
    """The watermark moves from 20 to 30."""
    of, file = step(Session(gap_ms=10), 20, 30, lateness_ms), windows(0, last_ms + 1)
    ends = {"none": np.array([500]), "one": np.array([500, last_ms + 1])}
    assert Sessions().is_due(Reach(rewritten=[file]), of, lambda _: ends["one"]) == expected
    assert not Sessions().is_due(Reach(rewritten=[file]), of, lambda _: ends["none"])
    assert Sessions().is_due(Reach(dropped=[file]), of, lambda _: ends["none"])


@pytest.mark.parametrize(
    ("file", "buckets", "lateness_ms", "expected"),
    [
        (slices(40, 40), event(44, 50), 0, "rewritten"),
        (slices(40, 40), event(45, 55), 0, "left"),  # the slice ends before it
        (slices(25, 25), (), 0, "read"),  # in [20, 30), which fires, and in [25, 35), which does not yet
        (slices(20, 20), (), 0, "rewritten"),  # its last window, [20, 30), fires and is retired
        (slices(15, 15), (), 0, "dropped"),  # its last window has fired
        (slices(20, 25), (), 0, "rewritten"),
        (slices(20, 20), (), 1, "read"),  # kept for late events
    ],
)
def test_sliding_windows(file: File, buckets: Sequence[Bucket], lateness_ms: int, expected: str) -> None:
    assert what(Aligned(), file, buckets, step(Sliding(10, 5), 28, 29, lateness_ms)) == expected


def test_count_windows_reach_all_or_nothing() -> None:
    counts, of = Counts(CountWindows(3, 2)), step(CountWindows(3, 2), 0, 9)
    assert [what(counts, File({}, {}), buckets, of) for buckets in ((), event(1, 2))] == ["left", "rewritten"]
    assert [counts.touches(File({}, {}), buckets, of) for buckets in ((), event(1, 2))] == [False, True]


@pytest.mark.parametrize(
    ("size", "slide", "expected"), [(3, 1, [2]), (3, 2, [2]), (4, 2, [3]), (2, 3, [1]), (1, 3, [])]
)
def test_elements_of_the_next_count_window_are_in_flight(size: int, slide: int, expected: list[int]) -> None:
    """Five elements came. With slide 2, the next window ends with the sixth."""
    width = gcd(size, slide)
    rows = [{"slice_index": first // width, "elements": min(width, 5 - first)} for first in range(0, 5, width)]
    found = Counts(CountWindows(size, slide)).in_flight(rows, COUNTED, 0)
    assert [one.elements for one in found] == expected


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize(("start_ms", "partition"), [(85, 0), (90, 1)])
def test_a_slice_is_in_the_partition_of_its_last_window_s_end(
    spark: SparkSession, start_ms: int, partition: int
) -> None:
    """The window [90, 100) ends at the start of a partition."""
    rows = spark.createDataFrame([(start_ms,)], "state_window_start_ms long")
    found = Aligned().remaining(rows, step(Sliding(10, 5), 0, 9)).select(PARTITION).first()
    assert found is not None
    assert found[0] == partition


def general_step(before_ms: int, after_ms: int, spec: WindowSpec) -> Step:
    return replace(step(spec.assigner, before_ms, after_ms), spec=spec)


def test_the_general_plan_reaches_whole_partitions() -> None:
    never = {"next_event_ms": 10**9, "next_processing_ms": 10**9}
    files = [
        windows(0, 110, **never),
        windows(0, 190, **never | {"next_event_ms": 30}),
        windows(0, 250, **never),
        windows(0, 350, **never | {"next_processing_ms": 1_000}),
    ]
    found = General().reach(files, (), general_step(20, 30, COUNTED))
    assert [file.high["window_end_ms"] for file in found.rewritten] == [110, 190, 350]


@pytest.mark.parametrize(("watermark_ms", "reached"), [(113, False), (114, True)])
def test_a_window_without_timers_is_reached_at_its_cleanup_time(watermark_ms: int, reached: bool) -> None:
    never = {"next_event_ms": MAX_TIME_MS, "next_processing_ms": MAX_TIME_MS}
    of_keys, files = windows(MIN_TIME_MS, MAX_TIME_MS, **never), [windows(100, 110, **never)]
    of = replace(step(Tumbling(10), 20, watermark_ms, lateness_ms=5), spec=COUNTED)
    assert General().reach([*files, of_keys], (), of).rewritten == (files if reached else [])


def test_the_state_of_keys_is_reached_only_together_with_a_due_timer() -> None:
    """If it were reached alone, every advance of time would be due."""
    never = {"next_event_ms": MAX_TIME_MS, "next_processing_ms": MAX_TIME_MS}
    of_keys, fires = windows(MIN_TIME_MS, MAX_TIME_MS, **never), windows(0, 190, **never | {"next_event_ms": 30})
    spec = WindowSpec(Tumbling(10), process=Visits())
    reached = [
        General().reach([of_keys, fires], (), general_step(20, after_ms, spec)).rewritten for after_ms in (29, 30)
    ]
    assert reached == [[], [of_keys, fires]]
    without = General().reach([of_keys, fires], (), general_step(20, 30, COUNTED))
    assert without.rewritten == [fires]


# -- laws for single windows and slices, compared with their definitions -----------------------------------------------

OFTEN = settings(deadline=None, max_examples=400)
TIMES = st.integers(-12, 12)
BUCKETS = st.lists(st.tuples(TIMES, st.integers(0, 5)).map(lambda one: (one[0], one[0] + one[1])), max_size=2)


@st.composite
def steps(draw: st.DrawFn, assigner: Assigner) -> Step:
    before_ms = draw(TIMES)
    return step(assigner, before_ms, before_ms + draw(st.integers(0, 12)), draw(st.integers(0, 6)))


def over(assigner: Sliding, slice_ms: int, start_ms: int) -> list[TimeWindow]:
    """Windows over a slice. All times of the slice must be in the same windows."""
    found = assigner.assign(start_ms)
    assert all(assigner.assign(start_ms + more_ms) == found for more_ms in range(slice_ms))
    return found


@OFTEN
@given(st.data(), st.integers(1, 9), st.integers(1, 9), st.integers(0, 3), BUCKETS)
def test_a_slice_is_reached_if_it_is_touched_fires_or_is_retired(
    data: st.DataObject, size_ms: int, slide_ms: int, offset_ms: int, spans: list[tuple[int, int]]
) -> None:
    size_ms = max(size_ms, slide_ms)  # without holes
    assigner = Sliding(size_ms, slide_ms, offset_ms % slide_ms)
    of, width_ms = data.draw(steps(assigner)), gcd(size_ms, slide_ms)
    start_ms = data.draw(TIMES) * width_ms + assigner.offset_ms % width_ms
    windows, file = over(assigner, width_ms, start_ms), slices(start_ms, start_ms)
    buckets = [Bucket(low_ms, high_ms, high_ms + size_ms) for low_ms, high_ms in spans]
    earliest_ms = min([of.watermark_in_ms + 1, *(low_ms for low_ms, _ in spans)])
    touched = any(
        low_ms <= time_ms <= high_ms for low_ms, high_ms in spans for time_ms in range(start_ms, start_ms + width_ms)
    )
    may_fire = any(
        max(earliest_ms, of.late_in_ms + 1) <= window.max_timestamp_ms <= of.watermark_out_ms for window in windows
    )
    retired = all(window.max_timestamp_ms <= of.late_out_ms for window in windows)
    expected = (
        "rewritten" if touched or (retired and may_fire) else "dropped" if retired else "read" if may_fire else "left"
    )
    assert what(Aligned(), file, buckets, of) == expected
    assert Aligned().past_cleanup(file, of) == retired
    passed = any(of.watermark_in_ms < window.max_timestamp_ms <= of.watermark_out_ms for window in windows)
    assert Aligned().overdue(file, of) == (retired or passed)


@OFTEN
@given(st.data(), TIMES, st.integers(1, 9), BUCKETS)
def test_a_session_is_reached_if_it_is_touched_fires_or_is_retired(
    data: st.DataObject, start_ms: int, length_ms: int, spans: list[tuple[int, int]]
) -> None:
    of, end_ms = data.draw(steps(Session(gap_ms=3))), start_ms + length_ms
    file, buckets = windows(start_ms, end_ms), [Bucket(low_ms, high_ms, high_ms + 3) for low_ms, high_ms in spans]
    touched = any(touches(TimeWindow(start_ms, end_ms), TimeWindow(low_ms, high_ms + 3)) for low_ms, high_ms in spans)
    fires = of.watermark_in_ms < end_ms - 1 <= of.watermark_out_ms
    retired = end_ms - 1 <= of.late_out_ms
    expected = "rewritten" if touched or fires else "dropped" if retired else "left"
    assert what(Sessions(), file, buckets, of) == expected
    assert Sessions().past_cleanup(file, of) == retired
    assert Sessions().overdue(file, of) == (retired or fires)


def test_sessions_whose_rows_lack_a_column_are_all_rewritten() -> None:
    of = replace(step(Session(gap_ms=10), 20, 30), rewrites_state=True)
    assert what(Sessions(), windows(70, 100), (), of) == "rewritten"


def test_windows_in_flight_of_a_key_are_assembled_from_its_slices() -> None:
    rows = [{"state_window_start_ms": start_ms, "elements": elements} for start_ms, elements in ((10, 3), (5, 2))]
    spec = WindowSpec(Sliding(10, 5), Count())
    found = [(one.bounds_ms, one.elements) for one in Aligned().in_flight(rows, spec, late_up_to_ms=9)]
    assert found == [((5, 15), 5), ((10, 20), 3)]
    assert [(one.bounds_ms, one.elements) for one in Aligned().in_flight(rows, spec, late_up_to_ms=8)] == [
        ((0, 10), 2),
        *found,
    ]


def test_the_general_plan_reads_all_times_where_windows_can_be() -> None:
    asked, plan_time_ms = event(7, 17), 1_000
    by_event = replace(step(Tumbling(10), 0, 9), spec=WindowSpec(Tumbling(10), Count()))
    by_clock = replace(by_event, spec=WindowSpec(Tumbling(10), Count(), time="processing"))
    elsewhere = replace(by_event, assigner=CountWindows(3, 2))
    assert General().buckets(asked, by_event) == asked
    assert General().buckets(asked, by_clock) == [Bucket(plan_time_ms, plan_time_ms, MAX_TIME_MS)]
    assert General().buckets(asked, elsewhere) == [Bucket(MIN_TIME_MS, MAX_TIME_MS, MAX_TIME_MS)]
    for of in (by_event, by_clock, elsewhere):
        assert General().buckets([], of) == []


@pytest.mark.parametrize(
    ("time", "end_ms", "expected"),
    [("event", 26, True), ("event", 27, False), ("processing", 1_000, True), ("processing", 1_001, False)],
)
def test_windows_of_the_general_plan_are_past_cleanup_by_their_own_time(
    time: Literal["event", "processing"], end_ms: int, expected: bool
) -> None:
    of = replace(step(Tumbling(10), 20, 30, 5), spec=WindowSpec(Tumbling(10), Count(), time=time))
    assert General().past_cleanup(windows(0, end_ms), of) == expected


def test_endless_windows_are_never_past_cleanup() -> None:
    of, endless = step(Tumbling(10), 20, 30), MAX_TIME_MS // 100
    files = [File({}, {}, {"end_partition": partition}) for partition in (0, endless, 3)]
    assert [file.partition["end_partition"] for file in General().ending(files, of)] == [0, 3]
    assert [kind.ending(files, of) for kind in KINDS[:3]] == [files, files, []]


def test_no_output_may_have_the_name_of_a_state_column() -> None:
    bounds = {"window_start_ms", "window_end_ms", "state_window_start_ms", "state_window_end_ms"}
    own = {"arrival", "contents", "contents_from", "state", "fired", "next_event_ms", "next_processing_ms"}
    assert [{*kind.reserved_columns(0)} for kind in KINDS] == [
        bounds,
        {*STATE_WINDOW_BOUNDS},
        {"slice_index"},
        bounds | own,
    ]
    assert {*Sessions().reserved_columns(1)} == bounds | {"published"}


def test_differences_between_kinds() -> None:
    assert [kind.shares_slices for kind in KINDS] == [True, True, False, False]
    assert [kind.needs_arrival for kind in KINDS] == [False, False, True, True]
    assert [kind.runs_operator for kind in KINDS] == [False, False, False, True]
    assert [kind.windows_end for kind in KINDS] == [True, True, False, True]
