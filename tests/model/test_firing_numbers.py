"""How often a window, or what it grew from, has fired: counted from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windowlib.model.aggregates import Count
from windowlib.model.assigners import Assigner, Session, Tumbling
from windowlib.model.elements import Element, Timing
from windowlib.model.evictors import CountEvictor
from windowlib.model.keyed import Instant, KeyRun, Result
from windowlib.model.spec import WindowSpec
from windowlib.model.triggers import CountTrigger
from windowlib.model.windows import TimeWindow


def firings(assigner: Assigner, *runs: Sequence[int], every: int = 2) -> list[list[tuple[int, int, int]]]:
    """Start, end and number of each firing, by run; a run begins with the rows that the one before left."""
    found, rows = [], []
    for number, times in enumerate(runs):
        of_key = KeyRun(WindowSpec(assigner, Count(), CountTrigger(every)), "a", Instant.of_run(-1, -1, number))
        for row in rows:
            of_key.restore(row)
        outcomes = [*of_key.advance(Element("a", time_ms) for time_ms in times)]
        found.append([(*one.window, one.firing) for one in outcomes if isinstance(one, Result)])
        rows = of_key.rows()
    return found


def test_firings_of_a_window_are_numbered_over_all_runs() -> None:
    assert firings(Tumbling(10), [1, 2, 3, 4, 11], [5, 6, 12], [7, 8]) == [
        [(0, 10, 1), (0, 10, 2)],
        [(0, 10, 3), (10, 20, 1)],
        [(0, 10, 4)],
    ]


def test_a_session_goes_on_counting_from_the_one_that_fired_most_often() -> None:
    assert firings(Session(5), [0, 1, 2, 3, 20, 21], [7, 8], [12, 17]) == [
        [(0, 6, 1), (0, 8, 2), (20, 26, 1)],
        [(0, 13, 3)],
        [(0, 26, 4)],
    ]


def test_a_session_that_a_shorter_lateness_has_cleaned_up_keeps_its_result() -> None:
    """A session of the same run over its bounds is another one: it replaces nothing, and counts from 1."""
    spec = WindowSpec(Session(5), Count(), evictor=CountEvictor(9), allowed_lateness_ms=50)
    before = KeyRun(spec, "a", Instant.of_run(-1, 9, 0))
    [published] = before.advance([Element("a", 3)])
    shorter = KeyRun(replace(spec, allowed_lateness_ms=0), "a", Instant.of_run(9, 20, 1, 9, resumes=True))
    for row in before.rows():
        shorter.restore(row)
    assert [*shorter.advance(Element("a", time_ms, arrival=time_ms) for time_ms in (10, 6, 2))] == [
        Result(TimeWindow(2, 15), 3, Timing.ON_TIME, firing=1)
    ]
    assert published == Result(TimeWindow(3, 8), 1, Timing.ON_TIME, firing=1)
