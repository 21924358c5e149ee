"""Windows: half-open intervals ``[start_ms, end_ms)`` of event time, in integer milliseconds since the epoch, UTC.

Times may be negative. The last millisecond inside a window is ``max_timestamp_ms = end_ms - 1``; results carry it.
Two windows *touch* when they share a millisecond or one ends where the other starts; touching windows merge.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

MIN_TIME_MS = -(2**63)
MAX_TIME_MS = 2**63 - 1


class TimeWindow(NamedTuple):
    """``[start_ms, end_ms)``, ordered by start, then end.

    >>> TimeWindow(0, 5).max_timestamp_ms
    4
    """

    start_ms: int
    end_ms: int

    @property
    def max_timestamp_ms(self) -> int:
        return self.end_ms - 1


GLOBAL_WINDOW = TimeWindow(MIN_TIME_MS, MAX_TIME_MS + 1)
"""The single window that holds all times and never ends: never late, never cleaned up."""


def touches(a: TimeWindow, b: TimeWindow) -> bool:
    """Tests if ``a`` and ``b`` share a millisecond, or if one ends exactly where the other starts.

    >>> touches(TimeWindow(0, 5), TimeWindow(5, 8)), touches(TimeWindow(0, 5), TimeWindow(6, 8))
    (True, False)
    """
    return a.start_ms <= b.end_ms and b.start_ms <= a.end_ms


def cover(a: TimeWindow, b: TimeWindow) -> TimeWindow:
    """The smallest window that holds ``a`` and ``b``.

    >>> cover(TimeWindow(5, 8), TimeWindow(0, 5))
    TimeWindow(start_ms=0, end_ms=8)
    """
    return TimeWindow(min(a.start_ms, b.start_ms), max(a.end_ms, b.end_ms))


def islands(windows: Iterable[TimeWindow]) -> list[TimeWindow]:
    """Merges windows until none touch. Returns them in order.

    >>> islands([TimeWindow(9, 12), TimeWindow(0, 5), TimeWindow(5, 8)])
    [TimeWindow(start_ms=0, end_ms=8), TimeWindow(start_ms=9, end_ms=12)]
    """
    joined: list[TimeWindow] = []
    for window in sorted(windows):
        if joined and touches(joined[-1], window):
            joined[-1] = cover(joined[-1], window)
        else:
            joined.append(window)
    return joined


def window_start(timestamp_ms: int, size_or_slide_ms: int, offset_ms: int = 0) -> int:
    """The last aligned start at or before ``timestamp_ms``; starts are ``offset_ms + k * size_or_slide_ms``.

    >>> [window_start(t, 10) for t in (-11, -10, -1, 0, 9, 10)]
    [-20, -10, -10, 0, 0, 10]
    >>> window_start(2, 10, offset_ms=3)
    -7
    """
    return timestamp_ms - (timestamp_ms - offset_ms) % size_or_slide_ms
