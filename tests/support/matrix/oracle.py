"""Aggregates of the matrix, and the values in exact arithmetic and in order of time for their oracles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.support.matrix.values import INF, NAN, Type, is_float, times

# What the values of a key come to, in the order of their arrival; their times are those of `times`.
Oracle = Callable[[Type, Sequence[Any]], Any]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate: SQL of a column `{c}`, its types, its expected value, and a tolerance of 1e-9 or none."""

    name: str
    sql: str
    of: Callable[[Type], bool]
    oracle: Oracle
    nearly: bool = False


def known(values: Sequence[Any]) -> list[Any]:
    """The values that are not null."""
    return [value for value in values if value is not None]


def rank(value: Any) -> Any:
    """Order of values: NaN above all numbers, null below all in a struct or an array."""
    match value:
        case float() | int() | Decimal():
            return (1, 0) if math.isnan(value) else (0, value)
        case str():
            return value.encode()
        case dict():
            return tuple((one is not None, rank(one) if one is not None else 0) for one in value.values())
        case list():
            return [(one is not None, one or 0) for one in value]
    return value


def in_time(values: Sequence[Any]) -> list[Any]:
    """The values in the order of (event time, arrival)."""
    order = sorted(range(len(values)), key=lambda row: (times()[row], row))
    return [values[row] for row in order]


def added(of: Type, values: Sequence[Any]) -> Any:
    """Sum; null without values."""
    present = known(values)
    if not present:
        return None
    if is_float(of):
        return float_sum(present)
    return sum(map(exactly, present))


def float_sum(present: Sequence[float]) -> float:
    """Sum of floats: NaN for infinities of both signs."""
    if any(map(math.isnan, present)) or {INF, -INF} <= set(present):
        return NAN
    return next((value for value in present if math.isinf(value)), None) or math.fsum(present)


def exactly(value: Any) -> Any:
    """A decimal as a fraction."""
    return Fraction(value) if isinstance(value, Decimal) else value
