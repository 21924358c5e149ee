"""Which files of the state a batch can reach: decided from their statistics, without reading them.

A file is *rewritten* when the batch may change one of its rows, *read* when its rows are only needed to fire a window,
*dropped* unread when every row has fired and is past its cleanup time, and otherwise *left* as it is. So a run costs
what its events and the passing of time touch, not what is retained. The general plan rewrites whole partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.delta import DataFile
from windowlib.plans.aligned import Grid
from windowlib.plans.kind import PlanKind
from windowlib.plans.step import Step
from windowlib.windows import window_start


@dataclass(frozen=True, slots=True)
class Bucket:
    """A span of event time that the batch has events in: their times, and the greatest end of their own windows."""

    min_timestamp_ms: int
    max_timestamp_ms: int
    max_window_end_ms: int


@dataclass(slots=True)
class Reach:
    """The files of `open_windows`, told apart."""

    rewritten: list[DataFile] = field(default_factory=list)
    read: list[DataFile] = field(default_factory=list)
    dropped: list[DataFile] = field(default_factory=list)

    @property
    def replaced(self) -> list[DataFile]:
        """The files that the commit takes away."""
        return self.rewritten + self.dropped


def reach(files: Sequence[DataFile], buckets: Sequence[Bucket], step: Step) -> Reach:
    """Tells the state files apart for this step."""
    found = Reach()
    match step.kind:
        case PlanKind.ALIGNED:
            for file in files:
                _aligned(file, buckets, step, found)
        case PlanKind.SESSIONS:
            for file in files:
                _session(file, buckets, step, found)
        case PlanKind.COUNTS:
            found.rewritten = list(files) if buckets else []
        case PlanKind.GENERAL:
            _general(files, buckets, step, found)
    return found


def touches(file: DataFile, buckets: Sequence[Bucket], step: Step) -> bool:
    """Whether an event of the batch may change a row of the file."""
    match step.kind:
        case PlanKind.ALIGNED:
            first_ms = file.low["state_window_start_ms"]
            end_ms = file.high["state_window_start_ms"] + Grid.of(step.assigner).slice_ms  # type: ignore[arg-type]
            return any(b.min_timestamp_ms < end_ms and first_ms <= b.max_timestamp_ms for b in buckets)
        case PlanKind.COUNTS:
            return bool(buckets)
    first_ms, end_ms = file.low["window_start_ms"], file.high["window_end_ms"]
    return any(b.min_timestamp_ms <= end_ms and first_ms <= b.max_window_end_ms for b in buckets)


def _general(files: Sequence[DataFile], buckets: Sequence[Bucket], step: Step, found: Reach) -> None:
    """Whole partitions: those that an event may touch, or with a timer that is due."""
    reached = {
        file.partition["end_partition"]
        for file in files
        if touches(file, buckets, step)
        or file.low["next_event_ms"] <= step.watermark_out_ms
        or file.low["next_processing_ms"] <= step.plan_time_ms
    }
    found.rewritten = [file for file in files if file.partition["end_partition"] in reached]


def _session(file: DataFile, buckets: Sequence[Bucket], step: Step, found: Reach) -> None:
    first_end_ms, last_end_ms = file.low["window_end_ms"], file.high["window_end_ms"]
    touched = touches(file, buckets, step)
    all_fired = last_end_ms - 1 <= step.watermark_in_ms
    fires = not all_fired and first_end_ms - 1 <= step.watermark_out_ms
    retires = first_end_ms - 1 <= step.late_out_ms
    if touched or fires:
        found.rewritten.append(file)
    elif retires and all_fired and last_end_ms - 1 <= step.late_out_ms:
        found.dropped.append(file)
    elif retires:
        found.rewritten.append(file)


def _aligned(file: DataFile, buckets: Sequence[Bucket], step: Step, found: Reach) -> None:
    grid = Grid.of(step.assigner)  # type: ignore[arg-type]  # the caller matched
    first_ms, last_ms = file.low["state_window_start_ms"], file.high["state_window_start_ms"]
    end_ms = last_ms + grid.slice_ms
    touched = touches(file, buckets, step)
    earliest_ms = earliest_firing_ms(buckets, step)
    first_window_ms = _start_after(earliest_ms + 1 - grid.size_ms, grid)
    last_window_ms = window_start(step.watermark_out_ms + 1 - grid.size_ms, grid.slide_ms, grid.offset_ms)
    fires = first_window_ms <= last_window_ms and first_window_ms < end_ms and first_ms < last_window_ms + grid.size_ms
    retires = _last_window_end(first_ms, grid) - 1 <= step.late_out_ms
    retires_whole = _last_window_end(last_ms, grid) - 1 <= step.late_out_ms
    if touched or (retires and (fires or not retires_whole)):
        found.rewritten.append(file)
    elif retires_whole:
        found.dropped.append(file)
    elif fires:
        found.read.append(file)


def earliest_firing_ms(buckets: Sequence[Bucket], step: Step) -> int:
    """The least max_timestamp_ms of a window that may fire: just passed, or passed before and touched by an event."""
    touched_from = min((b.min_timestamp_ms for b in buckets), default=step.watermark_in_ms + 1)
    return max(min(step.watermark_in_ms + 1, touched_from), step.late_in_ms + 1)


def due(files: Sequence[DataFile], step: Step) -> bool:
    """Whether moving time to `step.watermark_out_ms` fires or retires anything, without new events."""
    found = reach(files, (), step)
    return bool(found.rewritten or found.read or found.dropped)


def _last_window_end(slice_start_ms: int, grid: Grid) -> int:
    return window_start(slice_start_ms, grid.slide_ms, grid.offset_ms) + grid.size_ms


def _start_after(bound_ms: int, grid: Grid) -> int:
    return -window_start(-bound_ms, grid.slide_ms, -grid.offset_ms)
