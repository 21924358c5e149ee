"""Reruns as Spark plans: which windows belong to a rerun, and how what is published differs from what should be.

The windows themselves are computed by the ordinary plans, from scratch: all events in one batch, nothing in flight, no
watermark before it.
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
from windowlib.plans.admission import own_window_end_ms
from windowlib.plans.balanced import balanced
from windowlib.plans.functions import F, quoted
from windowlib.plans.partitions import PARTITION, RESULT_DAY
from windowlib.plans.step import Step

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

CHOSEN, CHAIN_START_MS, CHAIN_END_MS = map(names.internal, ("chosen", "chain_start_ms", "chain_end_ms"))
NEW, OLD = map(names.internal, ("new", "old"))
NEARLY = 1e-9  # computed doubles that differ by less of the greater one are equal: sums depend on the order of adding


def chains(intervals: Sequence[DataFrame], asked: TimeRange | None, step: Step) -> DataFrame:
    """The chains of touching intervals that a rerun replaces: those that meet `asked`, or that hold a chosen event.

    intervals: key, window_start_ms, window_end_ms, CHOSEN (bool)                      events, windows that are known
    asked:     None: only chains with a chosen interval
    returns:   key, CHAIN_START_MS, CHAIN_END_MS                                       one row per key and chain
    """
    joined = step.dialect.with_islands(step.dialect.union(intervals), step.keys)
    chain = joined.groupBy(*step.key_columns, "_island").agg(
        F.min("window_start_ms").alias(CHAIN_START_MS),
        F.max("window_end_ms").alias(CHAIN_END_MS),
        F.max(CHOSEN).alias(CHOSEN),
    )
    wanted = (
        F.col(CHOSEN)
        if asked is None
        else (F.col(CHAIN_START_MS) < asked.to_ms) & (F.col(CHAIN_END_MS) > asked.from_ms)
    )
    return chain.where(wanted).select(*step.key_columns, CHAIN_START_MS, CHAIN_END_MS)


def own_windows(events: DataFrame, step: Step) -> DataFrame:
    """The window that each event has alone: key, window_start_ms, window_end_ms."""
    end = own_window_end_ms(step.assigner).alias("window_end_ms")
    return events.select(*step.key_columns, F.col(names.TIMESTAMP_MS).alias("window_start_ms"), end)


def in_chains(rows: DataFrame, known: DataFrame, step: Step, start: str, end: str, *, inside: bool = True) -> DataFrame:
    """The rows whose interval lies in a chain of their key, or those that lie in none. `start`, `end`: SQL, in ms.

    A chain holds all that touches it, so an interval lies in one wholly, or outside.
    """
    named = known.select(*step.other_key_columns, CHAIN_START_MS, CHAIN_END_MS)
    within = (F.expr(start) >= F.col(CHAIN_START_MS)) & (F.expr(end) <= F.col(CHAIN_END_MS))
    return rows.join(named, step.with_same_key(within), "left_semi" if inside else "left_anti")


def difference(new: DataFrame, old: DataFrame, step: Step) -> DataFrame:
    """What must change in `results` so that it shows `new` and not `old`; rows with equal values stay.

    new:     the columns of `results`                                 what the windows of the rerun should show
    old:     the columns of `results`, FILE                           what they show
    returns: the columns of `results` (of a removed row as it was), BEFORE (struct of the values it had, null where
             there was none), FILE (of the row before), part (added, changed, removed), end_partition (the day)
    """
    identity = [*step.keys, "window_start", "window_end"]
    values = step.value_names
    compared = [name for name in values if name not in UNCOMPARED]
    rest = [*map(quoted, [*values, "firing", "timing"])]
    types = {field.name: field.dataType for field in new.schema}
    both = new.select(*map(quoted, identity), F.struct(*rest).alias(NEW)).join(
        old.select(*map(quoted, identity), F.struct(*rest).alias(OLD), names.FILE), identity, "full_outer"
    )

    def of(side: str, name: str) -> Column:
        return F.col(f"{side}.{quoted(name)}")

    removed, added = F.col(NEW).isNull(), F.col(OLD).isNull()
    exact = step.aggregates.exact
    changed = balanced(
        or_, [~equal(of(NEW, name), of(OLD, name), types[name], exact=name in exact) for name in compared]
    )
    shown = {name: F.when(removed, of(OLD, name)).otherwise(of(NEW, name)) for name in values}
    shown["firing"] = F.coalesce(of(OLD, "firing"), F.lit(0)) + F.when(removed, 0).otherwise(1)
    shown["timing"] = F.when(removed, of(OLD, "timing")).otherwise("late")
    shown["batch_id"] = F.lit(step.batch_id).cast("long")
    differing = both.withColumn("part", F.when(added, ADDED).when(removed, REMOVED).when(changed, CHANGED)).where(
        "part IS NOT NULL"
    )
    return differing.select(
        *map(quoted, identity),
        *(column.cast(types[name]).alias(name) for name, column in shown.items()),
        F.when(~added, F.struct(*(of(OLD, name).alias(name) for name in values))).alias(names.BEFORE),
        names.FILE,
        "part",
        F.expr(RESULT_DAY).alias(PARTITION),
    )


def equal(one: Column, other: Column, of: DataType, *, exact: bool) -> Column:
    """Whether two values of a column are the same; unless it is `exact`, or doubles that differ by `NEARLY` at most."""
    if of.typeName() in ("double", "float") and not exact:
        apart, most = F.abs(one - other), F.lit(NEARLY) * F.greatest(F.abs(one), F.abs(other))
        near = (apart < F.lit(math.inf)) & (apart <= most)  # NaN and infinity are near nothing
        return one.eqNullSafe(other) | F.coalesce(near, F.lit(False))
    if _has_entries_alone(of):
        one, other = (F.array_sort(F.map_entries(side)) for side in (one, other))
    elif _has_no_equality(of):  # as texts, which lack what is below a millisecond, on Sail digits of decimals, too
        one, other = (F.to_json(F.struct(side)) for side in (one, other))
    return one.eqNullSafe(other)


def _has_entries_alone(of: Any) -> bool:
    """Whether a type is that of maps whose values can be compared."""
    return of.typeName() == "map" and not _has_no_equality(of.valueType)


def _has_no_equality(of: Any) -> bool:
    """Whether values of a type cannot be compared: there is a map or a variant in them."""
    kind = of.typeName()
    parts = [one.dataType for one in of.fields] if kind == "struct" else [of.elementType] if kind == "array" else []
    return kind in ("map", "variant") or any(map(_has_no_equality, parts))
