"""Windows of processing time from run to run: a window that holds the time of a plan gets its elements, and waits."""

from __future__ import annotations

from windowlib.model.aggregates import Count
from windowlib.model.assigners import Tumbling
from windowlib.model.elements import Element, Timing
from windowlib.model.keyed import Instant, KeyRun, Outcome, Result
from windowlib.model.spec import WindowSpec
from windowlib.model.triggers import CountTrigger, ProcessingTimeTrigger
from windowlib.model.windows import MIN_TIME_MS, TimeWindow


def runs(spec: WindowSpec, *plan_times_ms: int) -> list[list[Outcome]]:
    """What comes of runs at these times, each with one element; each goes on from the rows of the one before."""
    found, rows = [], []
    for plan_time_ms in plan_times_ms:
        run = KeyRun(spec, "a", Instant.of_run(MIN_TIME_MS, MIN_TIME_MS, plan_time_ms, time="processing"))
        for row in rows:
            run.restore(row)
        found.append([*run.advance([Element("a", None)])])
        rows = run.rows()
    return found


def test_a_window_fires_in_the_run_whose_plan_is_made_when_its_last_millisecond_is_over() -> None:
    spec = WindowSpec(Tumbling(10), Count(), trigger=ProcessingTimeTrigger(), time="processing")
    assert runs(spec, 100, 109, 110) == [[], [], [Result(TimeWindow(100, 110), 2, Timing.ON_TIME, firing=1)]]


def test_an_element_lies_in_the_window_that_holds_the_time_of_the_plan() -> None:
    spec = WindowSpec(Tumbling(10), Count(), trigger=CountTrigger(1), time="processing")
    assert runs(spec, 99, 100) == [
        [Result(TimeWindow(90, 100), 1, Timing.EARLY, firing=1)],
        [Result(TimeWindow(100, 110), 1, Timing.EARLY, firing=1)],
    ]
