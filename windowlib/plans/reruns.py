"""Reruns as Spark plans: selection of the windows of a rerun, and their difference to the published results.

The ordinary plans recompute the selected windows from scratch: all events in one batch, no windows in flight, and no
watermark before the batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import or_
from typing import TYPE_CHECKING, Any

from windowlib.contract.change import ADDED, CHANGED, REMOVED
from windowlib.contract.result_tables import UNCOMPARED
from windowlib.model.rerun import TimeRange
from windowlib.plans import names
from windowlib.plans.balanced import balanced
from windowlib.plans.functions import F, quoted
from windowlib.plans.geometry import own_window_end_ms
from windowlib.plans.partitions import PARTITION, RESULT_DAY
from windowlib.plans.step import Step

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

CHOSEN, CHAIN_START_MS, CHAIN_END_MS = map(names.internal, ("chosen", "chain_start_ms", "chain_end_ms"))
NEW, OLD = map(names.internal, ("new", "old"))
NEARLY = 1e-9  # relative difference up to which computed doubles count as equal: sums depend on the order of addition


def chains(intervals: Sequence[DataFrame], span: TimeRange | None, step: Step) -> DataFrame:
    """Chains of touching intervals that a rerun replaces.

    intervals: key, window_start_ms, window_end_ms, CHOSEN (bool)                      events, known windows
    span:      range that replaced chains overlap, or None if they hold a chosen interval
    returns:   key, CHAIN_START_MS, CHAIN_END_MS                                       one row per key and chain
    """
    joined = step.dialect.with_islands(step.dialect.union(intervals), step.keys)
    chain = joined.groupBy(*step.key_columns, "_island").agg(
        F.min("window_start_ms").alias(CHAIN_START_MS),
        F.max("window_end_ms").alias(CHAIN_END_MS),
        F.max(CHOSEN).alias(CHOSEN),
    )
    wanted = (
        F.col(CHOSEN) if span is None else (F.col(CHAIN_START_MS) < span.to_ms) & (F.col(CHAIN_END_MS) > span.from_ms)
    )
    return chain.where(wanted).select(*step.key_columns, CHAIN_START_MS, CHAIN_END_MS)


def own_windows(events: DataFrame, step: Step) -> DataFrame:
    """Own window of each event, before any merge: key, window_start_ms, window_end_ms."""
    end = own_window_end_ms(step.assigner).alias("window_end_ms")
    return events.select(*step.key_columns, F.col(names.TIMESTAMP_MS).alias("window_start_ms"), end)


def in_chains(
    rows: DataFrame, chain_rows: DataFrame, step: Step, start: str, end: str, *, inside: bool = True
) -> DataFrame:
    """Rows whose interval lies in a chain of their key, or with `inside=False` in no chain.

    rows:       key; `start` and `end` are SQL over its columns, in ms
    chain_rows: the result of `chains`

    A chain includes every interval that touches it, so an interval lies either fully inside or fully outside.
    """
    renamed = chain_rows.select(*step.other_key_columns, CHAIN_START_MS, CHAIN_END_MS)
    within = (F.expr(start) >= F.col(CHAIN_START_MS)) & (F.expr(end) <= F.col(CHAIN_END_MS))
    return rows.join(renamed, step.with_same_key(within), "left_semi" if inside else "left_anti")


def difference(new: DataFrame, old: DataFrame, step: Step) -> DataFrame:
    """Changes that turn the results `old` into `new`. Rows with equal values are not returned.

    new:     the columns of `results`                                 recomputed results of the rerun's windows
    old:     the columns of `results`, FILE                           published results of these windows
    returns: the columns of `results` (old values in a removed row), BEFORE (struct of the old values; null in an
             added row), FILE (of the old row), part (added, changed, removed), end_partition (the day)
    """
    identity = [*step.keys, "window_start", "window_end"]
    values = step.value_names
    compared = [name for name in values if name not in UNCOMPARED]
    rest = [*map(quoted, [*values, "firing", "timing"])]
    types = {field.name: field.dataType for field in new.schema}
    both = new.select(*map(quoted, identity), F.struct(*rest).alias(NEW)).join(
        old.select(*map(quoted, identity), F.struct(*rest).alias(OLD), names.FILE), identity, "full_outer"
    )

    def value(side: str, name: str) -> Column:
        return F.col(f"{side}.{quoted(name)}")

    removed, added = F.col(NEW).isNull(), F.col(OLD).isNull()
    exact = step.aggregates.exact
    changed = balanced(
        or_, [~equal(value(NEW, name), value(OLD, name), types[name], exact=name in exact) for name in compared]
    )
    shown = {name: F.when(removed, value(OLD, name)).otherwise(value(NEW, name)) for name in values}
    shown["firing"] = F.coalesce(value(OLD, "firing"), F.lit(0)) + F.when(removed, 0).otherwise(1)
    shown["timing"] = F.when(removed, value(OLD, "timing")).otherwise("late")
    shown["batch_id"] = F.lit(step.batch_id).cast("long")
    differing = both.withColumn("part", F.when(added, ADDED).when(removed, REMOVED).when(changed, CHANGED)).where(
        "part IS NOT NULL"
    )
    return differing.select(
        *map(quoted, identity),
        *(column.cast(types[name]).alias(name) for name, column in shown.items()),
        F.when(~added, F.struct(*(value(OLD, name).alias(name) for name in values))).alias(names.BEFORE),
        names.FILE,
        "part",
        F.expr(RESULT_DAY).alias(PARTITION),
    )


def equal(left: Column, right: Column, kind: DataType, *, exact: bool) -> Column:
    """Tests if two values of a column are equal. Doubles may differ by `NEARLY` unless `exact`."""
    if kind.typeName() in ("double", "float") and not exact:
        apart, most = F.abs(left - right), F.lit(NEARLY) * F.greatest(F.abs(left), F.abs(right))
        near = (apart < F.lit(math.inf)) & (apart <= most)  # NaN and infinity are near nothing
        return left.eqNullSafe(right) | F.coalesce(near, F.lit(False))
    if _has_comparable_entries(kind):
        left, right = (F.array_sort(F.map_entries(side)) for side in (left, right))
    elif _has_no_equality(kind):  # as JSON, which drops digits below a millisecond, and on Sail digits of decimals
        left, right = (F.to_json(F.struct(side)) for side in (left, right))
    return left.eqNullSafe(right)


def _has_comparable_entries(kind: Any) -> bool:
    """Tests if a type is a map whose values can be compared."""
    return kind.typeName() == "map" and not _has_no_equality(kind.valueType)


def _has_no_equality(kind: Any) -> bool:
    """Tests if values of a type cannot be compared because they hold a map or a variant."""
    name = kind.typeName()
    parts = (
        [field.dataType for field in kind.fields] if name == "struct" else [kind.elementType] if name == "array" else []
    )
    return name in ("map", "variant") or any(map(_has_no_equality, parts))
