"""Tumbling and sliding windows as a Spark plan: slices, windows, outcome.

1. *Slices*. Each event is aggregated once, into the slice of its time (`gcd(size, slide)` wide); slices are what is
   stored, so `size / slide` copies of an event are never made.
2. *Windows*. Only windows that can fire now are put together from their slices: those the watermark passes, and those
   it had passed before which a late event touches.
3. *Outcome*. A slice is dropped when its last window is late, kept until that window is retired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.plans import names, shared
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS, aligned_start_ms, in_hole, own_window_end_ms
from windowlib.plans.aggregates.bounds import within_bounds
from windowlib.plans.functions import F, quoted
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
    """What a batch makes of the slices in flight it can reach.

    events:  the source's columns, TIMESTAMP_MS (ARRIVAL where an aggregate needs it)        one row per admitted event
             (with `step.shared` the slices that several definitions share, see windowlib.plans.shared)
    state:   key, state_window_start_ms, state_window_end_ms, partials,
             REWRITTEN (bool: the row's file is replaced by this step, not only read)        one row per key and slice
    earliest_ms: the least max_timestamp_ms of a window that may fire - a window that has passed fires
             again only if the batch touches it, so it ends after the batch's first event
    returns: key, state window bounds, partials, `results`, `replaced`, part, end_partition  see windowlib.plans.step
    """
    grid = Grid.of(step.assigner)
    fresh = None if events is None else slices(events, grid, step)
    bounds = {
        "_first_start_ms": _time(earliest_ms + 1 - grid.size_ms),
        "_last_start_ms": _time(step.watermark_out_ms + 1 - grid.size_ms),
        "_passed_start_ms": _time(step.watermark_in_ms + 1 - grid.size_ms),
        "_late_start_ms": _time(step.late_in_ms + 1 - grid.size_ms),
    }
    contents = with_instant(merged(fresh, state, grid, step), step, **bounds)
    combine = grid.pays_to_combine(fired=(step.watermark_out_ms - earliest_ms) // grid.slide_ms + 1)
    return outcome(windows(placed(contents, grid), grid, step, counters, combine=combine), grid, step)


def slices(events: DataFrame, grid: Grid, step: Step) -> DataFrame:
    """One row per key and slice: state_window_start_ms (the slice's start) and partials."""
    if step.shared is not None:
        aggregates = step.aggregates.aggregates
        return shared.aligned_slices(events, step.shared, aggregates, grid.slice_ms, grid.offset_ms)
    start = aligned_start_ms(F.col(names.TIMESTAMP_MS), grid.slice_ms, grid.offset_ms)
    return events.groupBy(*step.key_columns, start.alias("state_window_start_ms")).agg(*step.partials())


def merged(new: DataFrame | None, state: DataFrame | None, grid: Grid, step: Step) -> DataFrame:
    """The batch's slices and those in flight: also before (elements it had before the batch), REWRITTEN."""
    columns = [*map(quoted, step.keys), "state_window_start_ms", *step.partial_names]
    parts = []
    if new is not None:
        parts.append(new.selectExpr(*columns, "0L AS before", f"true AS {REWRITTEN}"))
    if state is not None:
        parts.append(state.selectExpr(*columns, "elements AS before", REWRITTEN))
    # What makes one window lies in one task from here on, so windows need no shuffle of their own. A tumbling window is
    # one slice, and the slices of a batch that several tasks read lie so already.
    window_of = step.keys if grid.overlap else [*step.keys, "state_window_start_ms"]
    together = step.dialect.together(parts, window_of)
    if len(parts) == 1:
        return together
    flags = [F.sum("before").alias("before"), F.max(REWRITTEN).alias(REWRITTEN)]
    return together.groupBy(*step.key_columns, "state_window_start_ms").agg(*step.merges(), *flags)


def placed(contents: DataFrame, grid: Grid) -> DataFrame:
    """Slices and what becomes of them: _dropped, _kept, _last_end_ms, and the windows that fire, _first to _last."""
    start = F.col("state_window_start_ms")
    last = grid.last_window_end(start) - 1
    dropped = (last <= F.col(LATE_IN)) | (last < start)
    first_start = F.greatest(start + grid.slice_ms - grid.size_ms, F.col("_first_start_ms"))
    last_start = F.least(start, F.col("_last_start_ms"))
    return contents.withColumns(
        {
            "_dropped": dropped,
            "_kept": ~dropped & (last > F.col(LATE_OUT)),
            "_last_end_ms": last + 1,
            # The aligned starts among these.
            "_first": -aligned_start_ms(-first_start, grid.slide_ms, -grid.offset_ms),
            "_last": aligned_start_ms(last_start, grid.slide_ms, grid.offset_ms),
        }
    )


def windows(slices: DataFrame, grid: Grid, step: Step, counters: Counters, *, combine: bool) -> DataFrame:
    """The windows that fire, put together from their slices, and the slices that stay in flight and must be written.

    returns: key, partials, before; window_start_ms of a window; state_window_start_ms and _last_end_ms of a slice
    """
    more = {"events_due": events_due(grid), **miscounted(step)}
    rows = counted(slices, counters, dropped="_dropped", kept="_kept", more=more)
    rows = rows.selectExpr("*", f"_kept AND {REWRITTEN} AS _stays")
    if combine:
        rows = _combined(rows, step)
    slice_itself = "if(_stays, array(cast(null AS bigint)), cast(array() AS array<bigint>))"
    its_windows = f"if(_first <= _last, sequence(_first, _last, {grid.slide_ms}L), cast(array() AS array<bigint>))"
    each = rows.selectExpr("*", f"explode(concat({slice_itself}, {its_windows})) AS window_start_ms")
    if not grid.overlap:
        return each
    return with_instant(_aggregated(each, "window_start_ms IS NULL", ["window_start_ms"], step), step)


def events_due(grid: Grid) -> str:
    """The events that a slice brings into the windows that must fire, as SQL: into those that the watermark reaches all
    that it holds, into those that it had passed, and that are not late, what the batch added.
    """
    first = f"state_window_start_ms + {grid.slice_ms}L - {grid.size_ms}L"

    def windows(after: str, up_to: str) -> str:
        """How many of the slice's windows begin after the one time and by the other, both of them inclusive."""
        low, high = (f"({time} - {grid.offset_ms}L)" for time in (f"greatest({first}, {after} + 1)", up_to))
        return f"greatest(floor({high} / {grid.slide_ms}) - floor(({low} - 1) / {grid.slide_ms}), 0L)"

    reached = windows("_passed_start_ms", "least(state_window_start_ms, _last_start_ms)")
    passed = windows("_late_start_ms", "least(state_window_start_ms, _passed_start_ms)")
    return f"elements * {reached} + (elements - before) * {passed}"


def _combined(slices: DataFrame, step: Step) -> DataFrame:
    """Slices that stay in flight, as they are (_stays); next to them, those that are in the same windows as one row."""
    roles = "concat(if(_stays, array(true), array()), if(_first <= _last, array(false), array()))"
    each = slices.withColumn("_stays", F.explode(F.expr(roles)))
    in_windows = [F.expr(f"if(_stays, null, {name})").alias(name) for name in ("_first", "_last")]
    return _aggregated(each, "_stays", ["_stays", *in_windows], step)


def _aggregated(rows: DataFrame, is_slice: str, by: Sequence[str | Column], step: Step) -> DataFrame:
    """`rows` merged by key and `by`, but slices by themselves."""
    of_slices = ("state_window_start_ms", "_last_end_ms")
    itself = [F.expr(f"if({is_slice}, {name}, null)").alias(name) for name in of_slices]
    return rows.groupBy(*step.key_columns, *by, *itself).agg(*step.merges(), F.sum("before").alias("before"))


def outcome(windows: DataFrame, grid: Grid, step: Step) -> DataFrame:
    """The rows of the plan. A window that has passed fires again only if the batch brought it elements."""
    passed = f"window_end_ms - 1 <= {WATERMARK_IN}"
    part = (
        f"CASE WHEN window_start_ms IS NULL THEN '{OPEN}' WHEN NOT {passed} THEN '{ON_TIME}'"
        f" WHEN before > 0 THEN '{UPDATE}' ELSE '{LATE}' END"
    )
    fired = f"part <> '{OPEN}'"
    state = {
        "state_window_start_ms": "state_window_start_ms",
        "state_window_end_ms": f"state_window_start_ms + {grid.slice_ms}",
        **{name: name for name in step.partial_names},
    }
    return (
        within_bounds(windows, step, "coalesce(window_start_ms, state_window_start_ms)")
        .withColumn("window_end_ms", F.col("window_start_ms") + grid.size_ms)
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
    """The events that are late, each by itself, with the bounds of the last window over it; null in a hole."""
    end = F.when(~in_hole(step.assigner), own_window_end_ms(step.assigner))
    bounds = {names.WINDOW_START_MS: end - Grid.of(step.assigner).size_ms, names.WINDOW_END_MS: end}
    return late_alone(events, step).withColumns(bounds)


def _time(bound_ms: int) -> int:
    """A bound that event times can be compared with; further out it would only overflow."""
    return min(max(bound_ms, 2 * MIN_TIMESTAMP_MS), 2 * MAX_TIMESTAMP_MS)


def state_columns(step: Step) -> list[str]:
    """The columns of a row of `open_windows`, its partition column aside."""
    return [*step.keys, "state_window_start_ms", "state_window_end_ms", *step.partial_names]
