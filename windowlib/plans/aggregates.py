"""Aggregates as Spark columns in three steps: partial over events, merge over partials, finish over merged partials.

Partials are columns named ``p{i}_{part}`` for the aggregate ``i``. Merging keeps their types, so state written by one
batch fits the next; merging in any grouping and any order gives what Spark's own aggregate gives over all events at
once, nulls included (the last bits of sums of doubles aside). Sums of whole numbers overflow with an error (ANSI mode).

count, sum, avg, min and max of numbers are of fixed width, so Spark aggregates them by hash. ``first`` and ``last`` go
by (timestamp_ms, arrival). Approximate distinct counts are HyperLogLog sketches of the values as text. What is
computed is in `windowlib.plans.aggregate_functions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from windowlib.plans.aggregate_functions import FUNCTIONS, SUM, Part
from windowlib.plans.aggregate_set import Aggregate, AggregateSet
from windowlib.plans.functions import F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

MAX_PRECISION = 38


def typed(aggregates: AggregateSet, events: DataFrame) -> AggregateSet:
    """The aggregates with the decimal types of their sums, which `events` decide; runs no job."""
    summed = dict.fromkeys(a.argument_sql for a in aggregates.aggregates if a.argument_sql and _adds(a))
    sums = [F.expr(f"sum({sql})").alias(f"sum_{number}") for number, sql in enumerate(summed)]
    types = dict(zip(summed, (field.dataType for field in events.select(*sums).schema), strict=True)) if sums else {}
    return _with_types(aggregates, [types.get(a.argument_sql or "") for a in aggregates.aggregates])


def typed_as_stored(aggregates: AggregateSet, state: DataFrame) -> AggregateSet:
    """The same from rows that hold partials, for a run without events."""
    types = {field.name: field.dataType for field in state.schema}
    return _with_types(aggregates, [types.get(f"p{i}_{SUM.name}") for i in range(len(aggregates.aggregates))])


def _with_types(aggregates: AggregateSet, sums: Sequence[DataType | None]) -> AggregateSet:
    from pyspark.sql.types import DecimalType, LongType

    def with_type(aggregate: Aggregate, of: DataType | None) -> Aggregate:
        decimal = (of.precision, of.scale) if isinstance(of, DecimalType) else None
        return (
            replace(aggregate, decimal=decimal, adds_longs=isinstance(of, LongType)) if _adds(aggregate) else aggregate
        )

    pairs = zip(aggregates.aggregates, sums, strict=True)
    return replace(aggregates, aggregates=tuple(with_type(aggregate, of) for aggregate, of in pairs))


def partials(aggregates: Sequence[Aggregate], *, sums_wrap: bool = False) -> list[Column]:
    """Aggregate columns over events.

    events:  the source's columns, timestamp_ms long, arrival long     one row per event
    returns: p{i}_{part}                                               to be grouped by key and slice

    `sums_wrap`: the engine's sums of whole numbers begin again at the other end instead of overflowing.
    """
    return [
        F.expr(_stored(aggregate, part, _partial_sql(aggregate, part, sums_wrap), sums_wrap)).alias(name)
        for aggregate, part, name in _each_part(aggregates)
    ]


def merges(aggregates: Sequence[Aggregate], *, sums_wrap: bool = False) -> list[Column]:
    """Aggregate columns over rows of partials: the same names and types again."""
    return [
        F.expr(
            _stored(aggregate, part, part.merge.format(p=_added(aggregate, part, name, sums_wrap)), sums_wrap)
        ).alias(name)
        for aggregate, part, name in _each_part(aggregates)
    ]


def partial_names(aggregates: Sequence[Aggregate]) -> list[str]:
    """The names of the partial columns, in order."""
    return [name for _, _, name in _each_part(aggregates)]


def all_partials(aggregates: Sequence[Aggregate], *, sums_wrap: bool = False) -> list[Column]:
    """Aggregate columns over events: elements (long), last_event_ms, and the partials."""
    counted = [F.count(F.lit(1)).alias("elements"), F.max("timestamp_ms").alias("last_event_ms")]
    return [*counted, *partials(aggregates, sums_wrap=sums_wrap)]


def all_merges(aggregates: Sequence[Aggregate], *, sums_wrap: bool = False) -> list[Column]:
    """The same over rows that hold them."""
    counted = [F.sum("elements").alias("elements"), F.max("last_event_ms").alias("last_event_ms")]
    return [*counted, *merges(aggregates, sums_wrap=sums_wrap)]


def all_partial_names(aggregates: Sequence[Aggregate]) -> list[str]:
    """Their names, in order."""
    return ["elements", "last_event_ms", *partial_names(aggregates)]


def part_names(aggregate: Aggregate) -> list[str]:
    """The names of an aggregate's parts, in order."""
    return [part.name for part in FUNCTIONS[aggregate.function].parts]


def finishes(aggregates: AggregateSet) -> dict[str, str]:
    """The output columns by name, in order, as SQL over rows of merged partials."""
    finished = [_finish_sql(aggregate, index) for index, aggregate in enumerate(aggregates.aggregates)]
    return {column.name: column.sql_over(finished) for column in aggregates.columns}


def _each_part(aggregates: Sequence[Aggregate]) -> Iterator[tuple[Aggregate, Part, str]]:
    for index, aggregate in enumerate(aggregates):
        for part in FUNCTIONS[aggregate.function].parts:
            yield aggregate, part, f"p{index}_{part.name}"


def _adds(aggregate: Aggregate) -> bool:
    return SUM in FUNCTIONS[aggregate.function].parts


def _partial_sql(aggregate: Aggregate, part: Part, sums_wrap: bool) -> str:
    sql = part.partial.format(x=_added(aggregate, part, aggregate.argument_sql or "*", sums_wrap))
    return f"{sql} filter (where {aggregate.where_sql})" if aggregate.where_sql else sql


def _added(aggregate: Aggregate, part: Part, sql: str, sums_wrap: bool) -> str:
    """A summand; as a decimal where a sum of whole numbers would not overflow with an error by itself."""
    wide = part is SUM and aggregate.adds_longs and sums_wrap
    return f"cast({sql} as decimal({MAX_PRECISION}, 0))" if wide else sql


def _stored(aggregate: Aggregate, part: Part, sql: str, sums_wrap: bool) -> str:
    """Decimal sums in the type of the first sum: Spark's own would be ten digits wider at each merge."""
    if part is SUM and aggregate.adds_longs and sums_wrap:
        return f"cast({sql} as bigint)"
    if part is SUM and aggregate.decimal:
        precision, scale = aggregate.decimal
        return f"cast({sql} as decimal({precision}, {scale}))"
    return sql


def _finish_sql(aggregate: Aggregate, index: int) -> str:
    columns = {part.name: f"p{index}_{part.name}" for part in FUNCTIONS[aggregate.function].parts}
    finished = FUNCTIONS[aggregate.function].finish.format(**columns)
    if aggregate.function == "avg" and aggregate.decimal:
        return f"cast({finished} as {_average_type(*aggregate.decimal)})"
    return finished


def _average_type(sum_precision: int, scale: int) -> str:
    """Spark's type for the average of decimals: four digits more than they have, where their sum has ten more.

    How wide its decimals were does not follow from a sum at the widest precision: then the average is at the widest,
    too. (Its last digits are those of Spark's division of such a sum, which keeps six digits after the point.)
    """
    precision = sum_precision - 6 if sum_precision < MAX_PRECISION else MAX_PRECISION
    return f"decimal({precision}, {min(scale + 4, precision)})"
