"""Inputs and outputs of the operator.

Inputs: elements of a key, watermarks, and processing time. Outputs: firings and late elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from windowlib.model.windows import TimeWindow


class Element(NamedTuple):
    """An event of a key. ``arrival`` orders the elements of a window; ``timestamp_ms`` is None if it has none."""

    key: Any
    timestamp_ms: int | None
    value: Any = None
    arrival: int = 0


@dataclass(frozen=True, slots=True)
class Watermark:
    """Progress of event time: no element at or below ``watermark_ms`` is expected any more."""

    watermark_ms: int


@dataclass(frozen=True, slots=True)
class ProcessingTime:
    """Progress of processing time. The operator never reads a clock."""

    processing_time_ms: int


class Timing(StrEnum):
    """Time of a firing relative to its window's end: before the end, when time reaches the end, or later."""

    EARLY = "early"
    ON_TIME = "on_time"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Firing:
    """A result of a window of a key."""

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
    """An element that arrived after the cleanup time of all its windows."""

    element: Element


Input = Element | Watermark | ProcessingTime
Output = Firing | Late
