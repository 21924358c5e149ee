"""The aggregate functions of ``[aggregates]``: their names, and how they are computed in slices and one by one.

A function has *parts*: small partial results that can be merged in any grouping and any order. Spark computes a part
with SQL over the events of a slice; the plan that runs the operator folds the same part one value at a time. Both
store it in the same column, so either continues what the other has stored.

To add a function, add its entry to ``FUNCTIONS``: every other place asks this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

TIMESTAMP, ARRIVAL = "_timestamp_ms", "_arrival"  # of an element, next to its columns in its value

Value = Mapping[str, Any]
Add = Callable[[Any, Any, Value], Any]


@dataclass(frozen=True, slots=True)
class Fold:
    """A part in Python: what it is of no values, with one value ``x`` of an element more, and of two parts together."""

    initial: Any
    add: Add
    merge: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Part:
    """One partial column: `partial` is SQL of the argument `{x}`, `merge` is SQL of the partial column `{p}`."""

    name: str
    partial: str
    merge: str
    fold: Fold | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its parts, and what they come to, as SQL over the merged parts and as Python.

    ``by_arrival`` functions choose a value by (timestamp_ms, arrival), null or not: their argument is a struct of it.
    """

    parts: tuple[Part, ...]
    finish: str
    value: Callable[..., Any] = lambda held: held
    by_arrival: bool = False

    @property
    def folds(self) -> bool:
        """Whether it can be computed one value at a time, without Spark."""
        return all(part.fold for part in self.parts)


def _average(total: Any, count: int) -> Any:
    return None if not count else total / (Decimal(count) if isinstance(total, Decimal) else count)


def _arrived(x: Value, value: Value) -> dict[str, Any]:
    return {"timestamp_ms": value[TIMESTAMP], "arrival": value[ARRIVAL], "value": x["value"]}


def _order(arrived: Value) -> tuple[int, int]:
    return arrived["timestamp_ms"], arrived["arrival"]


def _value(arrived: Value | None) -> Any:
    return arrived and arrived["value"]


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def _least(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and b < a) else a


def greatest(a: Any, b: Any) -> Any:
    """The greater of two values, either of which may be missing."""
    return b if a is None or (b is not None and b > a) else a


def _earliest(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and _order(b) < _order(a)) else a


def _latest(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and _order(b) > _order(a)) else a


# Fields that may be null by their type, as they are once they were stored.
_ARRIVED = "struct(nullif(timestamp_ms, null) as timestamp_ms, nullif(arrival, null) as arrival, {x} as value)"
_LEAST = Fold(None, lambda held, x, value: _least(held, x), _least)
_GREATEST = Fold(None, lambda held, x, value: greatest(held, x), greatest)
_EARLIEST = Fold(None, lambda held, x, value: _earliest(held, _arrived(x, value)), _earliest)
_LATEST = Fold(None, lambda held, x, value: _latest(held, _arrived(x, value)), _latest)

COUNT = Part("count", "count({x})", "sum({p})", Fold(0, lambda held, x, value: held + 1, lambda a, b: a + b))
SUM = Part("sum", "sum({x})", "sum({p})", Fold(None, lambda held, x, value: x if held is None else held + x, _sum))
_SKETCH = Part("sketch", "hll_sketch_agg(cast({x} as string))", "hll_union_agg({p})")

FUNCTIONS: Mapping[str, Function] = {
    "count": Function((COUNT,), "{count}"),
    "sum": Function((SUM,), "{sum}"),
    "avg": Function((SUM, COUNT), "({sum} / nullif({count}, 0))", _average),
    "min": Function((Part("min", "min({x})", "min({p})", _LEAST),), "{min}"),
    "max": Function((Part("max", "max({x})", "max({p})", _GREATEST),), "{max}"),
    "first": Function(
        (Part("first", f"min({_ARRIVED})", "min({p})", _EARLIEST),), "{first}.value", _value, by_arrival=True
    ),
    "last": Function((Part("last", f"max({_ARRIVED})", "max({p})", _LATEST),), "{last}.value", _value, by_arrival=True),
    # A sketch merged with itself: the estimate of one that was never merged differs a little from one that was.
    "approx_count_distinct": Function((_SKETCH,), "hll_sketch_estimate(hll_union({sketch}, {sketch}))"),
}
