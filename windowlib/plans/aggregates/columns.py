"""Aggregates as Spark columns in three steps: partial over events, merge over partials, finish over merged partials.

Partials are columns named ``p{i}_{part}`` for the aggregate ``i``. Merging keeps their types, so every batch can read
the state of the previous batch. Merging in any grouping and any order gives the result of Spark's own aggregate over
all events, nulls included. Only the last bits of sums of doubles may differ. Sums of integers that overflow raise an
error (ANSI mode).

Partials of count, sum, avg, and of min and max of numbers, have a fixed width, so Spark aggregates them by hash.
``first`` and ``last`` order by (timestamp_ms, arrival). Approximate distinct counts are HyperLogLog sketches of the
values as strings. `windowlib.plans.aggregates.mergeable` describes the functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from windowlib.contract.state_tables import PARTIAL_NAMES, PARTIALS
from windowlib.plans import names
from windowlib.plans.aggregates.aggregate_set import AggregateSet, SqlAggregate
from windowlib.plans.aggregates.functions import FUNCTIONS
from windowlib.plans.aggregates.mergeable.basic import SUM
from windowlib.plans.aggregates.mergeable.function import PartialColumn
from windowlib.plans.aggregates.ordering import ordered_as_spark
from windowlib.plans.functions import F
from windowlib.plans.sql.kinds import WIDEST

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windowlib.plans.dialect import Dialect


def typed(aggregates: AggregateSet, events: DataFrame, dialect: Dialect) -> AggregateSet:
    """Rewrites aggregates for a dialect, and sets their types from the columns of `events`. Runs no job."""

    @cache
    def types_of_columns() -> Mapping[str, str]:
        return {field.name.casefold(): field.dataType.simpleString() for field in events.schema}

    def in_dialect(sql: str) -> str:
        return dialect.expression(sql, types_of_columns)

    rewritten = tuple(_rewritten(aggregate, in_dialect) for aggregate in aggregates.aggregates)
    ordering = [sql for aggregate in rewritten for sql in _ordered_by(aggregate)]
    wanted = dict.fromkeys([*filter(None, map(_typed_by, rewritten)), *ordering])
    selected = [F.expr(sql).alias(f"of_{number}") for number, sql in enumerate(wanted)]
    fields = events.select(*selected).schema if selected else ()
    types = {sql: field.dataType.simpleString() for sql, field in zip(wanted, fields, strict=True)}
    types_of_aggregates = [types.get(_typed_by(aggregate) or "") for aggregate in rewritten]
    ordered = tuple(_ordering(aggregate, types) for aggregate in rewritten)
    return _with_types(replace(aggregates, aggregates=ordered), types_of_aggregates, dialect)


def typed_as_stored(aggregates: AggregateSet, state: DataFrame, dialect: Dialect) -> AggregateSet:
    """Sets the types of aggregates from the stored partials in `state`, for a run without events."""
    types = {field.name: field.dataType.simpleString() for field in state.schema}
    stored = [_stored_type(aggregate, index, types) for index, aggregate in enumerate(aggregates.aggregates)]
    return _with_types(aggregates, stored, dialect)


def untyped(aggregate: SqlAggregate) -> SqlAggregate:
    """The aggregate without its type."""
    return replace(aggregate, type=None)


def _stored_type(aggregate: SqlAggregate, index: int, types: Mapping[str, str]) -> str | None:
    function = FUNCTIONS[aggregate.function]
    if not function.typed_by:
        return None
    return function.type_in(types.get(f"p{index}_{function.parts[0].name}", ""))


def _typed_by(aggregate: SqlAggregate) -> str | None:
    """SQL over events whose type decides how the aggregate is computed; None if no type matters."""
    return FUNCTIONS[aggregate.function].typed_by.format(**aggregate.arguments) or None


def _with_types(aggregates: AggregateSet, types: Sequence[str | None], dialect: Dialect) -> AggregateSet:
    pairs = zip(aggregates.aggregates, types, strict=True)
    with_types = tuple(replace(aggregate, type=kind) for aggregate, kind in pairs)
    marks = [f"\x01{index}\x01" for index in range(len(with_types))]  # no name or string of a user has this character
    results = {
        mark: kind for mark, aggregate in zip(marks, with_types, strict=True) if (kind := _result_type(aggregate))
    }
    over = [f"`{mark}`" for mark in marks]
    columns = (_marked(dialect.expression(column.sql_over(over), lambda: results)) for column in aggregates.columns)
    outputs = tuple(replace(column, sql=sql) for column, sql in zip(aggregates.columns, columns, strict=True))
    return replace(aggregates, aggregates=with_types, columns=outputs)


def _rewritten(aggregate: SqlAggregate, in_dialect: Callable[[str], str]) -> SqlAggregate:
    argument, where = (sql and in_dialect(sql) for sql in (aggregate.argument_sql, aggregate.where_sql))
    more = tuple(map(in_dialect, aggregate.more_sql))
    return replace(aggregate, argument_sql=argument, where_sql=where, more_sql=more)


def _ordering(aggregate: SqlAggregate, types: Mapping[str, str]) -> SqlAggregate:
    """Normalises the values that an aggregate orders by, so that all engines store the same zero and NaN."""
    pairs = zip(aggregate.more_sql, _ordered_by(aggregate), strict=False)  # no pairs if the function does not order
    ordered = tuple(ordered_as_spark(sql, types[typed_sql]) for sql, typed_sql in pairs)
    return replace(aggregate, more_sql=ordered or aggregate.more_sql)


def _ordered_by(aggregate: SqlAggregate) -> list[str]:
    """SQL over events whose types are the types of the values that an aggregate orders by."""
    return [f"first({sql})" for sql in aggregate.more_sql] if FUNCTIONS[aggregate.function].orders_by else []


def _marked(sql: str) -> str:
    """Replaces the placeholder of each aggregate i in an output column's SQL by ``{i}``."""
    return re.sub(r"`\x01(\d+)\x01`", r"{\1}", sql.replace("{", "{{").replace("}", "}}"))


def _result_type(aggregate: SqlAggregate) -> str | None:
    if aggregate.function == "avg" and aggregate.type:
        return _average_type(*aggregate.decimal) if aggregate.decimal else "double"
    return FUNCTIONS[aggregate.function].result or aggregate.type


def partials(aggregates: Sequence[SqlAggregate], dialect: Dialect, *, by_time: bool = False) -> list[Column]:
    """Aggregate columns over events.

    events:  the source's columns, TIMESTAMP_MS long, ARRIVAL long     one row per event
    returns: p{i}_{part}                                               to be grouped by key and slice

    With `by_time`, returns columns that only reveal the types of the parts that the operator folds.
    """
    parts = list(_each_part(aggregates))
    if by_time:
        parts = [
            (aggregate, replace(part, partial=dialect.of_same_type(part.partial)), name)
            for aggregate, part, name in parts
        ]
    return [
        F.expr(_stored(aggregate, part, _partial_sql(aggregate, part, dialect), dialect)).alias(name)
        for aggregate, part, name in parts
    ]


def merges(aggregates: Sequence[SqlAggregate], dialect: Dialect) -> list[Column]:
    """Aggregate columns over rows of partials. Names and types stay the same."""
    return [
        F.expr(_stored(aggregate, part, _merge_sql(aggregate, part, name, dialect), dialect)).alias(name)
        for aggregate, part, name in _each_part(aggregates)
    ]


def partial_names(aggregates: Sequence[SqlAggregate]) -> list[str]:
    """Names of the partial columns, in order."""
    return [name for _, _, name in _each_part(aggregates)]


def all_partials(aggregates: Sequence[SqlAggregate], dialect: Dialect, *, by_time: bool = False) -> list[Column]:
    """Aggregate columns over events: the partials of event times (long), and `partials`."""
    times = [F.expr(partial.over_events.format(time=names.TIMESTAMP_MS)).alias(partial.name) for partial in PARTIALS]
    return [*times, *partials(aggregates, dialect, by_time=by_time)]


def all_merges(aggregates: Sequence[SqlAggregate], dialect: Dialect) -> list[Column]:
    """Aggregate columns over rows of partials: the partials of event times (long), and `merges`."""
    times = [F.expr(partial.over_rows).alias(partial.name) for partial in PARTIALS]
    return [*times, *merges(aggregates, dialect)]


def all_partial_names(aggregates: Sequence[SqlAggregate]) -> list[str]:
    """Names of the columns of `all_partials`, in order."""
    return [*PARTIAL_NAMES, *partial_names(aggregates)]


def part_names(aggregate: SqlAggregate) -> list[str]:
    """Names of an aggregate's parts, in order."""
    return [part.name for part in FUNCTIONS[aggregate.function].parts]


def finishes(aggregates: AggregateSet, dialect: Dialect, *, whole: bool = False) -> dict[str, str]:
    """Ordered output columns by name, as SQL over rows of merged partials.

    With `whole`, rows hold all events of a window, so the marks of added aggregates are ignored.
    """
    finished = [_finish_sql(aggregate, index, dialect) for index, aggregate in enumerate(aggregates.aggregates)]
    return {
        column.name: column.sql_over(finished)
        if column.mark is None or whole
        else f"CASE WHEN {finished[column.mark]} THEN {column.sql_over(finished)} END"
        for column in aggregates.columns
    }


def _each_part(aggregates: Sequence[SqlAggregate]) -> Iterator[tuple[SqlAggregate, PartialColumn, str]]:
    for index, aggregate in enumerate(aggregates):
        for part in FUNCTIONS[aggregate.function].parts:
            yield aggregate, part, f"p{index}_{part.name}"


def _partial_sql(aggregate: SqlAggregate, part: PartialColumn, dialect: Dialect) -> str:
    arguments, where = aggregate.arguments, aggregate.where_sql
    argument = arguments["x"]
    if aggregate.floats:
        counted = f"case when {where} then {argument} end" if where else argument
        return dialect.extreme(aggregate.function, counted, aggregate.floats)
    if where:  # engines may compute arguments of excluded rows; Spark does so for arguments that aggregates share
        arguments = {
            name: f"(case when {where} then {x} end)" if x.startswith("(") else x for name, x in arguments.items()
        }
        argument = arguments["x"]
    filled = {**arguments, "x": _added(aggregate, part, argument, dialect)}
    places = {"filter": f" filter (where {where})", "and_where": f" and ({where})"}
    return part.partial.format(**filled, **aggregate.types, **(places if where else dict.fromkeys(places, "")))


def _merge_sql(aggregate: SqlAggregate, part: PartialColumn, name: str, dialect: Dialect) -> str:
    if aggregate.floats:
        return dialect.extreme(aggregate.function, name, aggregate.floats)
    return part.merge.format(p=_added(aggregate, part, name, dialect), **aggregate.types)


def _added(aggregate: SqlAggregate, part: PartialColumn, sql: str, dialect: Dialect) -> str:
    return dialect.long_summand(sql) if part is SUM and aggregate.adds_longs else sql


def _stored(aggregate: SqlAggregate, part: PartialColumn, sql: str, dialect: Dialect) -> str:
    """Keeps the type of sums. Without the cast, every merge would make Spark's decimal sums ten digits wider."""
    if part is SUM and aggregate.adds_longs:
        return dialect.long_sum(sql)
    if part is SUM and aggregate.decimal:
        precision, scale = aggregate.decimal
        return f"cast({sql} as decimal({precision}, {scale}))"
    return sql


def _finish_sql(aggregate: SqlAggregate, index: int, dialect: Dialect) -> str:
    columns = {part.name: f"p{index}_{part.name}" for part in FUNCTIONS[aggregate.function].parts}
    finished = FUNCTIONS[aggregate.function].finish.format(**columns, **aggregate.arguments, **aggregate.types)
    if aggregate.function == "avg" and aggregate.decimal:
        total, count = columns["sum"], f"nullif({columns['count']}, 0)"
        average = dialect.average_of_decimals(total, count, *aggregate.decimal)
        return f"cast({average} as {_average_type(*aggregate.decimal)})"
    return finished


def _average_type(sum_precision: int, scale: int) -> str:
    """Spark's type for the average of decimals, from the type of their sum.

    A sum has ten digits more than the decimals, an average four. For a sum of the greatest precision, the precision of
    the decimals is unknown, and the average also has the greatest precision.
    """
    precision = sum_precision - 6 if sum_precision < WIDEST else WIDEST
    return f"decimal({precision}, {min(scale + 4, precision)})"
