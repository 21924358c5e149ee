"""Tumbling and sliding windows as a Spark plan: slices, windows, outcome.

1. *Slices*. Each event is aggregated once, into the slice of its time (`gcd(size, slide)` wide); slices are what is
   stored, so `size / slide` copies of an event are never made.
2. *Windows*. Only windows that can fire now are put together from their slices: those the watermark passes, and those
   it had passed before which a late event touches.
3. *Outcome*. A slice is dropped when its last window is late, kept until that window is retired.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from windowlib.assigners import Sliding, Tumbling
from windowlib.plans import shared
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS, aligned_start_ms, quoted
from windowlib.plans.functions import F
from windowlib.plans.step import (
    ITSELF,
    LATE,
    LATE_IN,
    LATE_OUT,
    ON_TIME,
    OPEN,
    UPDATE,
    WATERMARK_IN,
    WINDOWS,
    Step,
    counted,
    results,
    slot,
    with_instant,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windowlib.plans.engine import Counters


@dataclass(frozen=True, slots=True)
class Grid:
    """Size, slide, offset and slice width of an aligned assigner; tumbling is sliding by its own size."""

    size_ms: int
    slide_ms: int
    offset_ms: int

    @classmethod
    def of(cls, assigner: Tumbling | Sliding) -> Grid:
        match assigner:
            case Tumbling(size_ms=size_ms, offset_ms=offset_ms):
                return cls(size_ms, size_ms, offset_ms)
            case Sliding(size_ms=size_ms, slide_ms=slide_ms, offset_ms=offset_ms):
                return cls(size_ms, slide_ms, offset_ms)

    @property
    def slice_ms(self) -> int:
        return gcd(self.size_ms, self.slide_ms)

    def last_window_end_ms(self, slice_start: Column) -> Column:
        """The end of the last window over a slice; in a hole it is not above the slice's start."""
        return aligned_start_ms(slice_start, self.slide_ms, self.offset_ms) + self.size_ms


def advance(
    events: DataFrame | None,
    state: DataFrame | None,
    step: Step,
    counters: Counters,
    *,
    earliest_ms: int,
) -> DataFrame:
    """What a batch makes of the slices in flight it can reach.

    events:  the source's columns, timestamp_ms (arrival where an aggregate needs it)        one row per admitted event
             (with `step.shared` the slices that several definitions share, see windowlib.plans.shared)
    state:   key, state_window_start_ms, state_window_end_ms, partials,
             rewritten (bool: the row's file is replaced by this step, not only read)        one row per key and slice
    earliest_ms: the least max_timestamp_ms of a window that may fire - a window that has passed fires
             again only if the batch touches it, so it ends after the batch's first event
    returns: key, state window bounds, partials, `results`, `replaced`, part, slot           see windowlib.plans.step
    """
    grid = Grid.of(step.assigner)  # type: ignore[arg-type]  # sessions have a plan of their own
    fresh = None if events is None else slices(events, grid, step)
    bounds = {
        "_first_start_ms": _time(earliest_ms + 1 - grid.size_ms),
        "_last_start_ms": _time(step.watermark_out_ms + 1 - grid.size_ms),
    }
    contents = with_instant(merged(fresh, state, step), step, **bounds)
    return step.engine.union([kept(contents, grid, step, counters), fired(contents, grid, step)])


def slices(events: DataFrame, grid: Grid, step: Step) -> DataFrame:
    """One row per key and slice: state_window_start_ms (the slice's start) and partials."""
    if step.shared is not None:
        aggregates = step.aggregates.aggregates
        return shared.aligned_slices(events, step.shared, aggregates, grid.slice_ms, grid.offset_ms)
    start = aligned_start_ms(F.col("timestamp_ms"), grid.slice_ms, grid.offset_ms)
    return events.groupBy(*step.key_columns, start.alias("state_window_start_ms")).agg(*step.partials())


def merged(new: DataFrame | None, state: DataFrame | None, step: Step) -> DataFrame:
    """The batch's slices and those in flight: also before (elements it had before the batch), rewritten."""
    columns = [*map(quoted, step.keys), "state_window_start_ms", *step.partial_names]
    parts = []
    if new is not None:
        parts.append(new.selectExpr(*columns, "0L AS before", "true AS rewritten"))
    if state is not None:
        parts.append(state.selectExpr(*columns, "elements AS before", "rewritten"))
    if len(parts) == 1:
        return parts[0]
    flags = [F.sum("before").alias("before"), F.max("rewritten").alias("rewritten")]
    return step.engine.union(parts).groupBy(*step.key_columns, "state_window_start_ms").agg(*step.merges(), *flags)


def kept(contents: DataFrame, grid: Grid, step: Step, counters: Counters) -> DataFrame:
    """The slices that stay in flight and must be written, as rows of part `open`."""
    start = F.col("state_window_start_ms")
    last = grid.last_window_end_ms(start) - 1
    dropped = (last <= F.col(LATE_IN)) | (last < start)
    stays = ~dropped & (last > F.col(LATE_OUT))
    flagged = contents.withColumns({"_dropped": dropped, "_kept": stays, "_last_end_ms": last + 1})
    return (
        counted(flagged, counters, dropped="_dropped", kept="_kept")
        .where("_kept AND rewritten")
        .selectExpr(
            *map(quoted, step.keys),
            "state_window_start_ms",
            f"state_window_start_ms + {grid.slice_ms} AS state_window_end_ms",
            *step.partial_names,
            f"'{OPEN}' AS part",
            f"floor(_last_end_ms / {step.partition_ms}) AS slot",
        )
    )


def fired(contents: DataFrame, grid: Grid, step: Step) -> DataFrame:
    """The windows that fire, put together from their slices; they start in [_first_start_ms, _last_start_ms]."""
    start = F.col("state_window_start_ms")
    first = F.greatest(start + grid.slice_ms - grid.size_ms, F.col("_first_start_ms"))
    last = F.least(start, F.col("_last_start_ms"))
    # The aligned starts in [first, last].
    first_start = -aligned_start_ms(-first, grid.slide_ms, -grid.offset_ms)
    last_start = aligned_start_ms(last, grid.slide_ms, grid.offset_ms)
    # Both branches must need the same columns: then Spark shuffles the slices once, for both.
    shared = contents.where("rewritten IS NOT NULL")
    in_range = shared.withColumns({"_first": first_start, "_last": last_start}).where("_first <= _last")
    if grid.size_ms == grid.slide_ms:
        windows = in_range.withColumn("window_start_ms", F.col("_first"))
    else:
        each = in_range.withColumn("window_start_ms", F.explode(F.sequence("_first", "_last", F.lit(grid.slide_ms))))
        before = F.sum("before").alias("before")
        whole = each.groupBy(*step.key_columns, "window_start_ms").agg(*step.merges(), before)
        windows = with_instant(whole, step)
    passed = f"window_end_ms - 1 <= {WATERMARK_IN}"
    part = f"CASE WHEN NOT {passed} THEN '{ON_TIME}' WHEN before > 0 THEN '{UPDATE}' ELSE '{LATE}' END"
    return (
        windows.withColumn("window_end_ms", F.col("window_start_ms") + grid.size_ms)
        .where(f"NOT ({passed}) OR elements > before")
        .selectExpr("*", f"{part} AS part")
        .selectExpr(
            *map(quoted, step.keys),
            *step.partial_names,
            f"if(part = '{UPDATE}', cast({ITSELF} AS {WINDOWS}), cast(array() AS {WINDOWS})) AS replaced",
            *results(step, "true"),
            "part",
            f"{slot('window_end_ms', step)} AS slot",
        )
    )


def _time(bound_ms: int) -> int:
    """A bound that event times can be compared with; further out it would only overflow."""
    return min(max(bound_ms, 2 * MIN_TIMESTAMP_MS), 2 * MAX_TIMESTAMP_MS)


def state_columns(step: Step) -> list[str]:
    """The columns of a row of `open_windows`, its partition column aside."""
    return [*step.keys, "state_window_start_ms", "state_window_end_ms", *step.partial_names]
