"""Reruns: the windows that overlap a time range, and the events from which a rerun recomputes these windows.

A rerun of ``[from, to)`` replaces every window that overlaps the range. It recomputes these windows from the events
that the source holds now:

==============================  ===================================================================================
sessions                        all events of every chain of touching windows that overlaps the range
tumbling, sliding with holes    all events of every window that overlaps the range; no event is in two windows
cumulating                      all events of every window that overlaps the range; windows that share an event share a
                                start
sliding, overlapping            all events inside the range; outside, only events that were admitted earlier, because
                                an event must be in all of its windows or in none
==============================  ===================================================================================

So before and after a rerun, every window holds exactly the admitted events of its time. This is our decision: Flink
has no reruns.
"""

from dataclasses import dataclass

from windowlib.model.assigners import Assigner
from windowlib.model.errors import InvalidSpec
from windowlib.model.geometry import geometry_of
from windowlib.model.windows import TimeWindow

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True, order=True)
class TimeRange:
    """The times in ``[from_ms, to_ms)``."""

    from_ms: int
    to_ms: int

    def __post_init__(self) -> None:
        if self.from_ms >= self.to_ms:
            raise InvalidSpec(f"{self} is empty: need from_ms < to_ms")

    def meets(self, window: TimeWindow) -> bool:
        """Tests if the window and the range share a millisecond.

        >>> [TimeRange(10, 20).meets(TimeWindow(*bounds)) for bounds in ((0, 10), (0, 11), (19, 30), (20, 30))]
        [False, True, True, False]
        """
        return window.start_ms < self.to_ms and self.from_ms < window.end_ms

    def holds(self, other: "TimeRange") -> bool:
        """Tests if this range contains another.

        >>> [TimeRange(10, 20).holds(TimeRange(*bounds)) for bounds in ((10, 20), (9, 20), (10, 21), (12, 15))]
        [True, False, False, True]
        """
        return self.from_ms <= other.from_ms and other.to_ms <= self.to_ms


def readmitted(assigner: Assigner, requested: TimeRange) -> TimeRange:
    """The range in which a rerun of ``requested`` counts all events, late events too.

    It is ``requested`` if windows merge, because a rerun recomputes whole chains, and if the windows are unknown.

    >>> from windowlib import Sliding, Tumbling
    >>> readmitted(Tumbling(10), TimeRange(12, 31)), readmitted(Sliding(10, 5), TimeRange(12, 31))
    (TimeRange(from_ms=10, to_ms=40), TimeRange(from_ms=12, to_ms=31))
    """
    return requested if geometry_of(assigner).starts_overlap else _meeting(assigner, requested)


def needed(assigner: Assigner, requested: TimeRange) -> TimeRange:
    """The range of all events in the windows that overlap ``readmitted(assigner, requested)``.

    >>> from windowlib import Sliding, Tumbling
    >>> needed(Tumbling(10), TimeRange(12, 31)), needed(Sliding(10, 5), TimeRange(12, 31))
    (TimeRange(from_ms=10, to_ms=40), TimeRange(from_ms=5, to_ms=40))
    """
    return _meeting(assigner, readmitted(assigner, requested))


def _meeting(assigner: Assigner, span: TimeRange) -> TimeRange:
    met = geometry_of(assigner).meeting(span.from_ms, span.to_ms)
    return span if met is None else TimeRange(*met)


def touching(assigner: Assigner, windows: TimeRange) -> TimeRange:
    """The range of all events whose session may touch a chain of sessions that covers ``windows``.

    With a gap per element, an earlier event may touch the chain too. The caller finds it by its file's greatest gap.

    >>> from windowlib import Session
    >>> touching(Session(gap_ms=5), TimeRange(20, 30))
    TimeRange(from_ms=15, to_ms=31)
    """
    return TimeRange(windows.from_ms - (geometry_of(assigner).longest_ms or 0), windows.to_ms + 1)


def first_slack_ms(assigner: Assigner) -> int:
    """Distance around a range in which the caller first looks for chains of sessions that overlap the range.

    The caller increases the distance while a chain extends beyond it.

    >>> from windowlib import Session
    >>> first_slack_ms(Session(gap_ms=5))
    20
    """
    gap_ms = geometry_of(assigner).longest_ms
    return HOUR_MS if gap_ms is None else 4 * gap_ms
