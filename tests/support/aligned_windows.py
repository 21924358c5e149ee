"""Tumbling and sliding windows over a time, in plain Python: the arithmetic that oracles share."""

from __future__ import annotations

from math import gcd


def windows_at(time_ms: int, size_ms: int, slide_ms: int, offset_ms: int = 0) -> list[tuple[int, int]]:
    """Windows that hold a time, earliest first.

    >>> windows_at(9, 10, 4), windows_at(2, 10, 10, 3)
    ([(0, 10), (4, 14), (8, 18)], [(-7, 3)])
    >>> windows_at(3, 2, 5)
    []
    """
    latest_ms = (time_ms - offset_ms) // slide_ms * slide_ms + offset_ms
    starts = range(latest_ms, time_ms - size_ms, -slide_ms)
    return [(start_ms, start_ms + size_ms) for start_ms in reversed(starts)]


def slice_at(time_ms: int, size_ms: int, slide_ms: int, offset_ms: int = 0) -> tuple[int, int]:
    """Bounds of the slice that holds a time: from a bound of any window to the next.

    >>> slice_at(0, 10, 4, 1)
    (-1, 1)
    """
    width_ms = gcd(size_ms, slide_ms)
    start_ms = (time_ms - offset_ms) // width_ms * width_ms + offset_ms
    return start_ms, start_ms + width_ms
