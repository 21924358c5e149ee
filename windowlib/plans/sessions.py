"""Sessions as a Spark plan: slices, islands, outcome.

1. *Slices*. Events of one key that lie in one bucket as wide as the gap belong to one session in any case, so a bucket
   needs only its first and last time and partial aggregates: a hash aggregation that starts before the shuffle and
   sorts no events. With a gap per element a slice is one key and timestamp, with the largest gap.
2. *Islands*. Slices and windows in flight are intervals; those that touch (``start <= previous end``) are joined.
3. *Outcome*. An island is late as a whole, or fires, or stays in flight, or both of the last.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, Observation, Window
from pyspark.sql import functions as F

from windowlib.assigners import DynamicSession, Session
from windowlib.plans.admission import aligned_start_ms, quoted
from windowlib.plans.step import (
    DROPPED,
    LATE,
    LATE_IN,
    LATE_OUT,
    ON_TIME,
    OPEN,
    UPDATE,
    WATERMARK_IN,
    WATERMARK_OUT,
    WINDOWS,
    Step,
    observed,
    results,
    slot,
    with_instant,
)


def advance(events: DataFrame | None, state: DataFrame | None, step: Step, observation: Observation) -> DataFrame:
    """What a batch makes of the windows in flight it can reach.

    events:  the source's columns, timestamp_ms (arrival where an aggregate needs it)        one row per admitted event
    state:   key, window_start_ms, window_end_ms, state_window_start_ms, state_window_end_ms,
             partials, published (array of windows)                                          one row per key and window
    returns: the columns of `state`, `results` and `replaced`, part, slot                    see windowlib.plans.step
    """
    fresh = None if events is None else slices(events, step)
    return outcome(islands(fresh, state, step), step, observation)


def slices(events: DataFrame, step: Step) -> DataFrame:
    """One row per key and slice: window_start_ms, window_end_ms (of the session the slice makes alone), partials."""
    timestamp = F.col("timestamp_ms")
    match step.assigner:
        case DynamicSession() as session:
            bucket, gap = timestamp, F.max(F.col(quoted(session.gap_column)).cast("long"))
        case Session(gap_ms=gap_ms):
            bucket, gap = aligned_start_ms(timestamp, gap_ms), F.lit(gap_ms)
        case _:
            raise AssertionError(f"not a session: {step.assigner}")
    ends = (F.max(timestamp) + gap).alias("window_end_ms")
    keys = [*step.key_columns, bucket.alias("_bucket")]
    return events.groupBy(*keys).agg(F.min(timestamp).alias("window_start_ms"), ends, *step.partials())


def islands(events_slices: DataFrame | None, state: DataFrame | None, step: Step) -> DataFrame:
    """Slices and windows in flight, joined where they touch.

    returns: key, window and state window bounds, partials, published, touched (the batch has an event in it),
             before (elements it had before the batch)
    """
    parts = [] if events_slices is None else [_fresh(events_slices, step)]
    if state is not None:
        parts.append(state.withColumns({"touched": F.lit(False), "before": F.col("elements")}))
    columns = [*state_columns(step), "touched", "before"]
    both = reduce(DataFrame.unionByName, [part.select(*map(quoted, columns)) for part in parts])
    in_order = Window.partitionBy(*step.key_columns).orderBy("window_start_ms")
    reach = F.max("window_end_ms").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    starts_island = F.when(F.col("window_start_ms") <= F.col("_reach"), 0).otherwise(1)
    in_islands = both.withColumn("_reach", reach).withColumn(
        "_island", F.sum(starts_island).over(in_order.rowsBetween(Window.unboundedPreceding, 0))
    )
    # State windows of a key are disjoint, so the earliest has the least of both bounds.
    state_bounds = [
        F.coalesce(F.min(f"state_{bound}"), extreme(bound)).alias(f"state_{bound}")
        for bound, extreme in (("window_start_ms", F.min), ("window_end_ms", F.max))
    ]
    return in_islands.groupBy(*step.key_columns, "_island").agg(
        F.min("window_start_ms").alias("window_start_ms"),
        F.max("window_end_ms").alias("window_end_ms"),
        *state_bounds,
        *step.merges(),
        *([F.flatten(F.collect_list("published")).alias("published")] if step.keeps_fired_windows else []),
        F.max("touched").alias("touched"),
        F.sum("before").alias("before"),
    )


def _fresh(events_slices: DataFrame, step: Step) -> DataFrame:
    """Slices as windows that nothing was stored of before."""
    nothing = F.lit(None).cast("long")
    return events_slices.withColumns(
        {
            "state_window_start_ms": nothing,
            "state_window_end_ms": nothing,
            **({"published": F.lit(None).cast(WINDOWS)} if step.keeps_fired_windows else {}),
            "touched": F.lit(True),
            "before": F.lit(0).cast("long"),
        }
    )


def outcome(windows: DataFrame, step: Step, observation: Observation) -> DataFrame:
    """Drop late → fire → clean up, for every window; a window that fires and is kept gives two rows."""
    last = F.col("window_end_ms") - 1
    dropped = last <= F.col(LATE_IN)
    passed = last <= F.col(WATERMARK_OUT)
    fires = ~dropped & passed & (F.col("touched") | (last > F.col(WATERMARK_IN)))
    kept = ~dropped & (last > F.col(LATE_OUT))
    published = F.col("published") if step.keeps_fired_windows else F.array().cast(WINDOWS)
    itself = F.array(F.struct("window_start_ms", "window_end_ms"))
    flagged = with_instant(windows, step).select(
        "*", dropped.alias("_dropped"), fires.alias("_fires"), kept.alias("_kept"), published.alias("replaced")
    )
    dropped, fires, kept = F.col("_dropped"), F.col("_fires"), F.col("_kept")
    fired_part = F.when(F.size("replaced") > 0, UPDATE).when(last <= F.col(WATERMARK_IN), LATE).otherwise(ON_TIME)
    parts = (
        F.when(dropped, F.array(F.lit(DROPPED)))
        .when(fires & kept, F.array(F.lit(OPEN), fired_part))
        .when(fires, F.array(fired_part))
        .when(kept, F.array(F.lit(OPEN)))
    )
    rows = observed(flagged, observation, dropped=dropped, kept=kept).select("*", F.explode(parts).alias("part"))
    fired = ~F.col("part").isin(OPEN, DROPPED)
    state = {name: F.col(quoted(name)) for name in state_columns(step) if name not in step.keys}
    if step.keeps_fired_windows:
        state["published"] = F.when(fires, itself).otherwise(F.col("published")).cast(WINDOWS)
    return rows.select(
        *step.key_columns,
        *(F.when(~fired, column).alias(name) for name, column in state.items()),
        F.when(fired, F.col("replaced")).alias("replaced"),
        *results(step, fired),
        "part",
        slot(F.col("part"), F.col("window_end_ms"), step).alias("slot"),
    )


def state_columns(step: Step) -> list[str]:
    """The columns of a row of `open_windows`, its partition column aside."""
    bounds = ["window_start_ms", "window_end_ms", "state_window_start_ms", "state_window_end_ms"]
    return [*step.keys, *bounds, *step.partial_names, *(["published"] if step.keeps_fired_windows else [])]
