"""Wrappers of the user's code for the general plan. They copy the values that the code receives and returns.

So the code cannot change stored elements or returned rows afterwards, and results do not depend on the split of events
into batches. (Flink's state backends differ here: the heap backend shares objects, RocksDB does not.) The code's own
state, and elements passed to triggers and assigners, are not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from windowlib.contract.state_tables import PARTIALS
from windowlib.model.elements import Element
from windowlib.model.evictors import Elements, Evictor
from windowlib.model.functions import ProcessContext, ProcessFunction
from windowlib.model.windows import TimeWindow
from windowlib.plans.aggregates.mergeable.function import TIMESTAMP
from windowlib.plans.general.folds import finished, no_times, of_times
from windowlib.plans.general.returned_values import returned_rows
from windowlib.plans.general.user_values import copied


@dataclass(frozen=True)
class UserProcess:
    """Process function that adds the partial aggregates over event times to the results of the user's code.

    function: the user's process function, or None if the result of the user's aggregate is the only row
    """

    function: ProcessFunction | None
    aggregates: Any
    names: tuple[str, ...]

    def process(self, contents: Any, context: ProcessContext) -> Iterable[Any]:
        """Returns one result: the partial aggregates over event times, then the rows."""
        if contents and isinstance(contents[0], dict):
            partials, argument = of_times([value[TIMESTAMP] for value in contents]), contents
        else:
            partials = contents[: len(PARTIALS)] if contents else no_times()
            argument = contents[-1] if contents else []
            if self.aggregates is not None:
                argument = dict(zip(self.names, finished(self.aggregates, contents), strict=True))
        rows = [argument]
        if self.function is not None:
            rows = returned_rows(self.function.process(copied(argument), context))
        return [(*partials, rows)]

    def clear(self, context: ProcessContext) -> None:
        if self.function is not None:
            self.function.clear(context)


@dataclass(frozen=True)
class UserEvictor:
    """A user's evictor that works on copies, so its changes to values do not reach the elements that stay."""

    evictor: Evictor

    def evict_before(self, elements: Elements, window: TimeWindow) -> Elements:
        return self._staying(self.evictor.evict_before, elements, window)

    def evict_after(self, elements: Elements, window: TimeWindow) -> Elements:
        return self._staying(self.evictor.evict_after, elements, window)

    def _staying(
        self, evict: Callable[[Elements, TimeWindow], Elements], elements: Elements, window: TimeWindow
    ) -> list[Element]:
        copies = [element._replace(value=copied(element.value)) for element in elements]
        originals = {id(copy): element for copy, element in zip(copies, elements, strict=True)}
        return [originals.get(id(element), element) for element in evict(copies.copy(), window)]


def evictor_of(evictor: Evictor | None) -> Evictor | None:
    """The evictor that the plan runs. Windowlib's evictors change no values and need no copies."""
    if evictor is None or type(evictor).__module__ == Evictor.__module__:
        return evictor
    return UserEvictor(evictor)
