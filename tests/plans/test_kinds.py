"""The kinds of plan: which files of the state a batch reaches, by their statistics alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from windowlib.model.assigners import Assigner, Session, Sliding, Tumbling
from windowlib.model.lateness import late_up_to_ms
from windowlib.plans.counts import CountWindows
from windowlib.plans.kinds.aligned import Aligned
from windowlib.plans.kinds.counts import Counts
from windowlib.plans.kinds.general import General
from windowlib.plans.kinds.kind import PlanKind
from windowlib.plans.kinds.sessions import Sessions
from windowlib.plans.reach import Bucket
from windowlib.plans.step import Step

KINDS: Sequence[PlanKind] = (Sessions(), Aligned(), Counts(CountWindows(3, 2)), General())


@dataclass(frozen=True)
class File:
    """A file of the state: its bounds."""

    low: dict[str, Any]
    high: dict[str, Any]
    partition: dict[str, Any] = field(default_factory=dict)


def windows(start_ms: int, end_ms: int, *, first_end_ms: int | None = None, **more: Any) -> File:
    low = {"window_start_ms": start_ms, "window_end_ms": end_ms if first_end_ms is None else first_end_ms, **more}
    return File(low, {"window_end_ms": end_ms}, {"end_partition": end_ms // 100})


def slices(first_ms: int, last_ms: int) -> File:
    return File({"state_window_start_ms": first_ms}, {"state_window_start_ms": last_ms})


def step(assigner: Assigner, before_ms: int, after_ms: int, lateness_ms: int = 0) -> Step:
    late = (late_up_to_ms(lateness_ms, watermark_ms) for watermark_ms in (before_ms, after_ms))
    return Step(assigner, ("key",), None, before_ms, after_ms, *late, 1, 100, plan_time_ms=1_000)


def event(timestamp_ms: int, end_ms: int) -> list[Bucket]:
    return [Bucket(timestamp_ms, timestamp_ms, end_ms)]


def what(kind: PlanKind, file: File, buckets: Sequence[Bucket], of: Step) -> str:
    found = kind.reach([file], buckets, of)
    return "rewritten" if found.rewritten else "read" if found.read else "dropped" if found.dropped else "left"


def test_every_kind_has_a_name_of_its_own_and_says_whether_it_can_be_rerun() -> None:
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
        (windows(0, 22, first_end_ms=21), (), 9, "rewritten"),  # one of its windows is, another is not
    ],
)
def test_sessions(file: File, buckets: Sequence[Bucket], lateness_ms: int, expected: str) -> None:
    before_ms = 20 if lateness_ms == 0 else 29
    of = step(Session(gap_ms=10), before_ms, 30 if lateness_ms == 0 else 29, lateness_ms)
    assert what(Sessions(), file, buckets, of) == expected


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


def test_the_general_plan_reaches_whole_partitions() -> None:
    never = {"next_event_ms": 10**9, "next_processing_ms": 10**9}
    files = [
        windows(0, 110, **never),
        windows(0, 190, **never | {"next_event_ms": 30}),
        windows(0, 250, **never),
        windows(0, 350, **never | {"next_processing_ms": 1_000}),
    ]
    found = General().reach(files, (), step(Tumbling(10), 20, 30))
    assert [file.high["window_end_ms"] for file in found.rewritten] == [110, 190, 350]
