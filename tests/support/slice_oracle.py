"""Slices of one event at a time, by their definition; plans compute whole columns."""

from math import gcd

from windowlib.model.assigners import Session, Sliding, Tumbling
from windowlib.model.windows import TimeWindow, window_start


def slice_of(assigner: Tumbling | Sliding | Session, timestamp_ms: int) -> TimeWindow:
    """The bounds of the slice that holds ``timestamp_ms``.

    >>> slice_of(Sliding(size_ms=10, slide_ms=5, offset_ms=3), 2)
    TimeWindow(start_ms=-2, end_ms=3)
    """
    width_ms = assigner.gap_ms if isinstance(assigner, Session) else gcd(assigner.size_ms, assigner.slide_ms)
    offset_ms = 0 if isinstance(assigner, Session) else assigner.offset_ms
    start_ms = window_start(timestamp_ms, width_ms, offset_ms)
    return TimeWindow(start_ms, start_ms + width_ms)


def last_window_end_ms(assigner: Tumbling | Sliding, slice_start_ms: int) -> int | None:
    """The end of the last window that holds the slice, or None in a hole: from then on it is not needed.

    >>> last_window_end_ms(Sliding(size_ms=10, slide_ms=5), 5)
    15
    """
    windows = assigner.assign(slice_start_ms)
    return windows[-1].end_ms if windows else None


def session_of_slice(assigner: Session, min_timestamp_ms: int, max_timestamp_ms: int) -> TimeWindow:
    """The window that the events of one slice make together.

    >>> session_of_slice(Session(gap_ms=10), 20, 29)
    TimeWindow(start_ms=20, end_ms=39)
    """
    return TimeWindow(min_timestamp_ms, max_timestamp_ms + assigner.gap_ms)
