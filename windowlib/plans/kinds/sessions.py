"""Sessions of event time: selection of state files, and recomputation of a time range.

The plan itself is `windowlib.plans.sessions`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from windowlib.plans import sessions
from windowlib.plans.dialect import Counters
from windowlib.plans.functions import F
from windowlib.plans.kinds.kind import (
    STATE_WINDOW_BOUNDS,
    WINDOW_BOUNDS,
    PlanInput,
    PlanKind,
    RerunRules,
    windows_touch,
)
from windowlib.plans.partitions import PARTITION, end_partition
from windowlib.plans.reach import Bucket, File, Reach, StateFile, Verdict, reached
from windowlib.plans.step import Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Sessions(PlanKind):
    """Plan that merges touching slices and windows in flight. A state row is a window."""

    name = "sessions"
    shares_slices = True
    by_chains = True

    @property
    def rerun(self) -> RerunRules | str:
        return self

    def state_columns(self, step: Step) -> list[str]:
        return sessions.state_columns(step)

    def reserved_columns(self, allowed_lateness_ms: int) -> Collection[str]:
        return {*WINDOW_BOUNDS, *STATE_WINDOW_BOUNDS, *(["published"] if allowed_lateness_ms else [])}

    # -- the state ------------------------------------------------------------------------------------------------

    def reach(self, files: Sequence[File], buckets: Sequence[Bucket], step: Step) -> Reach[File]:
        if step.rewrites_state:
            return Reach(rewritten=files)
        return reached(files, partial(self._verdict, buckets=buckets, step=step))

    def _verdict(self, file: StateFile, buckets: Sequence[Bucket], step: Step) -> Verdict:
        first_ms, last_ms = file.low["window_end_ms"] - 1, file.high["window_end_ms"] - 1
        all_fired = last_ms <= step.watermark_in_ms
        fires = not all_fired and first_ms <= step.watermark_out_ms
        if windows_touch(file, buckets) or fires:
            return Verdict.REWRITTEN
        if first_ms > step.late_out_ms:
            return Verdict.LEFT
        return Verdict.DROPPED if all_fired and last_ms <= step.late_out_ms else Verdict.REWRITTEN

    def is_due(self, reach: Reach[File], step: Step, ends_ms: Callable[[File], NDArray[np.int64]]) -> bool:
        """Tests the window ends of the rows, because statistics show only the first and the last end of a file."""

        def holds_due_window(last_ms: NDArray[np.int64]) -> bool:
            fires = (step.watermark_in_ms < last_ms) & (last_ms <= step.watermark_out_ms)
            return bool((fires | (last_ms <= step.late_out_ms)).any())

        return bool(reach.dropped) or any(holds_due_window(ends_ms(file) - 1) for file in reach.rewritten)

    def past_cleanup(self, file: StateFile, step: Step) -> bool:
        return bool(file.low["window_end_ms"] - 1 <= step.late_out_ms)

    def overdue(self, file: StateFile, step: Step) -> bool:
        first_ms, last_ms = file.low["window_end_ms"] - 1, file.high["window_end_ms"] - 1
        return bool(
            first_ms <= step.late_out_ms or (first_ms <= step.watermark_out_ms and last_ms > step.watermark_in_ms)
        )

    # -- a batch --------------------------------------------------------------------------------------------------

    def advance(self, batch: PlanInput, step: Step, counters: Counters) -> DataFrame:
        return sessions.advance(batch.events, batch.rewritten, step, counters)

    def late(self, events: DataFrame, dropped: DataFrame | None, step: Step, may_be_late: bool) -> DataFrame | None:
        return None if dropped is None else sessions.late(events, dropped, step)

    # -- a rerun --------------------------------------------------------------------------------------------------

    def sliced(self, events: DataFrame, step: Step) -> DataFrame | None:
        return sessions.slices(events, step)

    def recomputed(self, rows: DataFrame, step: Step, from_ms: int, counters: Counters) -> DataFrame:
        return sessions.outcome(sessions.islands(rows, None, step), step, counters)

    def remaining(self, rows: DataFrame, step: Step) -> DataFrame:
        partition = F.expr(end_partition("window_end_ms", step.partition_ms))
        return rows.where(F.col("window_end_ms") - 1 > step.late_out_ms).withColumn(PARTITION, partition)
