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
from windowlib.plans.functions import F
from windowlib.plans.geometry import aligned_start_ms
from windowlib.plans.grid import Grid

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windowlib.batches.inputs import Inputs

START, END = "window_start_ms", "window_end_ms"
SLICE, FIRST, LAST, NEVER = map(names.internal, ("slice", "first", "last", "never"))  # columns of events
GROUPS = (SLICE, FIRST, LAST, BATCH, LATE_IN, READMITTED_BY)


def expected(
    inputs: Inputs, counted: CountedRows, recorded: RecordedPast, request: VerifyRequest, unsure: Sequence[TimeRange]
) -> ExpectedWindows:
    """Windows and slices that overlap the requested range. Omits windows and slices that overlap an `unsure` span."""
    step, past, grid = counted.step, recorded.past, Grid.of(counted.step.assigner)
    slices = inputs.staged.write_and_read(_slices(counted, grid, past.reruns), inputs.staged.unused("slices"))
    last_ms = min(past.now.watermark_ms, MAX_WATERMARK - 1) + 1  # last end of a fired window
    bounds = step.dialect.with_values(slices, {"_last_fired": last_ms, "_late_out": past.now.late_up_to_ms})
    chosen = f"{request.meets(START, END)} AND NOT {meets_any(unsure, START, END)}"
    counts = "(_last_end - 1 > _late_in OR _readmitted_by > 0)"
    of_slices = bounds.selectExpr("*", f"_slice AS {START}", f"_slice + {grid.slice_ms} AS {END}").where(chosen)
    keys = step.key_columns

    fired = bounds.where(counts).withColumn("_last", F.least("_last", "_last_fired"))
    ends = f"explode(sequence(_first, _last, {grid.ends_every_ms}L)) AS {END}"
    fired = fired.where("_first <= _last").selectExpr("*", ends)
    fired = fired.withColumn(START, grid.window_start(F.col(END))).where(chosen)
    recomputed = " OR ".join(
        f"(_batch <= {rerun.batch_id} AND {meets_any([rerun.span], START, END)})" for rerun in past.reruns
    )
    in_window = fired.where(f"{END} - 1 > _late_in OR _readmitted_by > 0 OR {recomputed or 'false'}")
    results = in_window.groupBy(*keys, START, END).agg(*step.merges())

    kept = of_slices.where(f"{counts} AND _last_end - 1 > _late_out")
    in_flight = kept.groupBy(*keys, START, END).agg(*step.merges())
    late = of_slices.selectExpr(
        *(f"`{key}`" for key in step.keys), START, END, "_batch AS batch_id",
        f"if({counts}, 0, elements) AS should_be", "_listed AS is",
    )  # fmt: skip
    return ExpectedWindows(step, results, in_flight, late)


def _slices(counted: CountedRows, grid: Grid, reruns: Sequence[PastRerun]) -> DataFrame:
    """Aggregates events by slice.

    returns: key, _slice (start), _batch, _late_in, _readmitted_by, partials, _listed, _first and _last (ends of the
             first and last window over the slice), _last_end

    _batch is 0 and _late_in is MIN_WATERMARK if no window over the slice was late and no rerun readmitted the event.
    """
    step = counted.step
    start = aligned_start_ms(F.col(names.TIMESTAMP_MS), grid.slice_ms, grid.offset_ms)
    first, last = grid.first_end(F.col(SLICE) + grid.slice_ms), grid.last_window_end(F.col(SLICE))
    placed = counted.rows.withColumn(SLICE, start).withColumns({FIRST: first, LAST: last})
    if times := [_counts_since(rerun) for rerun in reruns if not rerun.late_only]:
        unlisted = f"{READMITTED_BY} = 0 AND NOT {IS_LATE} AND {LAST} - 1 <= {LATE_IN}"
        since = F.expr(f"if({unlisted}, greatest(0L, {', '.join(times)}), {READMITTED_BY})")
        placed = placed.withColumn(READMITTED_BY, since)
    plain = f"{FIRST} - 1 > {LATE_IN} AND {READMITTED_BY} = 0"
    by = {name: F.expr(f"if({plain}, {other}, {name})") for name, other in ((BATCH, "0L"), (LATE_IN, NEVER))}
    neutral = step.dialect.with_values(placed, {NEVER: MIN_WATERMARK}).withColumns(by)
    listed = F.sum(F.expr(f"if({IS_LATE}, 1L, 0L)")).alias("_listed")
    groups = [F.col(name).alias("_" + name.removeprefix(names.RESERVED)) for name in GROUPS]
    summed = neutral.groupBy(*step.key_columns, *groups).agg(*step.partials(), listed)
    return summed.withColumn("_last_end", F.col("_last"))


def _counts_since(rerun: PastRerun) -> str:
    """SQL for the batch of the rerun if the rerun covers the event, else 0."""
    time, span = names.TIMESTAMP_MS, rerun.span
    inside = f"{time} >= {span.from_ms} AND {time} < {span.to_ms}"
    return f"if({BATCH} <= {rerun.batch_id} AND {inside}, {rerun.batch_id}L, 0L)"
