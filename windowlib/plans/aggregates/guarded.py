"""Aggregates as SQL for an engine that leaves Spark's answers where numbers end.

Such an engine lets sums of whole numbers begin again at the other end, cuts averages of decimals off, leaves NaN out
of extremes, and begins a minimum at the greatest finite double, so that it never gets to infinity. What is built here
gives Spark's answers on it: NaN is greater than every other number, and a sum that does not fit is an error.
"""

from __future__ import annotations

from windowlib.plans.aggregates.averages import WIDEST
from windowlib.plans.sql.kinds import fields_of


def sum_of_longs(argument: str) -> str:
    """A summand wide enough for any sum of 64 bits."""
    return f"cast({argument} as decimal({WIDEST}, 0))"


def extreme(function: str, argument: str, floats: str) -> str:
    """``min`` or ``max`` of floats or doubles; null of none.

    >>> extreme("min", "x", "double").count("x < double('Infinity')")
    1
    """
    nan, most, least = (f"{floats}('{value}')" for value in ("NaN", "Infinity", "-Infinity"))
    any_nan, any_most, any_least = (f"bool_or({test})" for test in (f"isnan({argument})", *_is(argument, most, least)))
    if function == "max":
        finite = f"max(case when {argument} > {least} then {argument} end)"
        cases = f"when {any_nan} then {nan} when {any_most} then {most}"
        value = f"coalesce({finite}, case when {any_least} then {least} end)"
    else:
        finite = f"min(case when {argument} < {most} then {argument} end)"
        cases = f"when {any_least} then {least}"
        value = f"coalesce({finite}, case when {any_most} then {most} when {any_nan} then {nan} end)"
    return f"cast(case {cases} else {value} end as {floats})"


def ordered_as_spark(argument: str, kind: str | None) -> str:
    """A value as others are compared with it: one NaN, and one zero, whatever their bits; in structs and arrays, too.

    >>> ordered_as_spark("x", "int"), ordered_as_spark("x", "struct<a:int,b:string>")
    ('x', 'x')
    """
    if kind is None or not ("float" in kind or "double" in kind):
        return argument
    if kind.startswith("array<"):
        element = f"e{argument.count('->')}"
        return f"transform({argument}, {element} -> {ordered_as_spark(element, kind[len('array<') : -1])})"
    if fields := fields_of(kind):
        parts = (f"'{name}', {ordered_as_spark(f'({argument}).`{name}`', of)}" for name, of in fields.items())
        return f"if(({argument}) is null, null, named_struct({', '.join(parts)}))"
    if kind not in ("float", "double"):
        return argument
    nan, zero = f"{kind}('NaN')", f"cast(0 as {kind})"
    return f"case when isnan({argument}) then {nan} when {argument} = {zero} then {zero} else {argument} end"


def average_of_decimals(total: str, count: str, precision: int, scale: int) -> str:
    """The quotient of a sum of decimals of that type and a count (null: no values), for a cast to round to its type.

    The engine divides to four digits more than the dividend has, and cuts off: the sum gets one digit more.
    """
    return f"cast({total} as decimal({min(precision + 1, WIDEST)}, {scale + 1})) / {count}"


def _is(argument: str, *values: str) -> tuple[str, ...]:
    return tuple(f"{argument} = {value}" for value in values)
