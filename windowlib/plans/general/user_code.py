"""Code of the author's as the general plan runs it: what it is handed and what it gives are copies.

So nothing that it does to a value later changes an element that is stored, or a row that was given: results do not
depend on where the input was cut into batches. (Flink's state backends differ here: on the heap they share objects, in
RocksDB they do not.) Its state is its own to change; elements that a trigger or an assigner sees are not copied.
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
from windowlib.plans.general.returned_values import rows_given
from windowlib.plans.general.user_values import copied


@dataclass(frozen=True)
class OwnCode:
    """A user's process function, or the result of a user's aggregate, with the partial aggregates over event times."""

    of: ProcessFunction | None
    aggregates: Any
    names: tuple[str, ...]

    def process(self, contents: Any, context: ProcessContext) -> Iterable[Any]:
        """One result: the partial aggregates over event times, then the rows."""
        if contents and isinstance(contents[0], dict):
            partials, given = of_times([value[TIMESTAMP] for value in contents]), contents
        else:
            partials = contents[: len(PARTIALS)] if contents else no_times()
            given = contents[-1] if contents else []
            if self.aggregates is not None:
                given = dict(zip(self.names, finished(self.aggregates, contents), strict=True))
        rows = [given] if self.of is None else rows_given(self.of.process(copied(given), context))
        return [(*partials, rows)]

    def clear(self, context: ProcessContext) -> None:
        if self.of is not None:
            self.of.clear(context)


@dataclass(frozen=True)
class OwnEvictor:
    """A user's evictor: the elements that it lets stay are those that came, whatever it made of what it saw."""

    of: Evictor

    def evict_before(self, elements: Elements, window: TimeWindow) -> Elements:
        return self._staying(self.of.evict_before, elements, window)

    def evict_after(self, elements: Elements, window: TimeWindow) -> Elements:
        return self._staying(self.of.evict_after, elements, window)

    def _staying(
        self, ask: Callable[[Elements, TimeWindow], Elements], elements: Elements, window: TimeWindow
    ) -> list[Element]:
        seen = [element._replace(value=copied(element.value)) for element in elements]
        came = {id(copy): element for copy, element in zip(seen, elements, strict=True)}
        return [came.get(id(one), one) for one in ask(seen.copy(), window)]


def evictor_of(given: Evictor | None) -> Evictor | None:
    """The evictor that the plan runs: one of windowlib's changes nothing, and needs no copies."""
    if given is None or type(given).__module__ == Evictor.__module__:
        return given
    return OwnEvictor(given)
