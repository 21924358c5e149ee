"""General plan for specifications that no native plan runs exactly: it runs the operator, key by key.

The plan is `windowlib.plans.general.plan`. A state row is a window of a key, or the state of the key itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowlib.model.geometry import geometry_of
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS
from windowlib.plans.dialect import Counters
from windowlib.plans.kinds.kind import (
    STATE_WINDOW_BOUNDS,
    WINDOW_BOUNDS,
    PlanInput,
    PlanKind,
    RerunRules,
    windows_touch,
)
from windowlib.plans.partitions import end_partition_of
from windowlib.plans.reach import Bucket, File, Reach, StateFile
from windowlib.plans.step import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class General(PlanKind):
    """Plan that passes elements through the operator in order of arrival. It rewrites whole state partitions."""

    name = "general"
    work = "elements in order of arrival"
    runs_operator = True
    needs_arrival = True

    @property
    def rerun(self) -> RerunRules | str:
        return "its results depend on the order and the time in which events came, which a rerun cannot reproduce"

    def state_columns(self, step: Step) -> list[str]:
        from windowlib.plans.general import plan as general

        return general.state_columns(step)

    def stored_columns(self, step: Step) -> list[str]:
        from windowlib.plans.general import plan as general

        return general.stored_columns(step) if step.specification.keeps_elements else []

    def reserved_columns(self, allowed_lateness_ms: int) -> Collection[str]:
        own = ("arrival", "contents", "contents_from", "state", "fired", "next_event_ms", "next_processing_ms")
        return {*WINDOW_BOUNDS, *STATE_WINDOW_BOUNDS, *own}

    # -- the state ------------------------------------------------------------------------------------------------

    def buckets(self, buckets: Sequence[Bucket], step: Step) -> Sequence[Bucket]:
        """Time spans of the batch's windows: any time if they are unknown, the plan time for processing time."""
        if not buckets:
            return buckets
        if geometry_of(step.assigner).ends is None:
            return [Bucket(MIN_TIME_MS, MAX_TIME_MS, MAX_TIME_MS)]
        if step.specification.time == "processing":
            return [Bucket(step.plan_time_ms, step.plan_time_ms, MAX_TIME_MS)]
        return buckets

    def reach(self, files: Sequence[File], buckets: Sequence[Bucket], step: Step) -> Reach[File]:
        """State files of each partition that an event may touch, or that holds a due timer or window.

        If the allowed lateness changed, the batch rewrites all partitions, because timers must be set again. A window
        past its cleanup time is due even without a timer: its trigger may have deleted the timer. With a process
        function, the batch also rewrites the partition with the state of keys.
        """
        if step.lateness_changed:
            return Reach(rewritten=files)
        # With processing time, a timer at the plan time is not due yet (`windowlib.model.keyed.Instant.of_run`).
        clock_ms = step.plan_time_ms - (step.specification.time == "processing")
        partitions = {
            file.partition["end_partition"]
            for file in files
            if windows_touch(file, buckets)
            or file.low["next_event_ms"] <= step.watermark_out_ms
            or file.low["next_processing_ms"] <= clock_ms
            or self.past_cleanup(file, step)
        }
        if partitions and step.specification.process is not None:
            partitions.add(end_partition_of(MAX_TIME_MS, step.partition_ms))
        return Reach(rewritten=[file for file in files if file.partition["end_partition"] in partitions])

    def ending(self, files: Sequence[File], step: Step) -> Sequence[File]:
        """State files outside the partition that holds the global window and the state of keys."""
        endless = end_partition_of(MAX_TIME_MS, step.partition_ms)
        return [file for file in files if file.partition["end_partition"] != endless]

    def past_cleanup(self, file: StateFile, step: Step) -> bool:
        last_ms = file.low["window_end_ms"] - 1
        return bool(last_ms < step.plan_time_ms if step.specification.time != "event" else last_ms <= step.late_out_ms)

    # -- a batch --------------------------------------------------------------------------------------------------

    def advance(self, batch: PlanInput, step: Step, counters: Counters) -> DataFrame:
        from windowlib.plans.general import plan as general

        run = general.program(step.specification, step.aggregates, step.reads, step.outputs)
        return general.advance(batch, step, counters, run=run)

    def late(self, events: DataFrame, dropped: DataFrame | None, step: Step, may_be_late: bool) -> DataFrame | None:
        from windowlib.plans.general import plan as general

        return None if dropped is None else general.late(events, dropped)
