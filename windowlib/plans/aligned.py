"""Tumbling, sliding and cumulating windows as a Spark plan: slices, windows, outcome.

1. *Slices*. Each event is aggregated once, into the slice of its time, which is `gcd(size, slide)` or one `step`
   wide, or one interval of a calendar. The state holds slices, so no event is copied into all its windows.
2. *Windows*. Only windows that can fire now are assembled from their slices: windows that the watermark passes, and
   windows that it passed earlier and that get a late event.
3. *Outcome*. A slice is dropped if its last window is late. Otherwise it is kept until that window is retired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.model.geometry import geometry_of
from windowlib.plans import names, shared
from windowlib.plans.aggregates.bounds import within_bounds
from windowlib.plans.functions import F, quoted
from windowlib.plans.grids.by_calendar import CalendarGrid
from windowlib.plans.grids.fixed import FixedGrid
from windowlib.plans.grids.grid import END, LAST_END, SLICE_START, Grid, pays_to_combine
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
    grid = grid_of(step)
    fresh = None if events is None else slices(events, grid, step)
    first_due, last_due = grid.tick_from(earliest_ms + 1), grid.tick_up_to(step.watermark_out_ms + 1)
    bounds = {
        "_first_due": first_due,
        "_last_due": last_due,
        "_passed": grid.tick_up_to(step.watermark_in_ms + 1),
        "_late": grid.tick_up_to(step.late_in_ms + 1),
    }
    contents = with_instant(merged(fresh, state, grid, step), step, **bounds)
    combine = pays_to_combine(grid, fired=(last_due - first_due) // grid.ends_every + 1)
    return outcome(windows(placed(contents, grid), grid, step, counters, combine=combine), grid, step)


def grid_of(step: Step) -> Grid:
    """Grid of the windows of a step. Its columns are exact for times in `step.spans`."""
    geometry = geometry_of(step.assigner)
    if geometry.calendar is None:
        return FixedGrid.of(step.assigner)
    return CalendarGrid(geometry.calendar, geometry.intervals, geometry.within, step.spans)


def slices(events: DataFrame, grid: Grid, step: Step) -> DataFrame:
    """Slices of events, one row per key and slice: state_window_start_ms (the slice's start) and partials."""
    if step.shared is not None:
        aggregates = step.aggregates.aggregates
        start = grid.slice_start(shared.START)
        return shared.aligned_slices(events, step.shared, aggregates, start, grid.slice_ticks)
    start = grid.slice_start(names.TIMESTAMP_MS)
    return events.groupBy(*step.key_columns, start.alias(SLICE_START)).agg(*step.partials())


def merged(new: DataFrame | None, state: DataFrame | None, grid: Grid, step: Step) -> DataFrame:
    """Merges the slices of the batch with the slices in flight.

    Adds the columns `before` (number of elements before the batch) and REWRITTEN.
    """
    columns = [*map(quoted, step.keys), SLICE_START, *step.partial_names]
    parts = []
    if new is not None:
        parts.append(new.selectExpr(*columns, "0L AS before", f"true AS {REWRITTEN}"))
    if state is not None:
        parts.append(state.selectExpr(*columns, "elements AS before", REWRITTEN))
    # From here on all slices of a window lie in one task, so windows need no shuffle of their own. A tumbling window is
    # one slice, and grouping the batch's events has already partitioned the slices by key and start.
    window_of = step.keys if grid.overlap else [*step.keys, SLICE_START]
    together = step.dialect.together(parts, window_of)
    if len(parts) == 1:
        return together
    flags = [F.sum("before").alias("before"), F.max(REWRITTEN).alias(REWRITTEN)]
    return together.groupBy(*step.key_columns, SLICE_START).agg(*step.merges(), *flags)


def placed(contents: DataFrame, grid: Grid) -> DataFrame:
    """Adds the columns of `Grid.placed`, _dropped and _kept.

    Also adds _first and _last: ends of the first and the last firing window over the slice, as ticks.
    """
    rows = grid.placed(contents, SLICE_START)
    start, last = F.col(SLICE_START), F.col(LAST_END) - 1
    dropped = (last <= F.col(LATE_IN)) | (last < start)
    first_bound = F.greatest(F.col(grid.slice_tick) + grid.slice_ticks, F.col("_first_due"))
    last_bound = F.least(F.col(grid.last_tick), F.col("_last_due"))
    return rows.withColumns(
        {
            "_dropped": dropped,
            "_kept": ~dropped & (last > F.col(LATE_OUT)),
            "_first": grid.first_end(first_bound),
            "_last": grid.last_end(last_bound),
        }
    )


def windows(slices: DataFrame, grid: Grid, step: Step, counters: Counters, *, combine: bool) -> DataFrame:
    """Windows that fire, assembled from their slices, and slices that stay in flight and must be written.

    returns: key, partials, before; END (a tick) in windows; state_window_start_ms and LAST_END in slices
    """
    more = {"events_due": events_due(grid), **miscounted(step)}
    rows = counted(slices, counters, dropped="_dropped", kept="_kept", more=more)
    rows = rows.selectExpr("*", f"_kept AND {REWRITTEN} AS _stays")
    if combine:
        rows = _combined(rows, step)
    slice_itself = "if(_stays, array(cast(null AS bigint)), cast(array() AS array<bigint>))"
    its_windows = f"if(_first <= _last, sequence(_first, _last, {grid.ends_every}L), cast(array() AS array<bigint>))"
    each = rows.selectExpr("*", f"explode(concat({slice_itself}, {its_windows})) AS {END}")
    if not grid.overlap:
        return each
    return with_instant(_aggregated(each, f"{END} IS NULL", [END], step), step)


def events_due(grid: Grid) -> str:
    """Number of events that a slice contributes to windows that must fire, as SQL.

    A window that the watermark reaches gets all events of the slice. A window passed earlier that is not late gets the
    events that the batch added.
    """
    first = f"{grid.slice_tick} + {grid.slice_ticks}L"

    def windows(after: str, up_to: str) -> str:
        """Number of the slice's windows that end after `after`, and at or before `up_to`."""
        low, high = (f"({tick} - {grid.an_end}L)" for tick in (f"greatest({first}, {after} + 1)", up_to))
        return f"greatest(floor({high} / {grid.ends_every}) - floor(({low} - 1) / {grid.ends_every}), 0L)"

    reached = windows("_passed", f"least({grid.last_tick}, _last_due)")
    passed = windows("_late", f"least({grid.last_tick}, _passed)")
    return f"elements * {reached} + (elements - before) * {passed}"


def _combined(slices: DataFrame, step: Step) -> DataFrame:
    """Slices that stay in flight, unchanged (_stays), and merged rows of slices that are in the same windows."""
    roles = "concat(if(_stays, array(true), array()), if(_first <= _last, array(false), array()))"
    each = slices.withColumn("_stays", F.explode(F.expr(roles)))
    in_windows = [F.expr(f"if(_stays, null, {name})").alias(name) for name in ("_first", "_last")]
    return _aggregated(each, "_stays", ["_stays", *in_windows], step)


def _aggregated(rows: DataFrame, is_slice: str, by: Sequence[str | Column], step: Step) -> DataFrame:
    """Merges `rows` by key and `by`. Rows for which `is_slice` holds merge with no other slice."""
    slice_columns = (SLICE_START, LAST_END)
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
        SLICE_START: SLICE_START,
        "state_window_end_ms": grid.slice_end(SLICE_START),
        **{name: name for name in step.partial_names},
    }
    return (
        within_bounds(grid.with_bounds(windows), step, "coalesce(window_start_ms, state_window_start_ms)")
        .selectExpr("*", f"{part} AS part")
        .where(f"part IN ('{OPEN}', '{ON_TIME}') OR elements > before")
        .selectExpr(
            *map(quoted, step.keys),
            *(f"if({fired}, null, {sql}) AS {name}" for name, sql in state.items()),
            f"if(part = '{UPDATE}', {ITSELF}, null) AS replaced",
            *results(step, fired),
            events_of_a_firing(fired),
            "part",
            f"{partition(LAST_END, step)} AS {PARTITION}",
        )
    )


def late(events: DataFrame, step: Step) -> DataFrame:
    """Late events with the bounds of the last window that holds the event. The bounds are null in a hole."""
    return grid_of(step).with_last_window(late_alone(events, step))


def state_columns(step: Step) -> list[str]:
    """The columns of `open_windows` without its partition column."""
    return [*step.keys, "state_window_start_ms", "state_window_end_ms", *step.partial_names]
