"""Aggregates (`windowlib.plans.aggregates.columns`) folded one element at a time, for the plan that runs the operator.

The accumulator lists the values of a state row's partial columns: `PARTIALS`, then ``p{i}_{part}``. So the state has
typed columns, and Spark finishes these partials like its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import islice
from typing import Any

from windowlib.contract.state_tables import PARTIALS
from windowlib.model import aggregates
from windowlib.model.errors import InvalidSpec
from windowlib.plans import names
from windowlib.plans.aggregates.aggregate_set import SqlAggregate
from windowlib.plans.aggregates.functions import FUNCTIONS
from windowlib.plans.aggregates.mergeable.function import TIMESTAMP, Add, Fold, Value
from windowlib.plans.general.user_values import copied

ARGUMENT = names.internal("argument_")
_ADD_TIMES = [(at, partial.add) for at, partial in enumerate(PARTIALS)]


def argument(index: int) -> str:
    """Column of an element with the argument of aggregate ``index``; null if the aggregate's filter excludes it."""
    return f"{ARGUMENT}{index}"


def no_times() -> list[Any]:
    """Initial partial aggregates over event times."""
    return [partial.empty for partial in PARTIALS]


def of_times(times: Sequence[int | None]) -> list[Any]:
    """Partial aggregates over event times of elements; None stands for an element without a time.

    >>> of_times([5, None, 3])[:2], of_times([])[:2]
    ([3, 5], [0, None])
    """
    return [reduce(partial.add, times, partial.empty) for partial in PARTIALS]


def check_foldable(sql_aggregates: Sequence[SqlAggregate]) -> None:
    """Raises InvalidSpec for an aggregate that cannot be folded."""
    for aggregate in sql_aggregates:
        if not FUNCTIONS[aggregate.function].folds:
            raise InvalidSpec(
                f"only Spark computes {aggregate}, but these windows run in Python, element by element. Remove it, or"
                " fire when the watermark passes the window's end"
            )


@dataclass(frozen=True)
class Folds:
    """Aggregate that folds event times, SQL aggregates, and the user's Python aggregate ``own`` unless it is None.

    The accumulator of ``own`` comes last. The result is a copy of the accumulator, with the result of ``own`` in the
    last place.

    >>> folds = Folds((SqlAggregate("sum", "v"),))
    >>> folds.add(folds.create_accumulator(), {TIMESTAMP: 5, argument(0): 3})[-1]
    3
    """

    sql_aggregates: tuple[SqlAggregate, ...] = ()
    own: aggregates.Aggregate | None = None
    order_free = False

    @cached_property
    def _parts(self) -> list[tuple[int, str, Fold]]:
        """Parts: position in the accumulator, column of the argument, fold."""
        functions = [FUNCTIONS[aggregate.function] for aggregate in self.sql_aggregates]
        parts = [(argument(i), part.fold) for i, function in enumerate(functions) for part in function.parts]
        return [(at, name, fold) for at, (name, fold) in enumerate(parts, len(PARTIALS)) if fold]

    @cached_property
    def _adds(self) -> list[tuple[int, str, Add]]:
        return [(at, name, fold.add) for at, name, fold in self._parts]

    @cached_property
    def _initial(self) -> list[Any]:
        return [*no_times(), *(fold.initial for _, _, fold in self._parts)]

    def create_accumulator(self) -> list[Any]:
        own = [] if self.own is None else [self.own.create_accumulator()]
        return self._initial + own

    def restored(self, stored: Sequence[Any]) -> list[Any]:
        """Accumulator from its stored parts. A null part, of an aggregate added later, gets its initial value.

        >>> Folds((SqlAggregate("sum", "v"), SqlAggregate("count", None))).restored([*of_times([5]), 7, None])[-2:]
        [7, 0]
        """
        return [first if part is None else part for first, part in zip(self._initial, stored, strict=True)]

    def add(self, accumulator: list[Any], value: Value) -> list[Any]:
        timestamp_ms = value[TIMESTAMP]
        for at, add_time in _ADD_TIMES:
            accumulator[at] = add_time(accumulator[at], timestamp_ms)
        for at, name, add in self._adds:
            x = value[name]
            if x is not None:
                accumulator[at] = add(accumulator[at], x, value)
        if self.own is not None:
            accumulator[-1] = self.own.add(accumulator[-1], copied(value))
        return accumulator

    def merge(self, a: list[Any], b: list[Any]) -> list[Any]:
        merged = [partial.merge(x, y) for partial, x, y in zip(PARTIALS, a, b, strict=False)]
        merged += [fold.merge(a[at], b[at]) for at, _, fold in self._parts]
        return merged if self.own is None else [*merged, self.own.merge(a[-1], b[-1])]

    def get_result(self, accumulator: list[Any]) -> list[Any]:
        if self.own is None:
            return accumulator.copy()
        return [*accumulator[:-1], copied(self.own.get_result(accumulator[-1]))]


def finished(sql_aggregates: Sequence[SqlAggregate], accumulator: Sequence[Any]) -> list[Any]:
    """Results of SQL aggregates as Python values, for a process function that uses them."""
    held, values = iter(accumulator[len(PARTIALS) :]), list[Any]()
    for aggregate in sql_aggregates:
        function = FUNCTIONS[aggregate.function]
        shares = aggregate.more_sql if function.share else ()
        values.append(function.value(*islice(held, len(function.parts)), *shares))
    return values
