"""Aligned windows of event time: selection of state files, and recomputation of a time range.

The plan itself is `windowlib.plans.aligned`. A state row is a slice, which several windows may share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from windowlib.model.lateness import was_cleaned_up
from windowlib.model.spec import WindowSpec
from windowlib.plans import aligned
from windowlib.plans.aligned import grid_of
from windowlib.plans.dialect import Counters
from windowlib.plans.functions import F, quoted
from windowlib.plans.grids.grid import LAST_END, SLICE_START, Grid
from windowlib.plans.kinds.kind import STATE_WINDOW_BOUNDS, Bounds, InFlight, PlanInput, PlanKind, RerunRules
from windowlib.plans.partitions import PARTITION, end_partition_at
from windowlib.plans.reach import Bucket, File, Reach, StateFile, Verdict, reached
from windowlib.plans.step import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Aligned(PlanKind):
    """Plan that assembles windows from slices when they fire."""

    name = "aligned"
    shares_slices = True
    bounds = STATE_WINDOW_BOUNDS
    by_chains = False

    @property
    def rerun(self) -> RerunRules | str:
        return self

    def state_columns(self, step: Step) -> list[str]:
        return aligned.state_columns(step)

    def reserved_columns(self, allowed_lateness_ms: int) -> Collection[str]:
        return STATE_WINDOW_BOUNDS

    # -- the state ------------------------------------------------------------------------------------------------

    def touches(self, file: StateFile, buckets: Sequence[Bucket], step: Step) -> bool:
        first_ms, end_ms = _span(file, grid_of(step))
        return any(b.min_timestamp_ms < end_ms and first_ms <= b.max_timestamp_ms for b in buckets)

    def reach(self, files: Sequence[File], buckets: Sequence[Bucket], step: Step) -> Reach[File]:
        earliest_ms = earliest_firing_ms(buckets, step)
        return reached(files, partial(self._verdict, buckets=buckets, step=step, earliest_ms=earliest_ms))

    def _verdict(self, file: StateFile, buckets: Sequence[Bucket], step: Step, earliest_ms: int) -> Verdict:
        grid = grid_of(step)
        first_ms, end_ms = _span(file, grid)
        due_ms = grid.first_end_ms(max(earliest_ms, first_ms) + 1)  # of the first window that may fire
        fires = due_ms <= step.watermark_out_ms + 1 and grid.window_start_ms(due_ms) < end_ms
        retires = grid.last_window_end_ms(first_ms) - 1 <= step.late_out_ms
        retires_whole = grid.last_window_end_ms(file.high[SLICE_START]) - 1 <= step.late_out_ms
        if self.touches(file, buckets, step) or (retires and (fires or not retires_whole)):
            return Verdict.REWRITTEN
        if retires_whole:
            return Verdict.DROPPED
        return Verdict.READ if fires else Verdict.LEFT

    def past_cleanup(self, file: StateFile, step: Step) -> bool:
        last_end_ms = grid_of(step).last_window_end_ms(file.low[SLICE_START])
        return last_end_ms - 1 <= step.late_out_ms

    def overdue(self, file: StateFile, step: Step) -> bool:
        grid, (first_ms, end_ms) = grid_of(step), _span(file, grid_of(step))
        last_end_ms = grid.last_end_ms(min(step.watermark_out_ms + 1, grid.last_window_end_ms(end_ms - 1)))
        reached = last_end_ms > max(step.watermark_in_ms + 1, first_ms)
        return reached or self.past_cleanup(file, step)

    def in_flight(self, rows: Iterable[Mapping[str, Any]], spec: WindowSpec, late_up_to_ms: int) -> Iterator[InFlight]:
        elements: dict[Bounds, int] = {}
        for row in rows:
            for window in spec.assigner.assign(row[SLICE_START]):
                if not was_cleaned_up(window, late_up_to_ms):
                    bounds = window.start_ms, window.end_ms
                    elements[bounds] = elements.get(bounds, 0) + row["elements"]
        return (InFlight(bounds, count) for bounds, count in sorted(elements.items()))

    # -- a batch --------------------------------------------------------------------------------------------------

    def advance(self, batch: PlanInput, step: Step, counters: Counters) -> DataFrame:
        flagged = [
            frame.withColumn(aligned.REWRITTEN, F.lit(flag))
            for frame, flag in ((batch.rewritten, True), (batch.read, False))
            if frame is not None
        ]
        state = flagged[0].unionByName(flagged[1]) if len(flagged) == 2 else flagged[0] if flagged else None
        earliest_ms = earliest_firing_ms(batch.buckets, step)
        return aligned.advance(batch.events, state, step, counters, earliest_ms=earliest_ms)

    def late(self, events: DataFrame, dropped: DataFrame | None, step: Step, may_be_late: bool) -> DataFrame | None:
        return aligned.late(events, step) if may_be_late else None

    # -- a rerun --------------------------------------------------------------------------------------------------

    def sliced(self, events: DataFrame, step: Step) -> DataFrame | None:
        return None

    def recomputed(self, rows: DataFrame, step: Step, from_ms: int, counters: Counters) -> DataFrame:
        return aligned.advance(rows, None, step, counters, earliest_ms=from_ms)

    def remaining(self, rows: DataFrame, step: Step) -> DataFrame:
        end = F.col(LAST_END)
        kept = grid_of(step).placed(rows, SLICE_START).where(end - 1 > step.late_out_ms)
        partition = end_partition_at(end, step.partition_ms).alias(PARTITION)
        return kept.select(*map(quoted, rows.columns), partition)


def earliest_firing_ms(buckets: Sequence[Bucket], step: Step) -> int:
    """Least max_timestamp_ms of a window that may fire in this batch.

    The watermark passes such a window in this batch; or it has passed the window, which is not late and gets an event.
    """
    touched_from = min((b.min_timestamp_ms for b in buckets), default=step.watermark_in_ms + 1)
    return max(min(step.watermark_in_ms + 1, touched_from), step.late_in_ms + 1)


def _span(file: StateFile, grid: Grid) -> tuple[int, int]:
    """Start of a file's first slice and end of its last slice, in ms."""
    return file.low[SLICE_START], grid.slice_end_ms(file.high[SLICE_START])
