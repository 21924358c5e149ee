"""Conditions, bits, and the value next to the least or greatest value of another column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import and_, or_, xor
from typing import Any

from windowlib.plans.aggregates.mergeable.basic import ARRIVED, VALUE_OF_STRUCT, arrival_order, arrived, chosen, rank
from windowlib.plans.aggregates.mergeable.function import BITS, CONDITION, Fold, Function, PartialColumn, Value
from windowlib.plans.sql.kinds import BOOLEAN, WHOLE, Unproved, is_nested


def _native(name: str, part: str, combine: Callable[[Any, Any], Any]) -> PartialColumn:
    def both(a: Any, b: Any) -> Any:
        return b if a is None else a if b is None else combine(a, b)

    return PartialColumn(
        part, f"{name}({{x}}){{filter}}", f"{name}({{p}})", Fold(None, lambda held, x, _: both(held, x), both)
    )


def _conditions(kinds: Sequence[str]) -> str:
    if kinds[0] != BOOLEAN:
        raise Unproved(f"uses {kinds[0]} as a condition")
    return BOOLEAN


def _bits(kinds: Sequence[str]) -> str:
    if kinds[0] not in WHOLE:
        raise Unproved(f"applies a bitwise function to {kinds[0]}")
    return kinds[0]


def _by(held: Value) -> Any:
    return rank(held["by"]), *arrival_order(held)


def _candidate(x: Value, value: Value) -> dict[str, Any]:
    return {"by": x["by"], **arrived(x, value)}


def _lower(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and _by(b) < _by(a)) else a


def _higher(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and _by(b) > _by(a)) else a


def _ordered_by(kinds: Sequence[str]) -> str:
    if is_nested(kinds[1]):
        raise Unproved(f"orders values of {kinds[1].partition('<')[0]}")
    return kinds[0]


def _next_to(extreme: str, combine: Callable[[Any, Any], Any], which: str) -> Function:
    held = f"case when true{{and_where}} and {{y}} is not null then named_struct('by', {{y}}, {ARRIVED}) end"
    fold = Fold(None, lambda held, x, value: combine(held, _candidate(x, value)), combine)
    return Function(
        (PartialColumn("held", f"{extreme}({held})", f"{extreme}({{p}})", fold),),
        "{held}.value",
        f"the value of `x`, possibly null, where `y` is {'least' if extreme == 'min' else 'greatest'}; of equal `y` the"
        f" {which} by event time, then by arrival; rows with null in `y` do not count",
        _ordered_by,
        chosen,
        arguments=2,
        by_arrival=True,
        orders_by=True,
        typed_by="first({x})",
        stored=VALUE_OF_STRUCT,
        element="case when {y} is not null then named_struct('by', {y}, 'value', {x}) end",
    )


LOGIC = {
    "bool_and": Function(
        (_native("bool_and", "all", and_),),
        "{all}",
        "true if all values are true",
        _conditions,
        takes=CONDITION,
        result=BOOLEAN,
    ),
    "bool_or": Function(
        (_native("bool_or", "some", or_),),
        "{some}",
        "true if any value is true",
        _conditions,
        takes=CONDITION,
        result=BOOLEAN,
    ),
    **{
        name: Function(
            (_native(name, "bits", combine),),
            "{bits}",
            f"{says} of the whole numbers",
            _bits,
            takes=BITS,
            typed_by=f"{name}({{x}})",
        )
        for name, says, combine in (
            ("bit_and", "the bits set in all", and_),
            ("bit_or", "the bits set in any", or_),
            ("bit_xor", "the bits set in an odd number", xor),
        )
    },
    "min_by": _next_to("min", _lower, "first"),
    "max_by": _next_to("max", _higher, "last"),
}
