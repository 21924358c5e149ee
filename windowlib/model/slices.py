"""Slices: aligned buckets of time, each wholly inside or wholly outside of every window.

A slice of an aligned assigner is ``gcd(size_ms, slide_ms)`` wide and starts at ``offset_ms + k * width``; sliding
windows share slices, so an event is aggregated once and not ``size / slide`` times. A slice of a session is ``gap_ms``
wide: events of one key less than ``gap_ms`` apart are one session in any case, so of such a bucket only the
least and the greatest timestamp matter. Gaps per element have no slices.
"""

from collections.abc import Iterable
from math import gcd, isqrt

from windowlib.model.assigners import Session, Sliding, Tumbling

Sliced = Tumbling | Sliding | Session


def slice_width_ms(assigner: Sliced) -> int:
    """How wide the assigner's slices are.

    >>> [slice_width_ms(a) for a in (Tumbling(6), Sliding(size_ms=6, slide_ms=4), Session(gap_ms=30))]
    [6, 2, 30]
    """
    return assigner.gap_ms if isinstance(assigner, Session) else gcd(assigner.size_ms, assigner.slide_ms)


def shared_slices(assigners: Iterable[Sliced]) -> tuple[int, int]:
    """Width and offset of the widest slices from which every assigner's own can be put together.

    The width divides the slices of aligned assigners, offsets included, and no session's gap is less.

    >>> shared_slices([Tumbling(60), Sliding(size_ms=90, slide_ms=30, offset_ms=10)])
    (10, 0)
    >>> shared_slices([Session(gap_ms=30), Tumbling(60, offset_ms=15)]), shared_slices([Session(gap_ms=25)])
    ((30, 15), (25, 0))
    """
    width_ms, gap_ms = 0, 0
    offset_ms = 0
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
