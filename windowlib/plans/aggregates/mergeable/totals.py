"""Sums that may overflow, and products. Both are null without values.

A sum of integers is kept with 38 digits, so it does not depend on the order of addition. The result is null if it does
not fit the result type. A product is kept as a mantissa between 1 and 2 and a power of two, so partial products cannot
leave the range of doubles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import frexp, isfinite, ldexp
from typing import Any

from windowlib.plans.aggregates.mergeable.basic import added, summed
from windowlib.plans.aggregates.mergeable.function import NUMBER, Fold, Function, PartialColumn
from windowlib.plans.sql.kinds import DOUBLE, Unproved, is_number

Scaled = Mapping[str, float]
LONGS = (-(2**63), 2**63 - 1)

_X = "cast(case when true{and_where} then {x} end as double)"
_EXPONENT = (
    f"case when {_X} = 0D or not abs({_X}) < double('Infinity') then 0D else least(floor(log2(abs({_X}))), 1023D) end"
)
# Powers of two are exact, and so is division by them.
_ONE = f"named_struct('m', {_X} / pow(2D, {_EXPONENT}), 'e', cast({_EXPONENT} as double))"
_NOTHING = "cast(named_struct('m', null, 'e', null) as struct<m: double, e: double>)"
_LARGE = "abs(a.m * b.m) >= 2D"
_TIMES = (
    f"cast(named_struct('m', coalesce(if({_LARGE}, a.m * b.m / 2D, a.m * b.m), a.m, b.m),"
    f" 'e', coalesce(a.e + b.e + if({_LARGE}, 1D, 0D), a.e, b.e)) as struct<m: double, e: double>)"
)
_HALF = "floor({product}.e / 2D)"
_FINISH = (
    "case when {product}.m = 0D or not abs({product}.m) < double('Infinity') then {product}.m"  # for any exponent
    f" when {{product}}.m is not null then {{product}}.m * pow(2D, greatest({_HALF}, -1070D))"
    f" * pow(2D, least({{product}}.e - greatest({_HALF}, -1070D), 1023D)) end"
)


def _all(values: str) -> str:
    """SQL of the product of an array of scaled numbers."""
    return f"aggregate({values}, {_NOTHING}, (a, b) -> {_TIMES})"


def _scaled(value: float) -> dict[str, float]:
    if not value or not isfinite(value):
        return {"m": value, "e": 0.0}
    mantissa, exponent = frexp(value)
    return {"m": mantissa * 2, "e": float(exponent - 1)}


def _times(a: Scaled | None, b: Scaled | None) -> Scaled | None:
    if a is None or b is None or a["m"] is None or b["m"] is None:  # Spark stores this if there are no values
        return b if a is None or a["m"] is None else a
    product = a["m"] * b["m"]
    large = not abs(product) < 2
    return {"m": product / 2 if large else product, "e": a["e"] + b["e"] + large}


def _product(held: Scaled | None) -> float | None:
    if held is None or held["m"] is None:
        return None
    try:
        return ldexp(held["m"], int(held["e"]))
    except OverflowError:
        return held["m"] * float("inf")


def _numbers(kinds: Sequence[str]) -> str:
    if not is_number(kinds[0]):
        raise Unproved(f"multiplies {kinds[0]}")
    return DOUBLE


def _nothing(*_: Any) -> None:
    """Fold of a column that is always null. It only stores the type of the sum."""


def _fitting(_: None, total: Any) -> Any:
    return None if isinstance(total, int) and not LONGS[0] <= total <= LONGS[1] else total


_AS_IS = "cast({x} as {type})"
TOTALS = {
    "try_sum": Function(
        (
            PartialColumn(
                "of", f"max(nullif({_AS_IS}, {_AS_IS})){{filter}}", "max({p})", Fold(None, _nothing, _nothing)
            ),
            PartialColumn(
                "sum",
                "cast(sum(case when true{and_where} and {x} is not null then cast({x} as {wide}) end) as {wide})",
                "cast(sum({p}) as {wide})",
                Fold(None, lambda held, x, value: added(held, x), added),
            ),
        ),
        "try_cast({sum} as {type})",
        "the sum; null if a sum of whole numbers exceeds 64 bits",
        summed,
        _fitting,
        takes=NUMBER,
        rounds=True,
        typed_by="sum({x})",
    ),
    "product": Function(
        (
            PartialColumn(
                "product",
                _all(f"collect_list(case when {_X} is not null then {_ONE} end)"),
                _all("collect_list({p})"),
                Fold(None, lambda held, x, value: _times(held, _scaled(float(x))), _times),
            ),
        ),
        _FINISH,
        "the product, as a double",
        _numbers,
        _product,
        takes=NUMBER,
        rounds=True,
        result=DOUBLE,
        element="cast({x} as double)",
    ),
}  # fmt: skip
