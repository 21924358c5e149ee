"""Aggregates as Spark columns in three steps: partial over events, merge over partials, finish over merged partials.

Partials are columns named ``p{i}_{part}`` for the aggregate ``i``. Merging keeps their types, so state written by one
batch fits the next; merging in any grouping and any order gives what Spark's own aggregate gives over all events at
once, nulls included (the last bits of sums of doubles aside). Sums of whole numbers overflow with an error (ANSI mode).

count, sum, avg, min and max of numbers are of fixed width, so Spark aggregates them by hash. ``first`` and ``last`` go
by (timestamp_ms, arrival). Approximate distinct counts are HyperLogLog sketches of the values as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from windowlib.aggregate_set import Aggregate, AggregateSet

MAX_PRECISION = 38


@dataclass(frozen=True, slots=True)
class Part:
    """One partial column: `partial` is SQL of the argument `{x}`, `merge` is SQL of the partial column `{p}`."""

    name: str
    partial: str
    merge: str


_COUNT = Part("count", "count({x})", "sum({p})")
_SUM = Part("sum", "sum({x})", "sum({p})")
_ARRIVED = "struct(timestamp_ms, arrival, {x} as value)"
_PARTS = {
    "count": (_COUNT,),
    "sum": (_SUM,),
    "avg": (_SUM, _COUNT),
    "min": (Part("min", "min({x})", "min({p})"),),
    "max": (Part("max", "max({x})", "max({p})"),),
    "first": (Part("first", f"min({_ARRIVED})", "min({p})"),),
    "last": (Part("last", f"max({_ARRIVED})", "max({p})"),),
    "approx_count_distinct": (Part("sketch", "hll_sketch_agg(cast({x} as string))", "hll_union_agg({p})"),),
}
_FINISHES = {
    "count": "{count}",
    "sum": "{sum}",
    "avg": "({sum} / nullif({count}, 0))",
    "min": "{min}",
    "max": "{max}",
    "first": "{first}.value",
    "last": "{last}.value",
    # a sketch united with itself: the estimate of one that was never merged differs a little from one that was
    "approx_count_distinct": "hll_sketch_estimate(hll_union({sketch}, {sketch}))",
}


def typed(aggregates: AggregateSet, events: DataFrame) -> AggregateSet:
    """The aggregates with the decimal types of their arguments, which decide how sums are stored; runs no job."""
    summed = dict.fromkeys(a.argument_sql for a in aggregates.aggregates if a.argument_sql and _adds(a))
    types = [field.dataType for field in events.select(*map(F.expr, summed)).schema] if summed else []
    decimals = {sql: (t.precision, t.scale) for sql, t in zip(summed, types, strict=True) if isinstance(t, DecimalType)}
    known = tuple(
        replace(a, decimal=decimals[a.argument_sql]) if _adds(a) and a.argument_sql in decimals else a
        for a in aggregates.aggregates
    )
    return replace(aggregates, aggregates=known)


def partials(aggregates: Sequence[Aggregate]) -> list[Column]:
    """Aggregate columns over events.

    events:  the source's columns, timestamp_ms long, arrival long     one row per event
    returns: p{i}_{part}                                               to be grouped by key and slice
    """
    return [
        F.expr(_stored(aggregate, part, _partial_sql(aggregate, part))).alias(name)
        for aggregate, part, name in _each_part(aggregates)
    ]


def merges(aggregates: Sequence[Aggregate]) -> list[Column]:
    """Aggregate columns over rows of partials: the same names and types again."""
    return [
        F.expr(_stored(aggregate, part, part.merge.format(p=name))).alias(name)
        for aggregate, part, name in _each_part(aggregates)
    ]


def partial_names(aggregates: Sequence[Aggregate]) -> list[str]:
    """The names of the partial columns, in order."""
    return [name for _, _, name in _each_part(aggregates)]


def finishes(aggregates: AggregateSet) -> list[Column]:
    """The output columns, in order, over rows of merged partials."""
    finished = [_finish_sql(aggregate, index) for index, aggregate in enumerate(aggregates.aggregates)]
    return [F.expr(column.sql_over(finished)).alias(column.name) for column in aggregates.columns]


def _each_part(aggregates: Sequence[Aggregate]) -> Iterator[tuple[Aggregate, Part, str]]:
    for index, aggregate in enumerate(aggregates):
        for part in _PARTS[aggregate.function]:
            yield aggregate, part, f"p{index}_{part.name}"


def _adds(aggregate: Aggregate) -> bool:
    return _SUM in _PARTS[aggregate.function]


def _partial_sql(aggregate: Aggregate, part: Part) -> str:
    sql = part.partial.format(x=aggregate.argument_sql or "*")
    return f"{sql} filter (where {aggregate.where_sql})" if aggregate.where_sql else sql


def _stored(aggregate: Aggregate, part: Part, sql: str) -> str:
    """Decimal sums at the widest precision: Spark's own sum is ten digits wider than its input, each time."""
    if part is _SUM and aggregate.decimal:
        return f"cast({sql} as decimal({MAX_PRECISION}, {aggregate.decimal[1]}))"
    return sql


def _finish_sql(aggregate: Aggregate, index: int) -> str:
    """Decimals get the types of Spark's sum and avg; beyond 24 digits avg has those of Spark's decimal division."""
    columns = {part.name: f"p{index}_{part.name}" for part in _PARTS[aggregate.function]}
    if not aggregate.decimal:
        return _FINISHES[aggregate.function].format(**columns)
    precision, scale = aggregate.decimal
    columns["sum"] = f"cast({columns['sum']} as decimal({min(precision + 10, MAX_PRECISION)}, {scale}))"
    finished = _FINISHES[aggregate.function].format(**columns)
    if aggregate.function == "avg":
        return f"cast({finished} as decimal({min(precision + 4, MAX_PRECISION)}, {min(scale + 4, MAX_PRECISION)}))"
    return finished
