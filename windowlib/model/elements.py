"""What goes into the operator and what comes out of it.

In: elements of a key, watermarks, and processing time. Out: what happened, as firings and late elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from windowlib.model.windows import TimeWindow


class Element(NamedTuple):
    """One event of a key. ``arrival`` orders the elements of a window; None as timestamp means that it has none."""

    key: Any
    timestamp_ms: int | None
    value: Any = None
    arrival: int = 0


@dataclass(frozen=True, slots=True)
class Watermark:
    """From now on nothing at or below ``watermark_ms`` is expected any more."""

    watermark_ms: int


@dataclass(frozen=True, slots=True)
class ProcessingTime:
    """The clock, which is an argument like any other, shows ``processing_time_ms``."""

    processing_time_ms: int


class Timing(StrEnum):
    """When a firing happens relative to its window's end: before it, when time reaches it, or after."""

    EARLY = "early"
    ON_TIME = "on_time"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Firing:
    """One result of one window of one key."""

    key: Any
    window: TimeWindow
    result: Any
    timing: Timing

    @property
    def timestamp_ms(self) -> int:
        """The event time that the result carries: the last millisecond of its window."""
        return self.window.max_timestamp_ms


@dataclass(frozen=True, slots=True)
class Late:
    """An element that came after the cleanup time of every window it belongs to."""

    element: Element


Input = Element | Watermark | ProcessingTime
Output = Firing | Late
