"""Exact aggregates that keep the values of a window: distinct counts, sets, lists, percentiles.

A window that keeps more than `AggregateSet.most_values` values ends the run (`windowlib.plans.aggregates.bounds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import ceil, floor
from typing import Any

from windowlib.plans.aggregates.mergeable.basic import ARRIVED, arrival_order, arrived, rank
from windowlib.plans.aggregates.mergeable.function import NUMBER, Fold, Function, PartialColumn
from windowlib.plans.sql.kinds import DOUBLE, Unproved, is_nested, is_number


def _is_in(x: Any, held: Sequence[Any]) -> bool:
    if isinstance(x, float | dict | list):
        return any(rank(x) == rank(value) for value in held)
    return x in held


def _joined(*, distinct: bool) -> Fold:
    def add(held: list[Any], x: Any, value: Any) -> list[Any]:
        return held if distinct and _is_in(x, held) else [*held, x]

    def merge(a: list[Any], b: list[Any]) -> list[Any]:
        return a + [x for x in b if not (distinct and _is_in(x, a))]

    return Fold([], add, merge)


_SET = PartialColumn(
    "kept",
    "collect_set({x}){filter}",
    "array_distinct(flatten(collect_list({p})))",
    _joined(distinct=True),
    bounded=True,
)
_LIST = PartialColumn(
    "kept",
    f"collect_list(case when true{{and_where}} and {{x}} is not null then named_struct({ARRIVED}) end)",
    "flatten(collect_list({p}))",
    Fold([], lambda held, x, value: [*held, arrived(x, value)], lambda a, b: a + b),
    bounded=True,
)
_NUMBERS = PartialColumn(
    "kept",
    "collect_list(cast({x} as double)){filter}",
    "flatten(collect_list({p}))",
    _joined(distinct=False),
    bounded=True,
)


_VALUES = PartialColumn(
    "kept",
    "collect_list(case when true{and_where} and {x} is not null then {x} end)",
    "flatten(collect_list({p}))",
    _joined(distinct=False),
    bounded=True,
)
_ANY = "try_element_at({kept}, 1)"
_NONE_YET = f"named_struct('value', {_ANY}, 'times', 0L, 'mode', {_ANY}, 'most', 0L)"
_TIMES = "if(a.value <=> x, a.times, 0L) + 1L"
_ONE_MORE = (
    f"named_struct('value', x, 'times', {_TIMES}, 'mode', if({_TIMES} > a.most, x, a.mode),"
    f" 'most', greatest({_TIMES}, a.most))"
)


def _equal(kinds: Sequence[str]) -> str:
    if is_nested(kinds[0]):
        raise Unproved(f"compares values of {kinds[0].partition('<')[0]}")
    return "bigint"


def _array(kinds: Sequence[str]) -> str:
    _equal(kinds)
    return f"array<{kinds[0]}>"


def _numbers(kinds: Sequence[str]) -> str:
    if others := [kind for kind in kinds if not is_number(kind)]:
        raise Unproved(f"computes with {others[0]}")
    return DOUBLE


def _percentile(values: Sequence[float], at: float) -> float | None:
    """Percentile `at` (0 to 1), interpolated between neighbours. None without values."""
    if not values:
        return None
    in_order = sorted(values, key=rank)
    position = at * (len(in_order) - 1)
    low, high = floor(position), ceil(position)
    if low == high or in_order[low] == in_order[high]:
        return in_order[low]
    return (high - position) * in_order[low] + (position - low) * in_order[high]


def _at(share: str) -> str:
    """`_percentile` as SQL."""
    position = f"({share} * (size(s) - 1))"
    low, high = (f"try_element_at(s, greatest(cast({side}({position}) as int) + 1, 1))" for side in ("floor", "ceil"))
    between = f"(ceil({position}) - {position}) * {low} + ({position} - floor({position})) * {high}"
    value = f"case when floor({position}) = ceil({position}) or {low} = {high} then {low} else {between} end"
    return f"element_at(transform(array(array_sort({{kept}})), s -> {value}), 1)"


def _in_order(held: Sequence[Any]) -> list[Any]:
    return [entry["value"] for entry in sorted(held, key=arrival_order)]


def _one(kinds: Sequence[str]) -> str:
    _equal(kinds)
    return kinds[0]


def _mode(held: Sequence[Any]) -> Any:
    """Least of the most frequent values."""
    runs = [[*run] for _, run in groupby(sorted(held, key=rank), key=rank)]
    return max(runs, key=len)[0] if runs else None


KEPT = {
    "count_distinct": Function(
        (_SET,),
        "cast(size({kept}) as bigint)",
        "the number of distinct values: `count(distinct x)`",
        _equal,
        len,
        result="bigint",
        normal=True,
        typed_by="first({x})",
        stored="array<(.*)>",
    ),
    "collect_set": Function(
        (_SET,),
        "array_sort({kept})",
        "the distinct values, in ascending order",
        _array,
        lambda held: sorted(held, key=rank),
        normal=True,
        typed_by="first({x})",
        stored="array<(.*)>",
        result="array",
    ),
    "collect_list": Function(
        (_LIST,),
        "transform(array_sort({kept}), e -> e.value)",
        "the values by event time, then by arrival",
        _array,
        _in_order,
        by_arrival=True,
        result="array",
        element="case when {x} is not null then named_struct('value', {x}) end",
    ),
    "mode": Function(
        (_VALUES,),
        f"aggregate(array_sort({{kept}}), {_NONE_YET}, (a, x) -> {_ONE_MORE}).mode",
        "the most frequent value, or the least of several equally frequent values",
        _one,
        _mode,
        normal=True,
        typed_by="first({x})",
        stored="array<(.*)>",
    ),
    "median": Function(
        (_NUMBERS,),
        _at("0.5D"),
        "the middle value, interpolated between neighbours",
        _numbers,
        lambda held: _percentile(held, 0.5),
        takes=NUMBER,
        rounds=True,
        result=DOUBLE,
        element="cast({x} as double)",
    ),
    "percentile": Function(
        (_NUMBERS,),
        _at("cast({y} as double)"),
        "the value at the share `y`, 0 to 1, of the sorted values, interpolated between neighbours",
        lambda kinds: _numbers(kinds[:1]),
        lambda held, at: _percentile(held, float(at)),
        arguments=2,
        takes=NUMBER,
        rounds=True,
        share=True,
        result=DOUBLE,
        element="cast({x} as double)",
    ),
}
