"""The user's code cannot change stored elements or returned rows through the values that it receives and returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from tests.support.general_engines import WorkerEngine
from windowlib.model.assigners import Tumbling
from windowlib.model.elements import Element
from windowlib.model.evictors import Elements
from windowlib.model.functions import ProcessContext
from windowlib.model.spec import WindowSpec
from windowlib.model.triggers import CountTrigger
from windowlib.model.windows import TimeWindow
from windowlib.plans.aggregates.mergeable.function import TIMESTAMP
from windowlib.plans.general.folds import Folds
from windowlib.plans.general.user_code import UserProcess
from windowlib.plans.general.user_values import copied

WINDOW = Tumbling(100)
EACH = CountTrigger(1)


def spoilt(value: dict[str, Any]) -> int:
    """Returns the value of an element, then changes it."""
    found: int = value["value"]
    value["value"] = -1000
    return found


class Total:
    """An aggregate that changes the elements it adds, and returns its accumulator as the result."""

    order_free = False

    def create_accumulator(self) -> dict[str, int]:
        return {"n": 0}

    def add(self, accumulator: dict[str, int], value: dict[str, Any]) -> dict[str, int]:
        accumulator["n"] += spoilt(value)
        return accumulator

    def merge(self, a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
        a["n"] += b["n"]
        return a

    def get_result(self, accumulator: dict[str, int]) -> dict[str, int]:
        return accumulator


class Running:
    """A function that changes its values, and returns its state object."""

    def process(self, values: Sequence[dict[str, Any]], context: ProcessContext) -> Iterator[dict[str, Any]]:
        context.key_state["n"] = sum(map(spoilt, values))
        yield context.key_state

    def clear(self, context: ProcessContext) -> None:
        pass


class OneRow:
    """A function that yields the same dictionary object for each element."""

    def process(self, values: Sequence[dict[str, Any]], context: ProcessContext) -> Iterator[dict[str, Any]]:
        row: dict[str, Any] = {}
        for value in values:
            row["n"] = value["value"]
            yield row

    def clear(self, context: ProcessContext) -> None:
        pass


class Spoiling:
    """An evictor that keeps all elements and changes their values."""

    def evict_before(self, elements: Elements, window: TimeWindow) -> Elements:
        for element in elements:
            spoilt(element.value)
        return elements

    def evict_after(self, elements: Elements, window: TimeWindow) -> Elements:
        return self.evict_before(elements, window)


CASES = {
    "aggregate": (WindowSpec(WINDOW, Total(), EACH), [1, 3, 6]),
    "function": (WindowSpec(WINDOW, process=Running(), trigger=EACH), [1, 3, 6]),
    "one row": (WindowSpec(WINDOW, process=OneRow(), trigger=EACH), [1, 1, 2, 1, 2, 3]),
    "evictor": (WindowSpec(WINDOW, Total(), EACH, Spoiling()), [1, 3, 6]),
    "evictor of a function": (
        WindowSpec(WINDOW, process=OneRow(), trigger=EACH, evictor=Spoiling()),
        [1, 1, 2, 1, 2, 3],
    ),
}


@pytest.mark.parametrize("cuts", [[3], [1, 3], [1, 2, 3]], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_results_do_not_depend_on_later_changes_or_on_the_division_into_batches(case: str, cuts: list[int]) -> None:
    spec, expected = CASES[case]
    engine, found, done = WorkerEngine(spec), [], 0
    for cut in cuts:
        elements = [Element("a", 5, {"value": n, "gap_ms": 1}, n) for n in range(done + 1, cut + 1)]
        found += [one.result[0] for one in engine.advance(elements, 0, 0, 0, compact=False).fired]
        done = cut
    assert found == expected


def test_rows_keep_the_values_of_the_time_when_they_are_yielded() -> None:
    """That includes lists inside rows, and results of aggregates."""
    pages: list[str] = []

    class Pages:
        def process(self, values: Any, context: Any) -> Iterator[dict[str, Any]]:
            for value in values:
                pages.append(value["page"])
                yield {"pages": pages}

        def clear(self, context: Any) -> None:
            pages.clear()

    code = UserProcess(Pages(), None, ())
    values = [{"page": "a", TIMESTAMP: 1}, {"page": "b", TIMESTAMP: 2}]
    context: Any = None
    [(elements, last_event_ms, *_, rows)] = code.process(values, context)
    code.clear(context)
    assert (elements, last_event_ms, rows) == (2, 2, [{"pages": ["a"]}, {"pages": ["a", "b"]}])

    folds = Folds(own=Total())
    held = folds.add(folds.create_accumulator(), {TIMESTAMP: 1, "value": 2})
    given = folds.get_result(held)
    folds.add(held, {TIMESTAMP: 1, "value": 5})
    assert given[-1] == {"n": 2}


def test_a_view_of_a_dictionary_is_copied_as_a_dictionary() -> None:
    of = {"pages": ["a"]}
    kept = copied(MappingProxyType(of))
    of["pages"].append("b")
    assert kept == {"pages": ["a"]}


def test_values_that_cannot_be_copied_are_returned_unchanged() -> None:
    generator = (n for n in range(3))
    assert copied({"of": generator})["of"] is generator
