"""Sessions as a Spark plan: slices, islands, outcome.

1. *Slices*. A bucket of time is as wide as the gap, so the events of a key in a bucket always belong to one session.
   Their slice has the first time, the last time and partial aggregates. A hash aggregation computes slices: it starts
   before the shuffle and sorts no events. With a gap per element, a slice is a key and timestamp with the largest gap.
2. *Islands*. Slices and windows in flight are intervals. Intervals that touch (``start <= previous end``) are merged.
3. *Outcome*. An island is late as a whole, fires, stays in flight, or fires and stays in flight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.model.geometry import geometry_of
from windowlib.plans import names, shared
from windowlib.plans.aggregates.bounds import within_bounds
from windowlib.plans.functions import F, quoted
from windowlib.plans.geometry import longest_own_window, slice_start
from windowlib.plans.partitions import PARTITION
from windowlib.plans.step import (
    DROPPED,
    ITSELF,
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
    counted,
    events_of_a_firing,
    late_alone,
    miscounted,
    partition,
    results,
    strings,
    with_instant,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windowlib.plans.dialect import Counters


def advance(events: DataFrame | None, state: DataFrame | None, step: Step, counters: Counters) -> DataFrame:
    """Applies a batch to the windows in flight in `state`.

    events:  the source's columns, TIMESTAMP_MS, ARRIVAL if an aggregate needs it            one row per admitted event
             (with `step.shared`: shared slices, see windowlib.plans.shared)
    state:   key, window_start_ms, window_end_ms, state_window_start_ms, state_window_end_ms,
             partials, published (array of windows)                                          one row per key and window
    returns: the columns of `state`, `results` and `replaced`, part, end_partition           see windowlib.plans.step
    """
    fresh = None if events is None else slices(events, step)
    return outcome(islands(fresh, state, step), step, counters)


def slices(events: DataFrame, step: Step) -> DataFrame:
    """Slices of events, one row per key and slice: window_start_ms, window_end_ms (bounds as a session), partials."""
    gap_ms = geometry_of(step.assigner).longest_ms
    if step.shared is not None and gap_ms is not None:
        return shared.session_slices(events, step.shared, step.aggregates.aggregates, gap_ms)
    timestamp, gap = F.col(names.TIMESTAMP_MS), longest_own_window(step.assigner)
    ends = (F.max(timestamp) + gap).alias("window_end_ms")
    keys = [*step.key_columns, slice_start(step.assigner).alias(names.internal("bucket"))]
    return events.groupBy(*keys).agg(F.min(timestamp).alias("window_start_ms"), ends, *step.partials())


def islands(events_slices: DataFrame | None, state: DataFrame | None, step: Step) -> DataFrame:
    """Merges touching slices and windows in flight of a key.

    returns: key, window and state window bounds, partials, published, before (number of elements before the batch)
    """
    columns = [*map(quoted, state_columns(step))]
    parts = []
    if events_slices is not None:
        nothing = {"state_window_start_ms": "bigint", "state_window_end_ms": "bigint", "published": WINDOWS}
        fresh = [f"cast(null AS {nothing[c]}) AS {c}" if c in nothing else quoted(c) for c in state_columns(step)]
        parts.append(events_slices.selectExpr(*fresh, "0L AS before"))
    if state is not None:
        if step.rewrites_state:  # the allowed lateness was 0 until now
            state = state.withColumn("published", F.expr(f"cast(null AS {WINDOWS})"))
        parts.append(state.selectExpr(*columns, "elements AS before"))
    both, apart = step.dialect.union(parts), list(step.keys)
    if step.lateness_changed:  # windows that are late under the new lateness do not merge
        both = both.withColumn("_gone", (F.col("before") > 0) & (F.col("window_end_ms") - 1 <= F.lit(step.late_in_ms)))
        apart.append("_gone")
    in_islands = step.dialect.with_islands(both, apart)
    published = {}
    if step.keeps_published:
        in_islands, published["published"] = step.dialect.concatenated(in_islands, "published", [*apart, "_island"])
    # State windows of a key are disjoint, so the earliest one has the least start and the least end.
    joined = {
        "window_start_ms": "min(window_start_ms)",
        "window_end_ms": "max(window_end_ms)",
        "state_window_start_ms": "coalesce(min(state_window_start_ms), min(window_start_ms))",
        "state_window_end_ms": "coalesce(min(state_window_end_ms), max(window_end_ms))",
        **published,
        "before": "sum(before)",
    }
    return in_islands.groupBy(*(F.col(quoted(name)) for name in apart), "_island").agg(
        *step.merges(), *(F.expr(f"{sql} AS {name}") for name, sql in joined.items())
    )


def outcome(windows: DataFrame, step: Step, counters: Counters) -> DataFrame:
    """Drops late windows, fires due windows, and keeps windows until their cleanup time.

    A window that fires and is kept becomes two rows.
    """
    last = "window_end_ms - 1"
    dropped = f"{last} <= {LATE_IN}"
    fires = f"NOT ({dropped}) AND {last} <= {WATERMARK_OUT} AND (elements > before OR {last} > {WATERMARK_IN})"
    kept = f"NOT ({dropped}) AND {last} > {LATE_OUT}"
    published = "published" if step.keeps_published else f"cast(array() AS {WINDOWS})"
    flagged = with_instant(within_bounds(windows, step, "window_start_ms"), step).selectExpr(
        "*", f"{dropped} AS _dropped", f"{fires} AS _fires", f"{kept} AS _kept", f"{published} AS replaced"
    )
    fired_part = (
        f"CASE WHEN size(replaced) > 0 THEN '{UPDATE}' WHEN {last} <= {WATERMARK_IN} THEN '{LATE}' ELSE '{ON_TIME}' END"
    )
    cases = {
        "_dropped AND elements > before": f"'{DROPPED}'",
        "_fires AND _kept": f"'{OPEN}', {fired_part}",
        "_fires": fired_part,
        "_kept": f"'{OPEN}'",
    }
    parts = f"CASE {' '.join(f'WHEN {case} THEN {strings(values)}' for case, values in cases.items())} END"
    due = f"NOT _dropped AND {last} <= {WATERMARK_OUT}"
    events_due = f"if({due}, if({last} <= {WATERMARK_IN}, elements - before, elements), 0)"
    more = {"events_due": events_due, **miscounted(step)}
    counted_rows = counted(flagged, counters, dropped="_dropped", kept="_kept", more=more)
    fired = f"part NOT IN ('{OPEN}', '{DROPPED}')"
    state = {name: quoted(name) for name in state_columns(step) if name not in step.keys}
    if step.keeps_published:
        state["published"] = f"if(_fires, cast({ITSELF} AS {WINDOWS}), published)"
    return counted_rows.selectExpr("*", f"explode({parts}) AS part").selectExpr(
        *map(quoted, step.keys),
        *(f"if({fired}, null, {sql}) AS {name}" for name, sql in state.items()),
        f"if({fired}, replaced, null) AS replaced",
        *results(step, fired),
        events_of_a_firing(fired),
        "part",
        f"{partition('window_end_ms', step)} AS {PARTITION}",
    )


def late(events: DataFrame, dropped: DataFrame, step: Step) -> DataFrame:
    """Late events with the bounds of their session, which is late as a whole.

    dropped: key, window_start_ms, window_end_ms                                    the late sessions
    """
    start, end, time = F.col(names.WINDOW_START_MS), F.col(names.WINDOW_END_MS), F.col(names.TIMESTAMP_MS)
    windows = dropped.select(
        *step.other_key_columns,
        F.col("window_start_ms").alias(names.WINDOW_START_MS),
        F.col("window_end_ms").alias(names.WINDOW_END_MS),
    )
    return late_alone(events, step).join(windows, step.with_same_key((time >= start) & (time < end)))


def state_columns(step: Step) -> list[str]:
    """The columns of `open_windows` without its partition column."""
    bounds = ["window_start_ms", "window_end_ms", "state_window_start_ms", "state_window_end_ms"]
    return [*step.keys, *bounds, *step.partial_names, *(["published"] if step.keeps_published else [])]
