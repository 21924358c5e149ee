"""Expected tumbling, sliding and cumulating windows, computed from all events at once.

- An event is in a window that contains its time if the window was not late when the event's batch began.
- An event is also in such a window if a later rerun has recomputed the window.
- An event whose windows were all late is in none of them until a rerun readmits it.
- If `late_events` lacks such an event, the event was refused as a duplicate. It counts from the first rerun of its time
  on.

Events are first aggregated by slice, and by batch only if the batch makes a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from windowlib.inspection.verify.events import BATCH, IS_LATE, LATE_IN, READMITTED_BY, CountedRows
from windowlib.inspection.verify.expected import ExpectedWindows, meets_any
from windowlib.inspection.verify.recorded import RecordedPast
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.settled import PastRerun
from windowlib.model.rerun import TimeRange
from windowlib.model.watermark import MAX_WATERMARK, MIN_WATERMARK
from windowlib.plans import names
from windowlib.plans.aligned import grid_of
from windowlib.plans.functions import F
from windowlib.plans.grids.grid import END as TICK
from windowlib.plans.grids.grid import LAST_END, Grid
from windowlib.source import event_spans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windowlib.batches.inputs import Inputs

START, END = "window_start_ms", "window_end_ms"
SLICE, FIRST, NEVER = map(names.internal, ("slice", "first", "never"))  # columns of events; FIRST: end of a window
GROUPS = (SLICE, BATCH, LATE_IN, READMITTED_BY)


def expected(
    inputs: Inputs, counted: CountedRows, recorded: RecordedPast, request: VerifyRequest, unsure: Sequence[TimeRange]
) -> ExpectedWindows:
    """Windows and slices that overlap the requested range. Omits windows and slices that overlap an `unsure` span."""
    step, past = event_spans.with_rows(counted.step, counted.rows), recorded.past
    grid = grid_of(step)
    slices = inputs.staged.write_and_read(_slices(counted, grid, past.reruns), inputs.staged.unused("slices"))
    last_tick = grid.tick_up_to(min(past.now.watermark_ms, MAX_WATERMARK - 1) + 1)  # last end of a fired window
    now = {"_last_fired": last_tick, "_late_out": past.now.late_up_to_ms}
    bounds = grid.placed(step.dialect.with_values(slices, now), "_slice")
    chosen = f"{request.meets(START, END)} AND NOT {meets_any(unsure, START, END)}"
    counts = f"({LAST_END} - 1 > _late_in OR _readmitted_by > 0)"
    of_slices = bounds.selectExpr("*", f"_slice AS {START}", f"{grid.slice_end('_slice')} AS {END}").where(chosen)
    keys = step.key_columns

    first = grid.first_end(F.col(grid.slice_tick) + grid.slice_ticks)
    fired = bounds.where(counts).withColumns({"_first": first, "_last": F.least(grid.last_tick, "_last_fired")})
    ends = f"explode(sequence(_first, _last, {grid.ends_every}L)) AS {TICK}"
    fired = grid.with_bounds(fired.where("_first <= _last").selectExpr("*", ends)).where(chosen)
    recomputed = " OR ".join(
        f"(_batch <= {rerun.batch_id} AND {meets_any([rerun.span], START, END)})" for rerun in past.reruns
    )
    in_window = fired.where(f"{END} - 1 > _late_in OR _readmitted_by > 0 OR {recomputed or 'false'}")
    results = in_window.groupBy(*keys, START, END).agg(*step.merges())

    kept = of_slices.where(f"{counts} AND {LAST_END} - 1 > _late_out")
    in_flight = kept.groupBy(*keys, START, END).agg(*step.merges())
    late = of_slices.selectExpr(
        *(f"`{key}`" for key in step.keys), START, END, "_batch AS batch_id",
        f"if({counts}, 0, elements) AS should_be", "_listed AS is",
    )  # fmt: skip
    return ExpectedWindows(step, results, in_flight, late)


def _slices(counted: CountedRows, grid: Grid, reruns: Sequence[PastRerun]) -> DataFrame:
    """Aggregates events by slice.

    returns: key, _slice (start), _batch, _late_in, _readmitted_by, partials, _listed

    _batch is 0 and _late_in is MIN_WATERMARK if no window over the slice was late and no rerun readmitted the event.
    """
    step = counted.step
    sliced = counted.rows.withColumn(SLICE, grid.slice_start(names.TIMESTAMP_MS))
    placed = grid.placed(sliced.withColumn(FIRST, grid.first_window_end(SLICE)), SLICE)
    if times := [_counts_since(rerun) for rerun in reruns if not rerun.late_only]:
        unlisted = f"{READMITTED_BY} = 0 AND NOT {IS_LATE} AND {LAST_END} - 1 <= {LATE_IN}"
        since = F.expr(f"if({unlisted}, greatest(0L, {', '.join(times)}), {READMITTED_BY})")
        placed = placed.withColumn(READMITTED_BY, since)
    plain = f"{FIRST} - 1 > {LATE_IN} AND {READMITTED_BY} = 0"
    by = {name: F.expr(f"if({plain}, {other}, {name})") for name, other in ((BATCH, "0L"), (LATE_IN, NEVER))}
    neutral = step.dialect.with_values(placed, {NEVER: MIN_WATERMARK}).withColumns(by)
    listed = F.sum(F.expr(f"if({IS_LATE}, 1L, 0L)")).alias("_listed")
    groups = [F.col(name).alias("_" + name.removeprefix(names.RESERVED)) for name in GROUPS]
    return neutral.groupBy(*step.key_columns, *groups).agg(*step.partials(), listed)


def _counts_since(rerun: PastRerun) -> str:
    """SQL for the batch of the rerun if the rerun covers the event, else 0."""
    time, span = names.TIMESTAMP_MS, rerun.span
    inside = f"{time} >= {span.from_ms} AND {time} < {span.to_ms}"
    return f"if({BATCH} <= {rerun.batch_id} AND {inside}, {rerun.batch_id}L, 0L)"
