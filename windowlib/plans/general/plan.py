"""General plan: runs the operator itself, key by key, inside Spark, for every spec that no native plan runs exactly.

One sorted stream has the state rows of a key, then its stored elements, then the batch's elements in order of arrival.
So a task holds the state of only one key at a time, and never all of the batch's elements. The plan has one shuffle,
one sort and no native window.

Elements that windows keep (for an evictor, or a function over all elements) are stored as *contents*: rows of up to
``CHUNK`` elements under their state window. Each run appends rows and keeps earlier rows. A window's state row
names the first batch whose contents count. Contents are written again only in these cases:

- elements were evicted or purged, but their window stays in flight
- windows merged
- a partition is `compacted`, to drop contents that no longer count
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, LongType, StructField, StructType

from windowlib.model.errors import InvalidSpec
from windowlib.model.geometry import geometry_of
from windowlib.model.keyed import Instant
from windowlib.model.spec import WindowSpec
from windowlib.model.windows import MAX_TIME_MS
from windowlib.plans import names
from windowlib.plans.aggregates.aggregate_set import operand
from windowlib.plans.aggregates.bounds import within_bounds
from windowlib.plans.aggregates.functions import FUNCTIONS
from windowlib.plans.aggregates.mergeable.function import ARRIVAL, TIMESTAMP
from windowlib.plans.aggregates.ordering import ordered_as_spark
from windowlib.plans.dialect import Counters
from windowlib.plans.functions import quoted
from windowlib.plans.general.folds import ARGUMENT, Folds, argument, check_foldable
from windowlib.plans.general.returned_values import OUTPUT
from windowlib.plans.general.stream import (
    CHUNK_ROW,
    COUNTERS,
    ELEMENT,
    MAP,
    READ,
    STATE_ROW,
    STORED,
    as_stored,
    in_stream,
    of_stream,
)
from windowlib.plans.general.user_code import UserProcess, evictor_of
from windowlib.plans.general.worker import TASK, Worker
from windowlib.plans.kinds.kind import PlanInput
from windowlib.plans.partitions import PARTITION
from windowlib.plans.step import BATCH_ID, CONTENTS, FIRED, GONE, WINDOWS, Step, with_instant

FIRINGS = "array<struct<window_start_ms:bigint,window_end_ms:bigint,firing:int>>"
# An element counts once for each window that holds it. Retired: neither dropped nor in a hole, and no longer held.
_BEFORE, _TAKEN, _DROPPED, _HOLES, _AFTER, _RETIRED_ROWS = map(names.internal, COUNTERS)
FIGURES = {
    "elements_before": _BEFORE,
    "elements_dropped": _DROPPED,
    "elements_in_holes": _HOLES,
    "elements_kept": _AFTER,
    "elements_retired": f"{_BEFORE} + {_TAKEN} - {_HOLES} - {_DROPPED} - {_AFTER}",
    "rows_retired": _RETIRED_ROWS,
}
BOUNDS = ("window_start_ms", "window_end_ms", "state_window_start_ms", "state_window_end_ms")
STATE = ("contents_from", "state", "fired", "next_event_ms", "next_processing_ms")
STORED_ROW = ("state_window_start_ms", "state_window_end_ms", "batch_id", "contents")


@dataclass(frozen=True, slots=True)
class Program:
    """Program for each key: the spec, the source columns that the user's code reads, and the result columns.

    ``outputs`` maps a function's columns to Spark types. It is None if the results are the SQL columns of the step's
    aggregates.
    """

    spec: WindowSpec
    reads: tuple[str, ...] = ()
    outputs: Mapping[str, str] | None = None


def program(
    spec: WindowSpec, aggregates: Any, reads: Iterable[str] = (), outputs: Mapping[str, str] | None = None
) -> Program:
    """Program of a spec with its own Python aggregate, or else with the `AggregateSet` ``aggregates``.

    Raises InvalidSpec if both are present, or if an aggregate cannot be folded element by element.
    """
    check_foldable(aggregates.aggregates)
    by_sql = bool(aggregates.aggregates)
    own = spec.aggregate.own if isinstance(spec.aggregate, Folds) else spec.aggregate
    if own is not None and by_sql:
        raise InvalidSpec(f"aggregates in SQL cannot be combined with one in Python ({own}); remove one of the two")
    folds = Folds(aggregates.aggregates, own) if by_sql or own is not None else None
    process = None
    if outputs is not None:
        column_names = tuple(column.name for column in aggregates.columns)
        process = UserProcess(spec.process, aggregates.aggregates if by_sql else None, column_names)
    prepared = replace(spec, aggregate=folds, evictor=evictor_of(spec.evictor), process=process)
    return Program(prepared, tuple(reads), outputs)


def advance(batch: PlanInput, step: Step, counters: Counters, *, run: Program) -> DataFrame:
    """Applies a batch to the windows in flight in `batch`.

    events:    the source's columns, TIMESTAMP_MS, ARRIVAL                         one row per admitted event
    rewritten: the columns of `state_columns`                                      one row per key and window
    contents:  the columns of `stored_columns`                                     one row per key, state window, chunk
    returns:   the columns of `state`, `contents`, `results`, replaced, arrival, part, end_partition; `part` is as in
               windowlib.plans.step; `dropped` and `hole` name an element by its arrival

    Contents of `compacted` partitions are written again, without elements that no longer count.
    """
    times = step.watermark_in_ms, step.watermark_out_ms, step.plan_time_ms, step.late_in_ms
    instant = Instant.of_run(*times, resumes=step.lateness_changed, time=step.specification.time)
    counted = counters.over(operator_rows(batch, step, instant, run=run), FIGURES)
    return _columns(counted.where(f"part != '{TASK}'"), step, run)


def operator_rows(batch: PlanInput, step: Step, instant: Instant, *, run: Program) -> DataFrame:
    """Rows that the operator returns at an instant: state, contents, firings, late elements, elements in holes."""
    elements = None if batch.events is None else _elements(batch.events, step, run)
    stream = _stream(elements, batch.rewritten, batch.contents, step)
    schema = StructType(list(_task_fields(batch, stream, step, run)))
    worker = Worker(
        spec=run.spec,
        keys=tuple(step.keys),
        partials=tuple(step.partial_names),
        outputs=None if run.outputs is None else tuple(run.outputs),
        instant=instant,
        batch_id=step.batch_id,
        partition_ms=step.partition_ms,
        plan_time_ms=step.plan_time_ms,
        compacted=frozenset(batch.compacted),
        schema=to_arrow_schema(schema, timezone="UTC"),
    )
    return step.dialect.map_sorted(stream, step.keys, ("_kind", "_order"), worker, schema)


def late(events: DataFrame, dropped: DataFrame) -> DataFrame:
    """Late events with the window that each event missed. `dropped` has the arrival and missed window of each late
    event.
    """
    columns = {"arrival": names.ARRIVAL, "window_start_ms": names.WINDOW_START_MS, "window_end_ms": names.WINDOW_END_MS}
    missed = dropped.select(*(F.col(name).alias(alias) for name, alias in columns.items()))
    return events.join(F.broadcast(missed), names.ARRIVAL)


def state_columns(step: Step) -> list[str]:
    """The columns of `open_windows` without its partition column.

    Partials come last: a Delta log has statistics of only the first 32 columns, and file selection needs the others.
    """
    return [*step.keys, *BOUNDS, *STATE, *step.partial_names]


def stored_columns(step: Step) -> list[str]:
    """The columns of `state_windows` without its partition column."""
    return [*step.keys, *STORED_ROW]


def _elements(events: DataFrame, step: Step, run: Program) -> DataFrame:
    """Elements of the batch: key, event time, arrival, arguments of aggregates, columns that the user's code reads."""
    arguments = []
    for index, aggregate in enumerate(step.aggregates.aggregates):
        filled = {**aggregate.arguments, "x": operand(aggregate.argument_sql or "1")}
        sql = FUNCTIONS[aggregate.function].element.format(**filled)
        filtered = f"CASE WHEN {aggregate.where_sql} THEN {sql} END" if aggregate.where_sql else sql
        arguments.append(F.expr(filtered).alias(in_stream(argument(index))))
    types = {field.name: field.dataType.simpleString() for field in events.schema}
    read = [_read(name, types, step).alias(in_stream(name)) for name in run.reads]
    times = [F.col(name).alias(in_stream(name)) for name in (TIMESTAMP, ARRIVAL)]
    keys = [F.expr(ordered_as_spark(quoted(key), types[key])).alias(key) for key in step.keys]
    return events.select(*keys, *times, *arguments, *read)


def _read(name: str, types: Mapping[str, str], step: Step) -> Column:
    """Column that the user's code reads. Decimal gaps become long: Spark reads unsigned integers as decimals."""
    is_gap = name == geometry_of(step.assigner).gap_column
    is_decimal = any(kind.startswith("decimal") for c, kind in types.items() if c.casefold() == name.casefold())
    column = F.col(quoted(name))
    return column.cast("long") if is_gap and is_decimal else column


def _stream(elements: DataFrame | None, state: DataFrame | None, contents: DataFrame | None, step: Step) -> DataFrame:
    """Union of state rows, stored elements and the batch's elements.

    returns: keys, _kind, _order; _state, _stored (structs), or element columns
    """
    parts = []
    if state is not None:
        row = F.struct(*(name for name in state_columns(step) if name not in step.keys)).alias(STATE_ROW)
        numbered = (F.lit(MAP).alias("_kind"), F.lit(0).cast("long").alias("_order"))
        parts.append(state.select(*step.key_columns, *numbered, row))
    if contents is not None:
        row = F.struct(*STORED_ROW).alias(CHUNK_ROW)
        numbered = (F.lit(STORED).alias("_kind"), F.col("batch_id").alias("_order"))
        parts.append(contents.select(*step.key_columns, *numbered, row))
    if elements is not None:
        parts.append(elements.withColumns({"_kind": F.lit(ELEMENT), "_order": F.col(in_stream(ARRIVAL))}))
    return step.dialect.union(parts)


def _task_fields(batch: PlanInput, stream: DataFrame, step: Step, run: Program) -> Iterable[StructField]:
    """Fields of the rows that a task returns."""

    def typed(name: str, kind: str) -> StructField:
        return StructField(name, DataType.fromDDL(kind))

    yield from (StructField(key, stream.schema[key].dataType) for key in step.keys)
    yield typed("part", "string")
    yield from (typed(name, "bigint") for name in (PARTITION, *BOUNDS))
    if batch.events is not None:
        folded = batch.events.groupBy().agg(*step.partials(by_time=True)).schema
    else:
        folded = stream.select(f"{STATE_ROW}.*").schema
    yield from (StructField(name, folded[name].dataType) for name in step.partial_names)
    kinds = dict(zip(STATE, ("bigint", "string", FIRINGS, "bigint", "bigint"), strict=True))
    yield from (typed(name, kind) for name, kind in kinds.items())
    if run.spec.keeps_elements:
        only_stored = batch.contents if batch.events is None else None
        stored = None if only_stored is None else only_stored.schema["contents"].dataType
        yield StructField("contents", stored or _contents_type(stream, step))
        yield typed("batch_id", "bigint")
    yield from (typed(OUTPUT + name, kind) for name, kind in (run.outputs or {}).items())
    yield from (typed("firing", "int"), typed("result_number", "int"), typed("timing", "string"))
    yield from (typed("replaced", WINDOWS), typed("arrival", "bigint"))
    yield from (typed(names.internal(name), "bigint") for name in COUNTERS)


def _contents_type(stream: DataFrame, step: Step) -> ArrayType:
    """Type of stored elements: event time, arrival and value of each."""
    value = [f for f in stream.schema if f.name.startswith((READ, as_stored(ARGUMENT))) and f.name not in step.keys]
    times = [StructField(as_stored(name), LongType()) for name in (TIMESTAMP, ARRIVAL)]
    return ArrayType(StructType([*times, *(StructField(of_stream(f.name), f.dataType) for f in value)]))


def _columns(rows: DataFrame, step: Step, run: Program) -> DataFrame:
    """Rows of the plan, made from the rows that the tasks returned."""
    fired = f"part IN ({', '.join(map(repr, (*FIRED, GONE)))})"
    has_bounds = f"{fired} AND window_end_ms < {MAX_TIME_MS}"
    results = {
        "window_start": f"if({has_bounds}, timestamp_millis(window_start_ms), null)",
        "window_end": f"if({has_bounds}, timestamp_millis(window_end_ms), null)",
    }
    values = step.values() if run.outputs is None else step.computed()
    results |= {name: f"if({fired}, {sql}, null)" for name, sql in values.items()}
    results |= {name: quoted(OUTPUT + name) for name in run.outputs or ()}
    shown = {name: f"if({fired}, null, {name})" for name in (*BOUNDS, *step.partial_names)}
    stored = ["contents"] if run.spec.keeps_elements else []
    numbered = ["firing", "timing", "replaced", "arrival", *([] if run.outputs is None else ["result_number"])]
    return with_instant(within_bounds(rows, step, "window_start_ms"), step).selectExpr(
        *map(quoted, step.keys),
        *(f"{sql} AS {quoted(name)}" for name, sql in {**shown, **results}.items()),
        *STATE,
        *stored,
        *numbered,
        f"if({fired} OR part = '{CONTENTS}', {BATCH_ID}, null) AS batch_id",
        "part",
        PARTITION,
    )
