"""How often a window, or what it grew from, has fired: counted from run to run."""

from __future__ import annotations

from collections.abc import Sequence

from windowlib.model.aggregates import Count
from windowlib.model.assigners import Assigner, Session, Tumbling
from windowlib.model.elements import Element
from windowlib.model.keyed import Instant, KeyRun, Result
from windowlib.model.spec import WindowSpec
from windowlib.model.triggers import CountTrigger


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
