"""Aggregates: folds of a window's values into one accumulator; accumulators can be merged.

An accumulator is a JSON value (numbers, strings, lists, dictionaries, None), so that it can be stored unchanged.
``of`` names the column of the value to aggregate; None means the value itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


class Aggregate(Protocol):
    """Interface of an aggregate; users may write their own."""

    @property
    def order_free(self) -> bool:
        """True if the order of additions and merges does not change the result."""

    def create_accumulator(self) -> Any:
        """The accumulator without values."""

    def add(self, accumulator: Any, value: Any) -> Any:
        """The accumulator with one more value."""

    def merge(self, a: Any, b: Any) -> Any:
        """The accumulator of the values of ``a`` and ``b``."""

    def get_result(self, accumulator: Any) -> Any:
        """The value in the window's result: by default the accumulator itself."""
        return accumulator


def _read(value: Any, column: str | None) -> Any:
    return value if column is None else value[column]


@dataclass(frozen=True, slots=True)
class Count(Aggregate):
    """The number of values."""

    order_free: ClassVar[bool] = True

    def create_accumulator(self) -> int:
        return 0

    def add(self, accumulator: int, value: Any) -> int:
        return accumulator + 1

    def merge(self, a: int, b: int) -> int:
        return a + b


@dataclass(frozen=True, slots=True)
class Sum(Aggregate):
    """The sum of the values; 0 if there are none.

    >>> Sum(of="price").add(2, {"price": 3})
    5
    """

    of: str | None = None
    order_free: ClassVar[bool] = True

    def create_accumulator(self) -> Any:
        return 0

    def add(self, accumulator: Any, value: Any) -> Any:
        return accumulator + _read(value, self.of)

    def merge(self, a: Any, b: Any) -> Any:
        return a + b


@dataclass(frozen=True, slots=True)
class Reduce(Aggregate):
    """The values combined two by two with ``function``; None if there are none. Values must be JSON values."""

    function: Callable[[Any, Any], Any]
    of: str | None = None
    order_free: bool = False

    def create_accumulator(self) -> Any:
        return None

    def add(self, accumulator: Any, value: Any) -> Any:
        return self.merge(accumulator, _read(value, self.of))

    def merge(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return self.function(a, b)


def Min(of: str | None = None) -> Reduce:
    """The least value; None if there are none."""
    return Reduce(min, of, order_free=True)


def Max(of: str | None = None) -> Reduce:
    """The greatest value; None if there are none."""
    return Reduce(max, of, order_free=True)


@dataclass(frozen=True, slots=True)
class Together:
    """Several aggregates over the same values; the result is the tuple of their results.

    >>> both = Together((Count(), Sum()))
    >>> both.get_result(both.add(both.create_accumulator(), 5))
    (1, 5)
    """

    aggregates: tuple[Aggregate, ...]

    @property
    def order_free(self) -> bool:
        return all(aggregate.order_free for aggregate in self.aggregates)

    def create_accumulator(self) -> list[Any]:
        return [aggregate.create_accumulator() for aggregate in self.aggregates]

    def add(self, accumulator: list[Any], value: Any) -> list[Any]:
        return [aggregate.add(part, value) for aggregate, part in zip(self.aggregates, accumulator, strict=True)]

    def merge(self, a: list[Any], b: list[Any]) -> list[Any]:
        return [aggregate.merge(x, y) for aggregate, x, y in zip(self.aggregates, a, b, strict=True)]

    def get_result(self, accumulator: list[Any]) -> tuple[Any, ...]:
        return tuple(aggregate.get_result(part) for aggregate, part in zip(self.aggregates, accumulator, strict=True))
