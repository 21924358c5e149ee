"""Slices: aligned buckets of time, each wholly inside or wholly outside of every window.

A slice of an aligned assigner is ``gcd(size_ms, slide_ms)`` wide and starts at ``offset_ms + k * width``; sliding
windows share slices, so an event is aggregated once and not ``size / slide`` times. A slice of a session is ``gap_ms``
wide: events of one key less than ``gap_ms`` apart are one session in any case, so of such a bucket only the
least and the greatest timestamp matter. Gaps per element have no slices.
"""

from collections.abc import Iterable
from math import gcd, isqrt

from windowlib.model.assigners import Session, Sliding, Tumbling
from windowlib.model.windows import TimeWindow, window_start

Sliced = Tumbling | Sliding | Session
Aligned = Tumbling | Sliding


def slice_width_ms(assigner: Sliced) -> int:
    """How wide the assigner's slices are.

    >>> [slice_width_ms(a) for a in (Tumbling(6), Sliding(size_ms=6, slide_ms=4), Session(gap_ms=30))]
    [6, 2, 30]
    """
    match assigner:
        case Tumbling():
            return assigner.size_ms
        case Sliding():
            return gcd(assigner.size_ms, assigner.slide_ms)
        case Session():
            return assigner.gap_ms


def slice_of(assigner: Sliced, timestamp_ms: int) -> TimeWindow:
    """The bounds of the slice that holds ``timestamp_ms``.

    >>> slice_of(Sliding(size_ms=10, slide_ms=5, offset_ms=3), 2)
    TimeWindow(start_ms=-2, end_ms=3)
    """
    width_ms = slice_width_ms(assigner)
    offset_ms = 0 if isinstance(assigner, Session) else assigner.offset_ms
    start_ms = window_start(timestamp_ms, width_ms, offset_ms)
    return TimeWindow(start_ms, start_ms + width_ms)


def windows_of_slice(assigner: Aligned, slice_start_ms: int) -> list[TimeWindow]:
    """The windows that hold the slice, in order; none in a hole between windows.

    >>> windows_of_slice(Sliding(size_ms=10, slide_ms=5), 5)
    [TimeWindow(start_ms=0, end_ms=10), TimeWindow(start_ms=5, end_ms=15)]
    """
    return assigner.assign(slice_start_ms)


def last_window_end_ms(assigner: Aligned, slice_start_ms: int) -> int | None:
    """The end of the last window that holds the slice, or None in a hole: from then on it is not needed.

    >>> last_window_end_ms(Sliding(size_ms=10, slide_ms=5), 5)
    15
    """
    windows = windows_of_slice(assigner, slice_start_ms)
    return windows[-1].end_ms if windows else None


def session_of_slice(assigner: Session, min_timestamp_ms: int, max_timestamp_ms: int) -> TimeWindow:
    """The window that the events of one slice make together.

    >>> session_of_slice(Session(gap_ms=10), 20, 29)
    TimeWindow(start_ms=20, end_ms=39)
    """
    return TimeWindow(min_timestamp_ms, max_timestamp_ms + assigner.gap_ms)


def shared_slices(assigners: Iterable[Sliced]) -> tuple[int, int]:
    """Width and offset of the widest slices from which every assigner's own can be put together.

    The width divides the slices of aligned assigners, offsets included, and no session's gap is less.

    >>> shared_slices([Tumbling(60), Sliding(size_ms=90, slide_ms=30, offset_ms=10)])
    (10, 0)
    >>> shared_slices([Session(gap_ms=30), Tumbling(60, offset_ms=15)]), shared_slices([Session(gap_ms=25)])
    ((30, 15), (25, 0))
    """
    width_ms, offset_ms, gap_ms = 0, 0, 0
    for assigner in assigners:
        own_ms = slice_width_ms(assigner)
        if isinstance(assigner, Session):
            gap_ms = min(gap_ms or own_ms, own_ms)
            continue
        offset_ms = offset_ms if width_ms else assigner.offset_ms
        width_ms = gcd(width_ms, own_ms, assigner.offset_ms - offset_ms)
    if not width_ms:
        return gap_ms, 0
    if gap_ms and gap_ms < width_ms:
        low = [d for d in range(1, isqrt(width_ms) + 1) if width_ms % d == 0]
        width_ms = max(d for one in low for d in (one, width_ms // one) if d <= gap_ms)
    return width_ms, offset_ms % width_ms


def shared_slices_of_a_session(gap_ms: int, width_ms: int) -> int:
    """How wide a bucket of shared slices may be whose events belong to one session in any case: whole slices only.

    >>> shared_slices_of_a_session(25, 10)
    20
    """
    return gap_ms // width_ms * width_ms
