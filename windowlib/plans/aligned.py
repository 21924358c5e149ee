"""Tumbling, sliding and cumulating windows as a Spark plan: slices, windows, outcome.

1. *Slices*. Each event is aggregated once, into the slice of its time, which is `gcd(size, slide)` or one `step`
   wide. The state holds slices, so no event is copied into all its windows.
2. *Windows*. Only windows that can fire now are assembled from their slices: windows that the watermark passes, and
   windows that it passed earlier and that get a late event.
3. *Outcome*. A slice is dropped if its last window is late. Otherwise it is kept until that window is retired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.plans import names, shared
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from windowlib.plans.aggregates.bounds import within_bounds
from windowlib.plans.functions import F, quoted
from windowlib.plans.geometry import aligned_start_ms, in_hole, own_window_end_ms
from windowlib.plans.grid import Grid
from windowlib.plans.partitions import PARTITION
from windowlib.plans.step import (
    ITSELF,
    LATE,
    LATE_IN,
    LATE_OUT,
    ON_TIME,
    OPEN,
    UPDATE,
    WATERMARK_IN,
    Step,
    counted,
    events_of_a_firing,
    late_alone,
    miscounted,
    partition,
    results,
    with_instant,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from windowlib.plans.dialect import Counters

REWRITTEN = names.internal("rewritten")


def advance(
    events: DataFrame | None, state: DataFrame | None, step: Step, counters: Counters, *, earliest_ms: int
) -> DataFrame:
    """Applies a batch to the slices in flight in `state`.

    events:  the source's columns, TIMESTAMP_MS, ARRIVAL if an aggregate needs it            one row per admitted event
             (with `step.shared`: shared slices, see windowlib.plans.shared)
    state:   key, state_window_start_ms, state_window_end_ms, partials,
             REWRITTEN (bool: this step replaces the row's file, instead of only reading it) one row per key and slice
    returns: key, state window bounds, partials, `results`, `replaced`, part, end_partition  see windowlib.plans.step

    earliest_ms: the least max_timestamp_ms of a window that may fire. A window that the watermark has
             passed fires again only if it gets an event of the batch, so its end is after the batch's first event.
    """
    grid = Grid.of(step.assigner)
    fresh = None if events is None else slices(events, grid, step)
    bounds = {
        "_first_due_ms": _time(earliest_ms + 1),
        "_last_due_ms": _time(step.watermark_out_ms + 1),
        "_passed_ms": _time(step.watermark_in_ms + 1),
        "_late_ms": _time(step.late_in_ms + 1),
    }
    contents = with_instant(merged(fresh, state, grid, step), step, **bounds)
    combine = grid.pays_to_combine(fired=(step.watermark_out_ms - earliest_ms) // grid.ends_every_ms + 1)
    return outcome(windows(placed(contents, grid), grid, step, counters, combine=combine), grid, step)


def slices(events: DataFrame, grid: Grid, step: Step) -> DataFrame:
    """Slices of events, one row per key and slice: state_window_start_ms (the slice's start) and partials."""
    if step.shared is not None:
        aggregates = step.aggregates.aggregates
        return shared.aligned_slices(events, step.shared, aggregates, grid.slice_ms, grid.offset_ms)
    start = aligned_start_ms(F.col(names.TIMESTAMP_MS), grid.slice_ms, grid.offset_ms)
    return events.groupBy(*step.key_columns, start.alias("state_window_start_ms")).agg(*step.partials())


def merged(new: DataFrame | None, state: DataFrame | None, grid: Grid, step: Step) -> DataFrame:
    """Merges the slices of the batch with the slices in flight.

    Adds the columns `before` (number of elements before the batch) and REWRITTEN.
    """
    columns = [*map(quoted, step.keys), "state_window_start_ms", *step.partial_names]
    parts = []
    if new is not None:
        parts.append(new.selectExpr(*columns, "0L AS before", f"true AS {REWRITTEN}"))
    if state is not None:
        parts.append(state.selectExpr(*columns, "elements AS before", REWRITTEN))
    # From here on all slices of a window lie in one task, so windows need no shuffle of their own. A tumbling window is
    # one slice, and grouping the batch's events has already partitioned the slices by key and start.
    window_of = step.keys if grid.overlap else [*step.keys, "state_window_start_ms"]
    together = step.dialect.together(parts, window_of)
    if len(parts) == 1:
        return together
    flags = [F.sum("before").alias("before"), F.max(REWRITTEN).alias(REWRITTEN)]
    return together.groupBy(*step.key_columns, "state_window_start_ms").agg(*step.merges(), *flags)


def placed(contents: DataFrame, grid: Grid) -> DataFrame:
    """Adds the columns _dropped, _kept, and _last_end_ms (end of the last window over the slice).

    Also adds _first and _last: ends of the first and the last firing window over the slice.
    """
    start = F.col("state_window_start_ms")
    last = grid.last_window_end(start) - 1
    dropped = (last <= F.col(LATE_IN)) | (last < start)
    first_bound = F.greatest(start + grid.slice_ms, F.col("_first_due_ms"))
    last_bound = F.least(last + 1, F.col("_last_due_ms"))
    return contents.withColumns(
        {
            "_dropped": dropped,
            "_kept": ~dropped & (last > F.col(LATE_OUT)),
            "_last_end_ms": last + 1,
            "_first": grid.first_end(first_bound),
            "_last": grid.last_end(last_bound),
        }
    )


def windows(slices: DataFrame, grid: Grid, step: Step, counters: Counters, *, combine: bool) -> DataFrame:
    """Windows that fire, assembled from their slices, and slices that stay in flight and must be written.

    returns: key, partials, before; window_end_ms in windows; state_window_start_ms and _last_end_ms in slices
    """
    more = {"events_due": events_due(grid), **miscounted(step)}
    rows = counted(slices, counters, dropped="_dropped", kept="_kept", more=more)
    rows = rows.selectExpr("*", f"_kept AND {REWRITTEN} AS _stays")
    if combine:
        rows = _combined(rows, step)
    slice_itself = "if(_stays, array(cast(null AS bigint)), cast(array() AS array<bigint>))"
    its_windows = f"if(_first <= _last, sequence(_first, _last, {grid.ends_every_ms}L), cast(array() AS array<bigint>))"
    each = rows.selectExpr("*", f"explode(concat({slice_itself}, {its_windows})) AS window_end_ms")
    if not grid.overlap:
        return each
    return with_instant(_aggregated(each, "window_end_ms IS NULL", ["window_end_ms"], step), step)


def events_due(grid: Grid) -> str:
    """Number of events that a slice contributes to windows that must fire, as SQL.

    A window that the watermark reaches gets all events of the slice. A window passed earlier that is not late gets the
    events that the batch added.
    """
    first, every_ms = f"state_window_start_ms + {grid.slice_ms}L", grid.ends_every_ms

    def windows(after: str, up_to: str) -> str:
        """Number of the slice's windows that end after `after`, and at or before `up_to`."""
        low, high = (f"({time} - {grid.an_end_ms}L)" for time in (f"greatest({first}, {after} + 1)", up_to))
        return f"greatest(floor({high} / {every_ms}) - floor(({low} - 1) / {every_ms}), 0L)"

    reached = windows("_passed_ms", "least(_last_end_ms, _last_due_ms)")
    passed = windows("_late_ms", "least(_last_end_ms, _passed_ms)")
    return f"elements * {reached} + (elements - before) * {passed}"


def _combined(slices: DataFrame, step: Step) -> DataFrame:
    """Slices that stay in flight, unchanged (_stays), and merged rows of slices that are in the same windows."""
    roles = "concat(if(_stays, array(true), array()), if(_first <= _last, array(false), array()))"
    each = slices.withColumn("_stays", F.explode(F.expr(roles)))
    in_windows = [F.expr(f"if(_stays, null, {name})").alias(name) for name in ("_first", "_last")]
    return _aggregated(each, "_stays", ["_stays", *in_windows], step)


def _aggregated(rows: DataFrame, is_slice: str, by: Sequence[str | Column], step: Step) -> DataFrame:
    """Merges `rows` by key and `by`. Rows for which `is_slice` holds merge with no other slice."""
    slice_columns = ("state_window_start_ms", "_last_end_ms")
    same_slice = [F.expr(f"if({is_slice}, {name}, null)").alias(name) for name in slice_columns]
    return rows.groupBy(*step.key_columns, *by, *same_slice).agg(*step.merges(), F.sum("before").alias("before"))


def outcome(windows: DataFrame, grid: Grid, step: Step) -> DataFrame:
    """Rows of the plan. A window passed earlier fires again only if the batch added elements to it."""
    passed = f"window_end_ms - 1 <= {WATERMARK_IN}"
    part = (
        f"CASE WHEN window_end_ms IS NULL THEN '{OPEN}' WHEN NOT {passed} THEN '{ON_TIME}'"
        f" WHEN before > 0 THEN '{UPDATE}' ELSE '{LATE}' END"
    )
    fired = f"part <> '{OPEN}'"
    state = {
        "state_window_start_ms": "state_window_start_ms",
        "state_window_end_ms": f"state_window_start_ms + {grid.slice_ms}",
        **{name: name for name in step.partial_names},
    }
    bounded = windows.withColumn("window_start_ms", grid.window_start(F.col("window_end_ms")))
    return (
        within_bounds(bounded, step, "coalesce(window_start_ms, state_window_start_ms)")
        .selectExpr("*", f"{part} AS part")
        .where(f"part IN ('{OPEN}', '{ON_TIME}') OR elements > before")
        .selectExpr(
            *map(quoted, step.keys),
            *(f"if({fired}, null, {sql}) AS {name}" for name, sql in state.items()),
            f"if(part = '{UPDATE}', {ITSELF}, null) AS replaced",
            *results(step, fired),
            events_of_a_firing(fired),
            "part",
            f"{partition('_last_end_ms', step)} AS {PARTITION}",
        )
    )


def late(events: DataFrame, step: Step) -> DataFrame:
    """Late events with the bounds of the last window that holds the event. The bounds are null in a hole."""
    end = F.when(~in_hole(step.assigner), own_window_end_ms(step.assigner))
    bounds = {names.WINDOW_START_MS: end - Grid.of(step.assigner).size_ms, names.WINDOW_END_MS: end}
    return late_alone(events, step).withColumns(bounds)


def _time(bound_ms: int) -> int:
    """Limits a bound to about the range of event times, so that it cannot overflow."""
    return min(max(bound_ms, 2 * MIN_TIMESTAMP_MS), 2 * MAX_TIMESTAMP_MS)


def state_columns(step: Step) -> list[str]:
    """The columns of `open_windows` without its partition column."""
    return [*step.keys, "state_window_start_ms", "state_window_end_ms", *step.partial_names]
