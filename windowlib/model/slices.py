"""Slices: aligned buckets of time. A slice lies fully inside or fully outside each window.

A slice of aligned windows is ``gcd(size_ms, slide_ms)`` or ``step_ms`` wide and starts at ``offset_ms + k * width``.
Sliding and cumulating windows share slices, so an event is aggregated once and not once for each window.

A slice of a session is ``gap_ms`` wide. Events of a key less than ``gap_ms`` apart always belong to the same session,
so only the least and the greatest timestamp of a slice matter. With a gap per element, a slice is one millisecond.
"""

from collections.abc import Iterable
from math import gcd, isqrt

from windowlib.model.assigners import Assigner
from windowlib.model.errors import InvalidSpec
from windowlib.model.geometry import geometry_of


def shared_slices(assigners: Iterable[Assigner]) -> tuple[int, int]:
    """Width and offset of the widest slices from which the slices of every assigner can be assembled.

    The width divides the slices of aligned assigners, offsets included. It is at most the least session gap. Raises
    InvalidSpec for windows without slices.

    >>> from windowlib import Session, Sliding, Tumbling
    >>> shared_slices([Tumbling(60), Sliding(size_ms=90, slide_ms=30, offset_ms=10)])
    (10, 0)
    >>> shared_slices([Session(gap_ms=30), Tumbling(60, offset_ms=15)]), shared_slices([Session(gap_ms=25)])
    ((30, 15), (25, 0))
    """
    width_ms, gap_ms = 0, 0
    offset_ms = 0
    for assigner in assigners:
        geometry = geometry_of(assigner)
        own_ms = geometry.slice_ms
        if own_ms is None:
            raise InvalidSpec(f"{assigner} has no slices: need tumbling, sliding or cumulating windows, or sessions")
        if geometry.merges:
            gap_ms = min(gap_ms or own_ms, own_ms)
            continue
        offset_ms = offset_ms if width_ms else geometry.offset_ms
        width_ms = gcd(width_ms, own_ms, geometry.offset_ms - offset_ms)
    if not width_ms:
        return gap_ms, 0
    if gap_ms and gap_ms < width_ms:
        small = [divisor for divisor in range(1, isqrt(width_ms) + 1) if width_ms % divisor == 0]
        width_ms = max(width for divisor in small for width in (divisor, width_ms // divisor) if width <= gap_ms)
    return width_ms, offset_ms % width_ms


def shared_slices_of_a_session(gap_ms: int, width_ms: int) -> int:
    """Greatest multiple of ``width_ms`` up to ``gap_ms``: events of a key in that time belong to one session.

    >>> shared_slices_of_a_session(25, 10)
    20
    """
    return gap_ms // width_ms * width_ms
