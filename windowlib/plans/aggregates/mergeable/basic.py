"""Counts, sums, averages, extremes, first and last values, approximate distinct counts."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from windowlib.plans import names
from windowlib.plans.aggregates.mergeable.function import (
    ARRIVAL,
    NUMBER,
    TIMESTAMP,
    Fold,
    Function,
    PartialColumn,
    Value,
)
from windowlib.plans.sql.kinds import (
    BOOLEAN,
    DOUBLE,
    FLOAT,
    STRING,
    WHOLE,
    WIDEST_AVERAGE,
    WIDEST_SUM,
    Unproved,
    decimal_of,
    is_nested,
)

DISTINCT = (STRING, BOOLEAN, "date", *WHOLE)  # types whose string form is the same on all engines


def _average(total: Any, count: int) -> Any:
    return None if not count else total / (Decimal(count) if isinstance(total, Decimal) else count)


def arrived(x: Value, value: Value) -> dict[str, Any]:
    """A value with its event time and arrival, which decide which value is first or last."""
    return {"timestamp_ms": value[TIMESTAMP], "arrival": value[ARRIVAL], "value": x["value"]}


def arrival_order(held: Value) -> tuple[int, int]:
    """Sort key of a result of `arrived`: event time, then arrival."""
    return held["timestamp_ms"], held["arrival"]


def chosen(held: Value | None) -> Any:
    """The value in a result of `arrived`; None if there is no result."""
    return held and held["value"]


def added(a: Any, b: Any) -> Any:
    """Sum of two values, either of which may be missing."""
    return b if a is None else a if b is None else a + b


def rank(value: Any) -> Any:
    """Sort key of a value. NaN is greater than every other number. Null in a struct or array comes first.

    >>> rank(float("nan")) > rank(float("inf")), rank([None]) < rank([1])
    (True, True)
    """
    match value:
        case float():
            return (True, 0.0) if value != value else (False, value)
        case dict():
            return rank(list(value.values()))
        case list():
            return [(item is not None, rank(item) if item is not None else 0) for item in value]
    return value


def _least(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and rank(b) < rank(a)) else a


def greatest(a: Any, b: Any) -> Any:
    """The greater of two values, either of which may be missing."""
    return b if a is None or (b is not None and rank(b) > rank(a)) else a


def _earliest(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and arrival_order(b) < arrival_order(a)) else a


def _latest(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and arrival_order(b) > arrival_order(a)) else a


# `nullif(…, null)` makes the fields nullable, as they are after storage. Sail names an aggregate by its argument and
# refuses two of the same name; {x} in the struct keeps the names apart.
ARRIVED = (
    f"'timestamp_ms', nullif({names.TIMESTAMP_MS}, null), 'arrival', nullif({names.ARRIVAL}, null), 'value', {{x}}"
)
VALUE_OF_STRUCT = r"struct<.*?\barrival:bigint,value:(.*)>"
_LEAST = Fold(None, lambda held, x, value: _least(held, x), _least)
_GREATEST = Fold(None, lambda held, x, value: greatest(held, x), greatest)
_EARLIEST = Fold(None, lambda held, x, value: _earliest(held, arrived(x, value)), _earliest)
_LATEST = Fold(None, lambda held, x, value: _latest(held, arrived(x, value)), _latest)

COUNT = PartialColumn(
    "count", "count({x}){filter}", "sum({p})", Fold(0, lambda held, x, value: held + 1, lambda a, b: a + b)
)
SUM = PartialColumn("sum", "sum({x}){filter}", "sum({p})", Fold(None, lambda held, x, value: added(held, x), added))
# A sketch ignores empty strings, so a private-use character replaces them.
_TEXT = "coalesce(nullif(cast({x} as string), ''), if({x} is null, null, '\ue000'))"
SKETCH = PartialColumn("sketch", f"hll_sketch_agg({_TEXT}){{filter}}", "hll_union_agg({p})")


def _counted(kinds: Sequence[str]) -> str:
    return "bigint"


def same(kinds: Sequence[str]) -> str:
    """Type of the first argument, which is also the result type."""
    return kinds[0]


def _ordered(kinds: Sequence[str]) -> str:
    if is_nested(kinds[0]):
        raise Unproved(f"orders values of {kinds[0].partition('<')[0]}")
    return kinds[0]


def distinct_texts(kinds: Sequence[str]) -> str:
    """Result type of counts by sketch. Raises Unproved for types whose string form differs between engines."""
    if kinds[0] not in DISTINCT:
        raise Unproved(f"counts distinct values of {kinds[0]} (engines write them differently)")
    return "bigint"


def _sketch(kinds: Sequence[str]) -> str:
    distinct_texts(kinds)
    raise Unproved("publishes a sketch (engines write its bytes differently)")


def summed(kinds: Sequence[str], most_digits: int = WIDEST_SUM) -> str:
    """Spark's type of a sum. Raises Unproved for types without a sum, and decimals above `most_digits` digits."""
    if kinds[0] in WHOLE:
        return "bigint"
    if kinds[0] in (FLOAT, DOUBLE):
        return DOUBLE
    if decimal := decimal_of(kinds[0]):
        precision, scale = decimal
        if precision > most_digits:
            raise Unproved(f"adds decimals of more than {most_digits} digits")
        return f"decimal({precision + 10},{scale})"
    raise Unproved(f"adds {kinds[0]}")


def _averaged(kinds: Sequence[str]) -> str:
    total = summed(kinds, WIDEST_AVERAGE)
    if decimal := decimal_of(total):
        return f"decimal({decimal[0] - 6},{decimal[1] + 4})"
    return DOUBLE


BASIC = {
    "count": Function((COUNT,), "{count}", "the number of values that are not null", _counted, result="bigint"),
    "sum": Function((SUM,), "{sum}", "the sum", summed, takes=NUMBER, rounds=True, typed_by="sum({x})"),
    "avg": Function(
        (SUM, COUNT),
        "({sum} / nullif({count}, 0))",
        "the average",
        _averaged,
        _average,
        takes=NUMBER,
        rounds=True,
        typed_by="sum({x})",
    ),
    "min": Function(
        (PartialColumn("min", "min({x}){filter}", "min({p})", _LEAST),),
        "{min}",
        "the least value",
        _ordered,
        typed_by="min({x})",
    ),
    "max": Function(
        (PartialColumn("max", "max({x}){filter}", "max({p})", _GREATEST),),
        "{max}",
        "the greatest value",
        _ordered,
        typed_by="max({x})",
    ),
    "first": Function(
        (PartialColumn("first", f"min(named_struct({ARRIVED})){{filter}}", "min({p})", _EARLIEST),),
        "{first}.value",
        "the first value by event time, then by arrival; it may be null, unless you write `ignore nulls`",
        same,
        chosen,
        by_arrival=True,
        typed_by="first({x})",
        stored=VALUE_OF_STRUCT,
        element="named_struct('value', {x})",
    ),
    "last": Function(
        (PartialColumn("last", f"max(named_struct({ARRIVED})){{filter}}", "max({p})", _LATEST),),
        "{last}.value",
        "the last value by event time, then by arrival; it may be null, unless you write `ignore nulls`",
        same,
        chosen,
        by_arrival=True,
        typed_by="first({x})",
        stored=VALUE_OF_STRUCT,
        element="named_struct('value', {x})",
    ),
    "hll_sketch_agg": Function(
        (SKETCH,),
        "hll_union({sketch}, {sketch})",
        "a sketch of the distinct values, for `hll_union_agg` and `hll_sketch_estimate` over several windows",
        _sketch,
        result="binary",
    ),
    # Merged and unmerged sketches give slightly different estimates, so every sketch is merged with itself.
    "approx_count_distinct": Function(
        (SKETCH,),
        "hll_sketch_estimate(hll_union({sketch}, {sketch}))",
        "the approximate number of distinct values",
        distinct_texts,
        result="bigint",
    ),
}
