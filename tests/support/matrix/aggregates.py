"""Aggregates of the matrix, with their exact results by int, Decimal, Fraction and math.fsum.

NaN is the greatest number; zeros are equal whatever their sign. No engine is asked what is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from tests.support.matrix.more_aggregates import MORE
from tests.support.matrix.oracle import Aggregate, Oracle, added, exactly, float_sum, in_time, known, rank
from tests.support.matrix.values import NESTED, WHOLE, Type, has_order, is_decimal, is_float, is_number


def least(of: Type, values: Sequence[Any]) -> Any:
    """min"""
    return min(known(values), key=rank, default=None)


def greatest(of: Type, values: Sequence[Any]) -> Any:
    """max"""
    return max(known(values), key=rank, default=None)


def mean(of: Type, values: Sequence[Any]) -> Any:
    """avg"""
    present = known(values)
    if not present:
        return None
    if is_float(of):
        return float_sum(present) / len(present)
    exact = Fraction(sum(map(exactly, present))) / len(present)
    return half_up(exact, scale_of(of) + 4) if is_decimal(of) else float(exact)


def half_up(value: Fraction, digits: int) -> Decimal:
    """A fraction as a decimal, halves away from zero."""
    units = abs(value) * 10**digits
    whole = int(units) + (units - int(units) >= Fraction(1, 2))
    return Decimal(whole if value >= 0 else -whole).scaleb(-digits, Context(prec=60))


def scale_of(one: Type) -> int:
    """The digits of a decimal after the point."""
    scale: int = one.arrow.scale
    return scale


def _tested(test: Callable[[Any], bool]) -> Oracle:
    return lambda of, values: sum(map(test, known(values)))


def _above(limit: Any) -> Oracle:
    return _tested(lambda value: rank(value) > rank(limit))


def _between(low: float, high: float) -> Oracle:
    return _tested(lambda value: rank(low) <= rank(value) <= rank(high))


def _above_equal(limit: Decimal) -> Oracle:
    """As a double compares with a literal: as doubles; else exactly."""
    return lambda of, values: sum(
        rank(value) >= rank(float(limit)) if is_float(of) else value >= limit for value in known(values)
    )


def _computed(of_value: Callable[[Any], Any]) -> Oracle:
    return lambda of, values: added(of, [of_value(value) for value in known(values)])


def _most(of_value: Callable[[Any], Any]) -> Oracle:
    return lambda of, values: greatest(of, [of_value(value) for value in known(values)])


def _as_spark_rounds(value: float, digits: int) -> float:
    """A double rounded as the decimal number that it is written as."""
    return value if not math.isfinite(value) else float(half_up(Fraction(repr(value)), digits))


def _not_float(one: Type) -> bool:
    return is_number(one) and one.shown != "float"


def _plain(one: Type) -> bool:
    return one.shown not in NESTED


def _is(*shown: str) -> Callable[[Type], bool]:
    return lambda one: one.shown in shown


AGGREGATES = (
    Aggregate("count", "count({c})", lambda one: True, lambda of, values: len(known(values))),
    Aggregate("min", "min({c})", has_order, least),
    Aggregate("max", "max({c})", has_order, greatest),
    Aggregate("sum", "sum({c})", is_number, added, nearly=True),
    Aggregate("avg", "avg({c})", is_number, mean, nearly=True),
    Aggregate("first", "first({c})", lambda one: True, lambda of, values: in_time(values)[0]),
    Aggregate("last", "last({c})", lambda one: True, lambda of, values: in_time(values)[-1]),
    Aggregate(
        "first ignore nulls",
        "first({c}) ignore nulls",
        lambda one: True,
        lambda of, values: next(iter(known(in_time(values))), None),
    ),
    Aggregate(
        "approx_count_distinct",
        "approx_count_distinct({c})",
        _is("string", "boolean", "date", *WHOLE),
        lambda of, values: len(set(known(values))),
    ),
    Aggregate(
        "filter: is null",
        "count(*) filter (where {c} is null)",
        lambda one: True,
        lambda of, values: len(values) - len(known(values)),
    ),
    Aggregate("filter: > 1", "count(*) filter (where {c} > 1)", is_number, _above(1)),
    Aggregate("filter: = 0", "count(*) filter (where {c} = 0)", is_number, _tested(lambda value: value == 0)),
    Aggregate("filter: <= 0", "count(*) filter (where {c} <= 0)", is_number, _tested(lambda value: value <= 0)),
    Aggregate(
        "filter: in, not between",
        "count(*) filter (where {c} in (5, 7) or not {c} between -8 and 100)",
        is_number,
        _tested(lambda value: value in (5, 7) or not rank(-8) <= rank(value) <= rank(100)),
    ),
    Aggregate("filter: like", "count(*) filter (where {c} like 'a%')", _is("string"), _tested(lambda v: v[:1] == "a")),
    Aggregate("filter: > 'a'", "count(*) filter (where {c} > 'a')", _is("string"), _above("a")),
    Aggregate("filter: flag", "count(*) filter (where {c} or {c} is null)", _is("boolean"),
              lambda of, values: sum(value is not False for value in values)),
    Aggregate(
        "max filter: < 3",
        "max({c}) filter (where {c} < 3)",
        is_number,
        lambda of, values: greatest(of, [value for value in known(values) if rank(value) < rank(3)]),
    ),
    Aggregate(
        "sum of case",
        "sum(case when {c} > 1 then 1 else 0 end)",
        is_number,
        _above(1),
    ),
    Aggregate(
        "min of coalesce",
        "min(coalesce({c}, {c}))",
        _plain,
        least,
    ),
    Aggregate("filter: >= 0.1", "count(*) filter (where {c} >= 0.1)", _not_float, _above_equal(Decimal("0.1"))),
    Aggregate("sum * 0.5", "sum({c} * 0.5)", _is("double"), _computed(lambda value: value * 0.5), nearly=True),
    Aggregate("filter: = column", "count(*) filter (where {c} = {c})", _plain, lambda of, values: len(known(values))),
    Aggregate("sum of x * 2 + 1", "sum({c} * 2 + 1)", _is("double"), _computed(lambda value: value * 2 + 1), True),
    Aggregate("max of x - 1", "max({c} - 1)", _is("double"), _most(lambda value: value - 1)),
    Aggregate(
        "max of case",
        "max(case when {c} > 1 then {c} - 2 when {c} < -9 then {c} + 2 else {c} * 0 end)",
        _is(*WHOLE),
        _most(lambda value: value - 2 if value > 1 else value + 2 if value < -9 else 0),
    ),
    Aggregate("count * 2 - 1", "count({c}) * 2 - 1", lambda one: True, lambda of, values: len(known(values)) * 2 - 1),
    Aggregate(
        "round(sum / count, 2)",
        "round(sum({c}) / count(*), 2)",
        _is("tinyint", "smallint", "int"),
        lambda of, values: None if (total := added(of, values)) is None else _as_spark_rounds(total / len(values), 2),
    ),
    Aggregate("round(max, 2)", "round(max({c}), 2)", _is("double"),
              lambda of, values: None if (most := greatest(of, values)) is None else _as_spark_rounds(most, 2)),
    Aggregate(
        "sum / count",
        "sum({c}) / count(*)",
        lambda one: is_float(one) or one.shown in WHOLE,
        lambda of, values: None if (total := added(of, values)) is None else total / len(values),
        nearly=True,
    ),
    *MORE,
)  # fmt: skip
