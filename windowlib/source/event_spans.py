"""Spans of event time that hold the events and slices of a step.

Windows of a calendar need them: their plan knows edges only inside these spans (`windowlib.plans.grids.edges`). For all
other windows, the functions here return the step as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from windowlib.model.geometry import geometry_of
from windowlib.model.rerun import TimeRange
from windowlib.model.windows import MIN_TIME_MS, TimeWindow, islands
from windowlib.plans import names
from windowlib.plans.functions import F
from windowlib.plans.grids.grid import SLICE_START
from windowlib.plans.reach import Bucket, StateFile
from windowlib.plans.step import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DAY_MS = 86_400_000
LONGEST_MS = 50 * 366 * DAY_MS  # longer spans are narrowed to the times of the rows
PART_MS = 32 * DAY_MS  # events of such a part of time are one span


def with_events(step: Step, buckets: Sequence[Bucket], events: DataFrame | None) -> Step:
    """Step with the spans of a batch's events; with processing time, of the plan time.

    A bucket from a footer may be very long, as with a single event in year 2. A job then looks at the events.
    """
    if _needs_none(step):
        return step
    if step.specification.time == "processing":
        return replace(step, spans=[TimeRange(step.plan_time_ms, step.plan_time_ms + 1)])
    spans = merged(TimeRange(bucket.min_timestamp_ms, bucket.max_timestamp_ms + 1) for bucket in buckets)
    if events is not None and sum(span.to_ms - span.from_ms for span in spans) > LONGEST_MS:
        return with_rows(step, events)
    return replace(step, spans=spans)


def with_rows(step: Step, events: DataFrame) -> Step:
    """Step with the spans of these events. Runs a job."""
    if _needs_none(step):
        return step
    time = F.col(names.TIMESTAMP_MS)
    parts = events.groupBy(F.floor(time / PART_MS).alias("part")).agg(F.min(time).alias("low"), F.max(time).alias("up"))
    return replace(step, spans=merged(TimeRange(row["low"], row["up"] + 1) for row in parts.collect()))


def with_state(step: Step, files: Iterable[StateFile]) -> Step:
    """Step with the spans of slices in state files, too. Rows without a window, with the state of a key, have none."""
    if _needs_none(step):
        return step
    starts = ((file.low[SLICE_START], file.high[SLICE_START]) for file in files)
    slices = (TimeRange(first_ms, last_ms + 1) for first_ms, last_ms in starts if first_ms > MIN_TIME_MS)
    return replace(step, spans=merged([*step.spans, *slices]))


def merged(spans: Iterable[TimeRange]) -> list[TimeRange]:
    """Merges spans that touch, in order of time.

    >>> merged([TimeRange(5, 8), TimeRange(0, 2), TimeRange(2, 4)])
    [TimeRange(from_ms=0, to_ms=4), TimeRange(from_ms=5, to_ms=8)]
    """
    return [TimeRange(*window) for window in islands(TimeWindow(span.from_ms, span.to_ms) for span in spans)]


def _needs_none(step: Step) -> bool:
    return geometry_of(step.assigner).calendar is None
