"""Tumbling, sliding and cumulating windows over a time, in plain Python: the arithmetic that oracles share."""

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


def cumulating_at(time_ms: int, max_size_ms: int, step_ms: int, offset_ms: int = 0) -> list[tuple[int, int]]:
    """Windows that hold a time, and grow step by step until they start again; shortest first.

    >>> cumulating_at(5, 15, 5), cumulating_at(-1, 4, 2, 1)
    ([(0, 10), (0, 15)], [(-3, 1)])
    """
    start_ms = (time_ms - offset_ms) // max_size_ms * max_size_ms + offset_ms
    lengths = range(step_ms, max_size_ms + 1, step_ms)
    return [(start_ms, start_ms + length_ms) for length_ms in lengths if time_ms < start_ms + length_ms]


def slice_at(time_ms: int, size_ms: int, slide_ms: int, offset_ms: int = 0) -> tuple[int, int]:
    """Bounds of the slice that holds a time: from a bound of any window to the next.

    >>> slice_at(0, 10, 4, 1)
    (-1, 1)
    """
    width_ms = gcd(size_ms, slide_ms)
    start_ms = (time_ms - offset_ms) // width_ms * width_ms + offset_ms
    return start_ms, start_ms + width_ms
