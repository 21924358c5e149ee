"""``WindowSpec``: one definition of windows, validated as a whole.

Its parts: assigner (windows of an element), trigger (times of evaluation), evictor (elements of an evaluation),
aggregate, process function or both (computation), allowed lateness (wait for late elements), and event or processing
time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from windowlib.model.aggregates import Aggregate
from windowlib.model.assigners import Assigner, Global
from windowlib.model.errors import InvalidSpec
from windowlib.model.evictors import CountEvictor, Evictor
from windowlib.model.functions import ProcessFunction
from windowlib.model.lateness import cleanup_time_ms, is_element_late, is_late, is_up_to, late_up_to_ms, was_cleaned_up
from windowlib.model.triggers import (
    CountTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS, TimeWindow


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """Windows and their computation. Without a trigger, a window fires at its end.

    >>> from windowlib import Session, Sum
    >>> WindowSpec(Session(gap_ms=3), Sum(), allowed_lateness_ms=10).is_order_free
    True
    """

    assigner: Assigner
    aggregate: Aggregate | None = None
    trigger: Trigger | None = None
    evictor: Evictor | None = None
    allowed_lateness_ms: int = 0
    process: ProcessFunction | None = None
    time: Literal["event", "processing"] = "event"

    def __post_init__(self) -> None:
        if self.aggregate is None and self.process is None:
            raise InvalidSpec(f"{self} computes nothing: need an aggregate, a process function or both")
        if self.allowed_lateness_ms < 0:
            raise InvalidSpec(
                f"allowed_lateness_ms = {self.allowed_lateness_ms} is negative: need allowed_lateness_ms >= 0"
            )
        if self.time not in ("event", "processing"):
            raise InvalidSpec(f"time = {self.time!r} is unknown: need 'event' or 'processing'")
        if self.assigner.merges and not self.active_trigger.merges:
            raise InvalidSpec(f"{self.trigger} cannot merge: need a trigger that can merge for {self.assigner}")
        kind = "global" if isinstance(self.assigner, Global) else "time"
        if self.active_trigger.window_kind not in ("any", kind):
            raise InvalidSpec(f"{self.trigger} does not fit: need a trigger for {kind} windows with {self.assigner}")

    @property
    def active_trigger(self) -> Trigger:
        """The spec's trigger, or the assigner's default."""
        if self.trigger is not None:
            return self.trigger
        if isinstance(self.assigner, Global):
            return EndOfStreamTrigger() if self.assigner.end_of_stream else NeverTrigger()
        return EventTimeTrigger() if self.time == "event" else ProcessingTimeTrigger()

    @property
    def keeps_elements(self) -> bool:
        """True if the contents of a window are its elements, not an accumulator."""
        return self.evictor is not None or self.aggregate is None

    @property
    def is_order_free(self) -> bool:
        """True if the order of the elements in a batch cannot change results: the batch is a set."""
        return (
            self.time == "event"
            and self.evictor is None
            and self.process is None
            and self.aggregate is not None
            and self.aggregate.order_free
            and isinstance(self.active_trigger, EventTimeTrigger)
        )

    @property
    def updates_results(self) -> bool:
        """True if later firings of a window update its only result; otherwise each firing is a separate result."""
        return isinstance(self.active_trigger, EventTimeTrigger | ProcessingTimeTrigger)

    @property
    def fires_at_the_end(self) -> bool:
        """True if windows fire when the watermark reaches their end, by an event-time trigger."""
        return self.time == "event" and isinstance(self.active_trigger, EventTimeTrigger)

    def is_late(self, window: TimeWindow, watermark_ms: int, up_to_ms: int = MIN_TIME_MS) -> bool:
        """Tests if the window is past its cleanup time; windows of processing time are never late.

        Windows with max_timestamp_ms <= ``up_to_ms`` were cleaned up under another allowed lateness.
        """
        return self.time == "event" and (
            is_late(window, self.allowed_lateness_ms, watermark_ms) or was_cleaned_up(window, up_to_ms)
        )

    def is_element_late(self, timestamp_ms: int, watermark_ms: int, up_to_ms: int = MIN_TIME_MS) -> bool:
        """Tests if an element that no window accepted is late. Otherwise the element is in a hole between windows."""
        ruled_by_time = self.time == "event" and not isinstance(self.assigner, Global)
        is_late = is_element_late(timestamp_ms, self.allowed_lateness_ms, watermark_ms)
        return ruled_by_time and (is_late or is_up_to(timestamp_ms, up_to_ms))

    def late_up_to_ms(self, watermark_ms: int, before_ms: int) -> int:
        """The greatest max_timestamp_ms of a late window; never less than the previous value ``before_ms``.

        >>> from windowlib import Count, Session
        >>> spec = WindowSpec(Session(gap_ms=3), Count(), allowed_lateness_ms=10)
        >>> spec.late_up_to_ms(watermark_ms=50, before_ms=7), spec.late_up_to_ms(watermark_ms=50, before_ms=45)
        (40, 45)
        """
        return max(before_ms, late_up_to_ms(self.allowed_lateness_ms, watermark_ms))

    def cleanup_time_ms(self, window: TimeWindow) -> int | None:
        """The time at which the window is cleaned up; None means never.

        The allowed lateness counts in event time only.
        """
        time_ms = cleanup_time_ms(window, self.allowed_lateness_ms if self.time == "event" else 0)
        return time_ms if time_ms < MAX_TIME_MS else None


def tumbling_count(n: int, aggregate: Aggregate | None, process: ProcessFunction | None = None) -> WindowSpec:
    """Tumbling count windows: every ``n`` elements of a key fire once and are purged."""
    return WindowSpec(Global(), aggregate, trigger=PurgingTrigger(CountTrigger(n)), process=process)


def sliding_count(
    size: int, slide: int, aggregate: Aggregate | None, process: ProcessFunction | None = None
) -> WindowSpec:
    """Sliding count windows: after every ``slide`` elements of a key the last ``size`` fire."""
    return WindowSpec(Global(), aggregate, trigger=CountTrigger(slide), evictor=CountEvictor(size), process=process)
