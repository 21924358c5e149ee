"""The aggregates of `windowlib.plans.aggregates` folded one element at a time, for the plan that runs the operator.

The accumulator is the list of the partial columns a row of state has: elements, last_event_ms, ``p{i}_{part}``. So
state is typed columns, and Spark finishes what was folded here as it finishes its own partials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from windowlib import aggregates
from windowlib.aggregate_set import Aggregate
from windowlib.errors import InvalidSpec

TIMESTAMP, ARRIVAL = "_timestamp_ms", "_arrival"  # of an element, beside its columns in its value
ARGUMENT = "_argument_"
TAKES_NULLS = ("first", "last")  # their argument is a struct of one value, which may be null

Value = Mapping[str, Any]
Fold = Callable[[Any, Any, Value], Any]


def argument(index: int) -> str:
    """The column of an element that holds the argument of aggregate ``index``: null where its filter is not met."""
    return f"{ARGUMENT}{index}"


def _arrived(x: Mapping[str, Any], value: Value) -> dict[str, Any]:
    return {"timestamp_ms": value[TIMESTAMP], "arrival": value[ARRIVAL], "value": x["value"]}


def _by_arrival(arrived: Mapping[str, Any]) -> tuple[int, int]:
    return arrived["timestamp_ms"], arrived["arrival"]


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def _least(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and b < a) else a


def _greatest(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and b > a) else a


def _earliest(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and _by_arrival(b) < _by_arrival(a)) else a


def _latest(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and _by_arrival(b) > _by_arrival(a)) else a


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    initial: Any
    add: Fold
    merge: Callable[[Any, Any], Any]


_COUNT = _Part("count", 0, lambda held, x, value: held + 1, lambda a, b: a + b)
_SUM = _Part("sum", None, lambda held, x, value: x if held is None else held + x, _sum)
_PARTS = {
    "count": (_COUNT,),
    "sum": (_SUM,),
    "avg": (_SUM, _COUNT),
    "min": (_Part("min", None, lambda held, x, value: _least(held, x), _least),),
    "max": (_Part("max", None, lambda held, x, value: _greatest(held, x), _greatest),),
    "first": (_Part("first", None, lambda held, x, value: _earliest(held, _arrived(x, value)), _earliest),),
    "last": (_Part("last", None, lambda held, x, value: _latest(held, _arrived(x, value)), _latest),),
}


def check_foldable(found: Sequence[Aggregate]) -> None:
    """Raises InvalidSpec for an aggregate that has no form here."""
    for one in found:
        if one.function not in _PARTS:
            raise InvalidSpec(
                f"{one} is computed by Spark alone, and these windows need the operator element by element; leave it"
                " out, or fire when the watermark passes the window's end"
            )


@dataclass(frozen=True)
class Folds:
    """An aggregate (`windowlib.aggregates.Aggregate`) of elements, latest event time, and SQL aggregates or ``own``.

    ``own`` is a user's aggregate in Python; its accumulator comes last. The result is the accumulator as it is now,
    with ``own``'s result in its place.

    >>> folds = Folds((Aggregate("sum", "v"),))
    >>> folds.add(folds.create_accumulator(), {"_timestamp_ms": 5, "_arrival": 0, "_argument_0": 3})
    [1, 5, 3]
    """

    of: tuple[Aggregate, ...] = ()
    own: aggregates.Aggregate | None = None
    order_free = False

    @cached_property
    def _parts(self) -> list[tuple[int, str, _Part]]:
        every = [(argument(i), part) for i, one in enumerate(self.of) for part in _PARTS[one.function]]
        return [(slot, name, part) for slot, (name, part) in enumerate(every, 2)]

    @cached_property
    def _adds(self) -> list[tuple[int, str, Fold]]:
        return [(slot, name, part.add) for slot, name, part in self._parts]

    @cached_property
    def _initial(self) -> list[Any]:
        return [0, None, *(part.initial for _, _, part in self._parts)]

    def create_accumulator(self) -> list[Any]:
        own = [] if self.own is None else [self.own.create_accumulator()]
        return self._initial + own

    def add(self, accumulator: list[Any], value: Value) -> list[Any]:
        accumulator[0] += 1
        timestamp_ms, last_ms = value[TIMESTAMP], accumulator[1]
        if last_ms is None or (timestamp_ms is not None and timestamp_ms > last_ms):
            accumulator[1] = timestamp_ms
        for slot, name, add in self._adds:
            x = value[name]
            if x is not None:
                accumulator[slot] = add(accumulator[slot], x, value)
        if self.own is not None:
            accumulator[-1] = self.own.add(accumulator[-1], value)
        return accumulator

    def merge(self, a: list[Any], b: list[Any]) -> list[Any]:
        merged = [a[0] + b[0], _greatest(a[1], b[1])]
        merged += [part.merge(a[slot], b[slot]) for slot, _, part in self._parts]
        return merged if self.own is None else [*merged, self.own.merge(a[-1], b[-1])]

    def get_result(self, accumulator: list[Any]) -> list[Any]:
        if self.own is None:
            return accumulator.copy()
        return [*accumulator[:-1], self.own.get_result(accumulator[-1])]


def finished(of: Sequence[Aggregate], accumulator: Sequence[Any]) -> list[Any]:
    """What SQL aggregates come to, as Python values, for a function that goes on from them."""
    values: list[Any] = []
    slot = 2
    for one in of:
        held = accumulator[slot : slot + len(_PARTS[one.function])]
        slot += len(held)
        match one.function:
            case "avg":
                total, count = held
                values.append(None if not count else total / (Decimal(count) if isinstance(total, Decimal) else count))
            case "first" | "last":
                values.append(held[0] and held[0]["value"])
            case _:
                values.append(held[0])
    return values
