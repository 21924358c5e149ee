"""Slices shared by several definitions: events are aggregated once, and each plan starts from the shared slices.

A shared slice is a row per key and bucket of event time. It has the first and the last time of its events, and every
partial aggregate that a definition needs. A plan merges the shared slices that lie in one of its own slices. The result
equals slices computed from events, because partial aggregates can be merged in any grouping.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windowlib.model.slices import shared_slices_of_a_session
from windowlib.plans import names
from windowlib.plans.aggregates.aggregate_set import AggregateSet, SqlAggregate
from windowlib.plans.aggregates.columns import all_merges, all_partial_names, all_partials, part_names, untyped
from windowlib.plans.functions import F, quoted
from windowlib.plans.geometry import aligned_start_ms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windowlib.plans.dialect import Dialect

START, FIRST = "state_window_start_ms", "window_start_ms"  # the start of a slice, and the time of its first event


@dataclass(frozen=True, slots=True)
class Slicing:
    """Layout of shared slices: width, offset of their starts, keys, and the aggregates of all definitions."""

    width_ms: int
    offset_ms: int
    keys: Sequence[str]
    aggregates: tuple[SqlAggregate, ...]
    dialect: Dialect

    @property
    def key_columns(self) -> list[Column]:
        return [F.col(quoted(key)) for key in self.keys]

    def typed(self, aggregates: AggregateSet) -> AggregateSet:
        """Sets the types of a definition's aggregates to the types of the same aggregates in this layout."""
        typed = {untyped(aggregate): aggregate for aggregate in self.aggregates}
        return replace(aggregates, aggregates=tuple(typed[aggregate] for aggregate in aggregates.aggregates))


def all_aggregates(sets: Iterable[AggregateSet]) -> AggregateSet:
    """Aggregates of several definitions, without duplicates."""
    return AggregateSet(tuple(dict.fromkeys(aggregate for each in sets for aggregate in each.aggregates)), ())


def slices(events: DataFrame, slicing: Slicing) -> DataFrame:
    """Shared slices of events.

    events:  the source's columns, TIMESTAMP_MS                                       one row per admitted event
    returns: key, state_window_start_ms, window_start_ms (the time of the first event), partials
                                                                                      one row per key and slice
    """
    timestamp = F.col(names.TIMESTAMP_MS)
    start = aligned_start_ms(timestamp, slicing.width_ms, slicing.offset_ms).alias(START)
    partials = all_partials(slicing.aggregates, slicing.dialect)
    return events.groupBy(*slicing.key_columns, start).agg(F.min(timestamp).alias(FIRST), *partials)


def session_slices(rows: DataFrame, slicing: Slicing, aggregates: Sequence[SqlAggregate], gap_ms: int) -> DataFrame:
    """Slices of a definition with these aggregates, merged from shared slices.

    They replace the result of `windowlib.plans.sessions.slices`.
    """
    width_ms = shared_slices_of_a_session(gap_ms, slicing.width_ms)
    own = _of_definition(rows, slicing, aggregates)
    end = (F.max("last_event_ms") + gap_ms).alias("window_end_ms")
    if width_ms == slicing.width_ms:
        return own.withColumn("window_end_ms", F.col("last_event_ms") + gap_ms).drop(START)
    bucket = aligned_start_ms(F.col(START), width_ms, slicing.offset_ms).alias("_bucket")
    return own.groupBy(*slicing.key_columns, bucket).agg(
        F.min(FIRST).alias(FIRST), end, *all_merges(aggregates, slicing.dialect)
    )


def aligned_slices(
    rows: DataFrame, slicing: Slicing, aggregates: Sequence[SqlAggregate], own_start: Column, width_ms: int
) -> DataFrame:
    """Slices of a definition with these aggregates, merged from shared slices.

    own_start: start of the definition's slice that holds a shared slice
    width_ms:  width of the definition's slices

    They equal the result of `windowlib.plans.aligned.slices`.
    """
    own = _of_definition(rows, slicing, aggregates)
    if width_ms == slicing.width_ms:
        return own.drop(FIRST)
    merged = own.groupBy(*slicing.key_columns, own_start.alias("_start")).agg(*all_merges(aggregates, slicing.dialect))
    return merged.withColumnRenamed("_start", START)


def _of_definition(rows: DataFrame, slicing: Slicing, aggregates: Sequence[SqlAggregate]) -> DataFrame:
    """Selects the partials of a definition from shared slices, under the definition's column names."""
    numbers = {aggregate: number for number, aggregate in enumerate(slicing.aggregates)}
    own = [
        F.col(f"p{numbers[aggregate]}_{part}").alias(f"p{number}_{part}")
        for number, aggregate in enumerate(aggregates)
        for part in part_names(aggregate)
    ]
    return rows.select(*slicing.key_columns, START, FIRST, *all_partial_names(()), *own)
