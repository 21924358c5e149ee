"""Geometry of windows: the questions that code outside the model asks about the windows of an assigner.

Code asks the geometry and never the class of an assigner, so that a new kind of window needs no change in that code. An
answer of None means *unknown*: it depends on more than the event time, or on the code of a user's assigner. Every
caller decides the meaning of an unknown answer.

All answers are about the windows that ``assign`` gives, before any merge. The columns of `windowlib.plans.geometry`
give the same answers for DataFrames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from windowlib.model.assigners import (
    Assigner,
    CalendarCumulating,
    CalendarWindows,
    Cumulating,
    DynamicSession,
    Global,
    Session,
    Sliding,
    Staggered,
    Tumbling,
)
from windowlib.model.calendar import Calendar
from windowlib.model.time_zones.zones import Zone
from windowlib.model.windows import GLOBAL_WINDOW, TimeWindow, window_start


@dataclass(frozen=True, slots=True)
class Geometry:
    """Answers about the windows of an assigner. Without arguments, every answer is unknown.

    - `merges`: windows that touch become one, so they form chains.
    - `ends`: false for a window that holds all times.
    - `starts_every_ms`: windows start at ``offset_ms + k * starts_every_ms``. It is 1 if each event starts a window.
    - `longest_ms`: length of the longest window; with a calendar, an upper bound.
    - `step_ms`: windows of every multiple of this length, up to `longest_ms`, have the same start; by default one.
    - `gap_column`: column that holds the length of each event's window.
    - `shifted`: each key shifts these starts by a time of its own, less than `longest_ms`.
    - `calendar`: calendar whose intervals are the slices of the windows, which are `intervals` consecutive intervals.
    - `within`: coarser calendar. Windows start at its edges and end at every edge of `calendar` up to its next edge.
    """

    merges: bool = False
    ends: bool | None = None
    starts_every_ms: int | None = None
    offset_ms: int = 0
    longest_ms: int | None = None
    step_ms: int | None = None
    gap_column: str | None = None
    shifted: bool = False
    calendar: Calendar | None = None
    intervals: int = 1
    within: Calendar | None = None

    @property
    def by_time(self) -> bool:
        """True if the event time alone is known to decide the windows of an event.

        >>> [geometry_of(windows).by_time for windows in (Tumbling(5), Staggered(Tumbling(5)), Global())]
        [True, False, True]
        """
        return self.ends is False or (self.longest_ms is not None and not self.shifted)

    @property
    def has_holes(self) -> bool | None:
        """True if some times are in no window. Unknown if that depends on the key.

        >>> windows = Sliding(size_ms=9, slide_ms=9), Sliding(size_ms=9, slide_ms=10)
        >>> [geometry_of(assigner).has_holes for assigner in (*windows, *map(Staggered, windows))]
        [False, True, False, None]
        """
        if self.ends is False or self.starts_every_ms == 1 or self.calendar is not None:
            return False
        if self.starts_every_ms is None or self.longest_ms is None:
            return None
        return self.starts_every_ms > self.longest_ms and (None if self.shifted else True)

    @property
    def most_windows(self) -> int | None:
        """Greatest number of windows of one event.

        >>> geometry_of(Sliding(size_ms=10, slide_ms=4)).most_windows, geometry_of(Cumulating(12, 3)).most_windows
        (3, 4)
        """
        if self.ends is None:
            return None
        if self.calendar is not None:
            return self.intervals if self.within is None else self.within.most_steps(self.calendar)
        if self.merges or self.starts_every_ms is None or self.longest_ms is None:
            return 1
        starts, lengths = -(-self.longest_ms // self.starts_every_ms), self.longest_ms // self._shortest_ms
        return starts * lengths

    @property
    def _shortest_ms(self) -> int:
        return self.step_ms or self.longest_ms or 1

    @property
    def ends_every_ms(self) -> int | None:
        """Distance between two ends of windows. Every end belongs to one window of a key."""
        return self.step_ms or self.starts_every_ms

    @property
    def starts_overlap(self) -> bool:
        """True if windows with different starts are known to overlap without becoming one."""
        if self.calendar is not None:
            return self.intervals > 1
        every_ms, longest_ms = self.starts_every_ms, self.longest_ms
        return not self.merges and every_ms is not None and longest_ms is not None and every_ms < longest_ms

    @property
    def slice_ms(self) -> int | None:
        """Width of slices: buckets of time that plans aggregate first. Unknown if the windows have no slices.

        - Aligned windows: a slice lies fully inside or fully outside of each window.
        - Sessions: all events of a key in one slice belong to one session.

        >>> windows = Tumbling(6), Sliding(size_ms=6, slide_ms=4), Session(gap_ms=30), DynamicSession("gap")
        >>> [geometry_of(assigner).slice_ms for assigner in windows]
        [6, 2, 30, 1]
        """
        if self.merges:
            return self.starts_every_ms if self.longest_ms is None else self.longest_ms
        if self.starts_every_ms is None or self.longest_ms is None or self.shifted:
            return None
        return gcd(self.longest_ms, self.starts_every_ms, self._shortest_ms)

    @property
    def beyond_slice_ms(self) -> int:
        """Greatest distance by which a window extends beyond a slice in it; 0 for windows without shared slices.

        With a calendar, it is an upper bound.
        """
        if self.calendar is not None:
            return 0 if self.most_windows == 1 else self.longest_ms or 0
        if self.merges or self.slice_ms is None or self.longest_ms is None:
            return 0
        return self.longest_ms - self.slice_ms

    def last_start_ms(self, time_ms: int) -> int | None:
        """Last start of a window at or before a time; for some key, if keys shift their windows.

        >>> [geometry_of(windows).last_start_ms(7) for windows in (Tumbling(5), Session(3), Staggered(Tumbling(5)))]
        [5, 7, 7]
        """
        if self.calendar is not None:
            return (self.within or self.calendar).start_ms(time_ms)
        if self.starts_every_ms is None:
            return None
        return time_ms if self.shifted else window_start(time_ms, self.starts_every_ms, self.offset_ms)

    def latest_end_ms(self, timestamp_ms: int) -> int | None:
        """End of the last window of an event. If keys shift their windows, no window of the event ends later.

        In a hole between windows, it is the end of the event's own millisecond.

        >>> windows = Session(gap_ms=10), Sliding(size_ms=10, slide_ms=5), Sliding(size_ms=1, slide_ms=5), Global()
        >>> [geometry_of(assigner).latest_end_ms(7) for assigner in windows] == [17, 15, 8, GLOBAL_WINDOW.end_ms]
        True
        """
        if self.ends is False:
            return GLOBAL_WINDOW.end_ms
        if self.calendar is not None:
            return self._of_calendar.assign(timestamp_ms)[-1].end_ms
        start_ms = self.last_start_ms(timestamp_ms)
        if start_ms is None or self.longest_ms is None:
            return None
        return max(start_ms + self.longest_ms, timestamp_ms + 1)

    def windows_until(self, last: TimeWindow, timestamp_ms: int) -> list[TimeWindow]:
        """Windows of an event from ``last``, one of them, back to the first. Only ``last`` if they are unknown.

        >>> geometry_of(Sliding(size_ms=10, slide_ms=4)).windows_until(TimeWindow(8, 18), 9)
        [TimeWindow(start_ms=8, end_ms=18), TimeWindow(start_ms=4, end_ms=14), TimeWindow(start_ms=0, end_ms=10)]
        """
        if self.calendar is not None:
            return [window for window in reversed(self._of_calendar.assign(timestamp_ms)) if window <= last]
        if self.merges or self.starts_every_ms is None or self.longest_ms is None:
            return [last]
        starts = range(last.start_ms, timestamp_ms - self.longest_ms, -self.starts_every_ms)
        lengths = range(self.longest_ms, 0, -self._shortest_ms)
        return [TimeWindow(s, s + length) for s in starts for length in lengths if s + length > timestamp_ms]

    def meeting(self, from_ms: int, to_ms: int) -> tuple[int, int] | None:
        """Bounds of ``[from_ms, to_ms)`` together with all windows that meet it. Unknown if windows merge.

        >>> geometry_of(Sliding(size_ms=10, slide_ms=5)).meeting(12, 31)
        (5, 40)
        >>> geometry_of(Sliding(size_ms=2, slide_ms=5)).meeting(13, 31)
        (13, 32)
        """
        if self.calendar is not None:
            first, last = (self._of_calendar.assign(time_ms) for time_ms in (from_ms, to_ms - 1))
            return first[0].start_ms, last[-1].end_ms
        every_ms, longest_ms = self.starts_every_ms, self.longest_ms
        if self.merges or self.shifted or every_ms is None or longest_ms is None:
            return None
        first_ms = -window_start(longest_ms - from_ms - 1, every_ms, -self.offset_ms)  # the first that ends after it
        last_ms = window_start(to_ms - 1, every_ms, self.offset_ms)
        return min(from_ms, first_ms), max(to_ms, last_ms + longest_ms)

    def are_bounds(self, start_ms: Any, end_ms: Any, newest_ms: Any) -> Any:
        """Tests if bounds are those of a window with this newest event; not known to be wrong if unknown.

        Takes integers, or arrays of them.

        >>> geometry_of(Tumbling(5)).are_bounds(5, 10, 9), geometry_of(Session(gap_ms=5)).are_bounds(5, 10, 9)
        (True, False)
        """
        holds = (start_ms <= newest_ms) & (newest_ms < end_ms)
        if self.calendar is not None:
            return self._are_of_calendar(start_ms, end_ms, holds)
        if self.longest_ms is None or self.starts_every_ms is None or self.shifted:
            return holds
        if self.merges:
            return holds & (end_ms - newest_ms == self.longest_ms)
        on_grid = (start_ms - self.offset_ms) % self.starts_every_ms == 0
        length_ms = end_ms - start_ms
        return holds & on_grid & (length_ms <= self.longest_ms) & (length_ms % self._shortest_ms == 0)

    def assigner_before(self, earlier: Zone) -> CalendarWindows | CalendarCumulating:
        """Assigner of these windows by other transitions of the zone. Only for windows of a calendar."""
        assert self.calendar is not None, "only for windows of a calendar"
        within = None if self.within is None else replace(self.within, earlier=earlier)
        return replace(self, calendar=replace(self.calendar, earlier=earlier), within=within)._of_calendar

    @property
    def _of_calendar(self) -> CalendarWindows | CalendarCumulating:
        assert self.calendar is not None, "only for windows of a calendar"
        if self.within is not None:
            return CalendarCumulating(self.within, self.calendar)
        return CalendarWindows(self.calendar, self.intervals)

    def _are_of_calendar(self, start_ms: Any, end_ms: Any, holds: Any) -> Any:
        """Combines ``holds`` with a test of bounds; computes each pair of bounds in arrays once."""
        if isinstance(start_ms, int):
            return holds and TimeWindow(start_ms, end_ms) in self._of_calendar.assign(start_ms)
        pairs = list(zip(start_ms.tolist(), end_ms.tolist(), strict=True))
        fitting = {pair for pair in set(pairs) if TimeWindow(*pair) in self._of_calendar.assign(pair[0])}
        return holds & [pair in fitting for pair in pairs] if pairs else holds


def geometry_of(assigner: Assigner) -> Geometry:
    """Geometry of an assigner. For a user's class only `merges` is known, even if it inherits from a class of ours.

    >>> geometry_of(Session(gap_ms=5)) == Geometry(merges=True, ends=True, starts_every_ms=1, longest_ms=5)
    True
    """
    described = _DESCRIBED.get(type(assigner))
    return Geometry(merges=assigner.merges) if described is None else described(assigner)


def _dynamic(session: DynamicSession) -> Geometry:
    column = session.gap if isinstance(session.gap, str) else None
    return Geometry(merges=True, ends=True, starts_every_ms=1, gap_column=column)


_DESCRIBED: Mapping[type, Callable[[Any], Geometry]] = {
    Tumbling: lambda w: Geometry(ends=True, starts_every_ms=w.size_ms, offset_ms=w.offset_ms, longest_ms=w.size_ms),
    Sliding: lambda w: Geometry(ends=True, starts_every_ms=w.slide_ms, offset_ms=w.offset_ms, longest_ms=w.size_ms),
    Cumulating: lambda w: Geometry(
        ends=True, starts_every_ms=w.max_size_ms, offset_ms=w.offset_ms, longest_ms=w.max_size_ms, step_ms=w.step_ms
    ),
    CalendarWindows: lambda w: Geometry(
        ends=True, longest_ms=w.calendar.longest_ms(w.intervals), calendar=w.calendar, intervals=w.intervals
    ),
    CalendarCumulating: lambda w: Geometry(ends=True, longest_ms=w.whole.longest_ms(), calendar=w.step, within=w.whole),
    Staggered: lambda w: replace(geometry_of(w.of), shifted=True),
    Session: lambda w: Geometry(merges=True, ends=True, starts_every_ms=1, longest_ms=w.gap_ms),
    DynamicSession: _dynamic,
    Global: lambda w: Geometry(ends=False),
}
"""Geometry of each class, by its exact type."""
