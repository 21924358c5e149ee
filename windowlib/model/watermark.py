"""The watermark: no event at or below it is expected any more. It never goes back.

The watermark of a source is its greatest admitted event time ``- out_of_orderness_ms - 1``. The watermark of the
pipeline is the least over its *active* sources. *Idle* sources (silent for ``idle_timeout_ms`` of plan time) and
*finished* sources do not count. When all are idle, the watermark follows the plan time:
``plan_time_ms - idle_timeout_ms - out_of_orderness_ms - 1``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from windowlib.model.errors import InvalidSpec
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS

MIN_WATERMARK = MIN_TIME_MS
"""Before the first event: nothing is late."""
MAX_WATERMARK = MAX_TIME_MS
"""After the last event: everything has fired."""


class SourceState(StrEnum):
    """State of a source. The watermark waits only for active sources."""

    ACTIVE = "active"
    IDLE = "idle"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class WatermarkPolicy:
    """Allowed disorder of events, and the silence after which a source is idle (None: never)."""

    out_of_orderness_ms: int
    idle_timeout_ms: int | None = None

    def __post_init__(self) -> None:
        if self.out_of_orderness_ms < 0 or (self.idle_timeout_ms is not None and self.idle_timeout_ms <= 0):
            raise InvalidSpec(f"{self} is not valid: need out_of_orderness_ms >= 0 and idle_timeout_ms > 0 or None")

    def candidate_ms(self, max_timestamp_ms: int) -> int:
        """The watermark for a source whose greatest event time is ``max_timestamp_ms``.

        >>> WatermarkPolicy(out_of_orderness_ms=5).candidate_ms(100)
        94
        """
        return max_timestamp_ms - self.out_of_orderness_ms - 1

    def is_idle(self, silent_since_ms: int, plan_time_ms: int) -> bool:
        """Tests if a source without events since plan time ``silent_since_ms`` is idle now.

        >>> [WatermarkPolicy(0, idle_timeout_ms=60).is_idle(100, now) for now in (159, 160)]
        [False, True]
        """
        return self.idle_timeout_ms is not None and plan_time_ms - silent_since_ms >= self.idle_timeout_ms

    def idle_candidate_ms(self, plan_time_ms: int) -> int:
        """The watermark when every source is idle.

        >>> WatermarkPolicy(out_of_orderness_ms=5, idle_timeout_ms=60).idle_candidate_ms(1000)
        934
        """
        if self.idle_timeout_ms is None:
            raise InvalidSpec("idle_timeout_ms is None: need a timeout to advance the watermark without events")
        return plan_time_ms - self.idle_timeout_ms - self.out_of_orderness_ms - 1


@dataclass(frozen=True, slots=True)
class SourceWatermark:
    """Watermark and state of a source, and the plan time of the last run with events from it, or of its first run."""

    watermark_ms: int = MIN_WATERMARK
    state: SourceState = SourceState.ACTIVE
    heard_ms: int | None = None


def observe(
    source: SourceWatermark, max_timestamp_ms: int | None, plan_time_ms: int, policy: WatermarkPolicy
) -> SourceWatermark:
    """The source after a run at ``plan_time_ms`` whose greatest admitted event time was ``max_timestamp_ms``.

    ``max_timestamp_ms`` is None if the run admitted no event from the source. The silence of a new source starts
    at its first run.

    >>> policy = WatermarkPolicy(out_of_orderness_ms=5, idle_timeout_ms=60)
    >>> observe(SourceWatermark(), 100, plan_time_ms=1000, policy=policy)
    SourceWatermark(watermark_ms=94, state=<SourceState.ACTIVE: 'active'>, heard_ms=1000)
    >>> observe(SourceWatermark(94, heard_ms=1000), None, plan_time_ms=1060, policy=policy).state
    <SourceState.IDLE: 'idle'>
    """
    if max_timestamp_ms is not None:
        watermark_ms = max(source.watermark_ms, policy.candidate_ms(max_timestamp_ms))
        return SourceWatermark(watermark_ms, SourceState.ACTIVE, plan_time_ms)
    heard_ms = plan_time_ms if source.heard_ms is None else source.heard_ms
    if source.state is SourceState.ACTIVE and policy.is_idle(heard_ms, plan_time_ms):
        return replace(source, state=SourceState.IDLE, heard_ms=heard_ms)
    return replace(source, heard_ms=heard_ms)


def combine(previous_ms: int, sources: Iterable[SourceWatermark], plan_time_ms: int, policy: WatermarkPolicy) -> int:
    """The pipeline's watermark: the least watermark of the active sources, never below ``previous_ms``.

    >>> policy = WatermarkPolicy(out_of_orderness_ms=5, idle_timeout_ms=60)
    >>> slow, quiet = SourceWatermark(10), SourceWatermark(3, SourceState.IDLE)
    >>> combine(MIN_WATERMARK, [slow, SourceWatermark(20), quiet], 1000, policy)
    10
    >>> combine(10, [quiet], 1000, policy), combine(10, [SourceWatermark(3)], 1000, policy)
    (934, 10)
    """
    all_sources = list(sources)
    active = [source.watermark_ms for source in all_sources if source.state is SourceState.ACTIVE]
    if active:
        candidate_ms = min(active)
    elif any(source.state is SourceState.IDLE for source in all_sources):
        candidate_ms = policy.idle_candidate_ms(plan_time_ms)
    else:
        candidate_ms = MAX_WATERMARK if all_sources else previous_ms
    return max(previous_ms, candidate_ms)
