"""Calendars: consecutive intervals ``[edge, next edge)`` of the local time of a zone, such as days or months.

Edges are the first milliseconds of intervals:

- Days and longer: the edge of date D is the first instant at which the local clock is at or past D + ``starts_at``.
- Hours and minutes: each instant at which the local clock shows a multiple of ``every`` since 00:00.
- If the clock skips the time of an edge, the transition is the edge. Equal edges are one.

So an event belongs to the interval between the edges around it, even if the clock was set back to another date.

Intervals are numbered without gaps. Hours and minutes count from the interval at 1970-01-01 00:00 UTC, longer units
from the date from which their multiples count. The rules are our decision: Flink SQL loses rows at such changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from windowlib.model.errors import InvalidSpec
from windowlib.model.time_zones.edges import ClockEdges, DateEdges, Dates, Edges, dates_in_days, dates_in_months
from windowlib.model.time_zones.zones import DAY_MS, Zone, days_of, greatest_drop_ms, most_transitions, zone

CLOCK_UNITS = {"minute": 60_000, "hour": 3_600_000}
DAY_UNITS = {"day": 1, "week": 7}
MONTH_UNITS = {"month": 1, "quarter": 3, "year": 12}
WEEKDAYS = "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)


@dataclass(frozen=True, slots=True)
class CalendarLength:
    """A number of units of a calendar.

    >>> str(CalendarLength(2, "week")), str(CalendarLength(1, "day"))
    ('2 weeks', '1 day')
    """

    count: int
    unit: str

    def __post_init__(self) -> None:
        if self.count < 1 or self.unit not in {**CLOCK_UNITS, **DAY_UNITS, **MONTH_UNITS}:
            raise InvalidSpec(f"{self.count} {self.unit} is no length of a calendar: need 1 or more of a unit")

    def check_divides_day(self) -> None:
        """Raises `InvalidSpec` for hours or minutes that do not divide a day, and so cannot be a calendar's interval.

        A sliding window may be as long: it is several intervals.
        """
        if self.in_clock_time and DAY_MS % self.smallest:
            raise InvalidSpec(f"{self} does not divide a day: need a length such as 15 minutes, 1 hour or 6 hours")

    def __str__(self) -> str:
        return f"{self.count} {self.unit}" + ("s" if self.count > 1 else "")

    @property
    def in_clock_time(self) -> bool:
        """True for hours and minutes, whose edges are times of the clock, not dates."""
        return self.unit in CLOCK_UNITS

    @property
    def in_months(self) -> bool:
        """True for months, quarters and years."""
        return self.unit in MONTH_UNITS

    @property
    def smallest(self) -> int:
        """The length in ms of the clock, in days, or in months."""
        return self.count * {**CLOCK_UNITS, **DAY_UNITS, **MONTH_UNITS}[self.unit]

    def in_largest_unit(self, *, weeks: bool = False) -> CalendarLength:
        """The same length in the largest unit. Days become weeks only on request, as intervals of both differ.

        >>> [str(CalendarLength(*length).in_largest_unit()) for length in ((60, "minute"), (6, "month"), (7, "day"))]
        ['1 hour', '2 quarters', '7 days']
        """
        units = next(units for units in (CLOCK_UNITS, DAY_UNITS, MONTH_UNITS) if self.unit in units)
        if units is DAY_UNITS and not weeks:
            return self
        unit = max((unit for unit in units if self.smallest % units[unit] == 0), key=units.__getitem__)
        return CalendarLength(self.smallest // units[unit], unit)

    def times(self, other: CalendarLength) -> int | None:
        """Number of the other length in this one; None if it is not a whole number or the units do not convert.

        >>> week, day, hour = (CalendarLength(1, unit) for unit in ("week", "day", "hour"))
        >>> [week.times(other) for other in (day, CalendarLength(2, "day"), hour)]
        [7, None, None]
        """
        kinds = (self.in_clock_time, self.in_months), (other.in_clock_time, other.in_months)
        number, rest = divmod(self.smallest, other.smallest)
        return number if kinds[0] == kinds[1] and not rest else None


@dataclass(frozen=True, slots=True)
class EdgeRun:
    """Equally spaced edges ``first_ms + k * every_ms`` for k >= 0, before the first edge of the next run.

    ``number`` is that of the interval that starts at ``first_ms``.
    """

    first_ms: int
    number: int
    every_ms: int


@dataclass(frozen=True, slots=True)
class Calendar:
    """Intervals of ``every`` in the local time of a zone. Dates start at ``starts_at_ms`` after 00:00.

    Multiples count from 1970: days from 1 January, weeks from the last ``week_starts`` not after it, months from
    ``year_starts``. ``earlier`` has other transitions of the zone than the installed `tzdata`.

    >>> days = Calendar(CalendarLength(1, "day"), "Europe/Berlin")
    >>> noon_ms = 1_774_778_400_000  # 2026-03-29 12:00 in Berlin, a day of 23 hours
    >>> (days.next_ms(noon_ms) - days.start_ms(noon_ms)) // 3_600_000
    23
    """

    every: CalendarLength
    time_zone: str
    starts_at_ms: int = 0
    week_starts: str = "monday"
    year_starts: str = "january"
    earlier: Zone | None = None

    def __post_init__(self) -> None:
        self.every.check_divides_day()
        zone(self.time_zone)
        if not 0 <= self.starts_at_ms < DAY_MS or (self.starts_at_ms and self.every.in_clock_time):
            raise InvalidSpec(f"{self} is not valid: need 0 <= starts_at_ms < a day, and 0 for hours and minutes")
        if self.week_starts not in WEEKDAYS or self.year_starts not in MONTHS:
            raise InvalidSpec(f"{self} is not valid: need English names of a weekday and of a month")

    @property
    def periods(self) -> Zone:
        """The zone with its transitions."""
        return self.earlier or zone(self.time_zone)

    def number(self, timestamp_ms: int) -> int:
        """Number of the interval that contains an instant."""
        return _edges(self).number(timestamp_ms)

    def edge_ms(self, number: int) -> int:
        """Start of the interval with this number."""
        return _edges(self).edge_ms(number)

    def start_ms(self, timestamp_ms: int) -> int:
        """Start of the interval that contains an instant."""
        return self.edge_ms(self.number(timestamp_ms))

    def next_ms(self, timestamp_ms: int) -> int:
        """End of the interval that contains an instant."""
        return self.edge_ms(self.number(timestamp_ms) + 1)

    def runs(self, from_ms: int, to_ms: int) -> list[EdgeRun]:
        """Edges of all intervals that meet ``[from_ms, to_ms)``, with the edge that ends the last interval.

        >>> days = Calendar(CalendarLength(1, "day"), "Europe/Berlin")
        >>> [run.every_ms // 3_600_000 for run in days.runs(1_774_600_000_000, 1_775_000_000_000)]
        [24, 24]
        """
        return list(_runs(self, from_ms, to_ms))

    def longest_ms(self, intervals: int = 1) -> int:
        """Upper bound of the length of consecutive intervals, at all times."""
        return _longest_ms(self, intervals)

    def most_steps(self, step: Calendar) -> int:
        """Greatest number of intervals of a finer calendar in an interval of this one."""
        return _most_steps(self, step)

    def holds_edges_of(self, whole: Calendar) -> bool:
        """Tests if every edge of a coarser calendar is an edge of this calendar.

        >>> lengths = CalendarLength(1, "day"), CalendarLength(1, "month"), CalendarLength(1, "week")
        >>> day, month, week = (Calendar(length, "Asia/Tokyo") for length in lengths)
        >>> day.holds_edges_of(month), day.holds_edges_of(week), week.holds_edges_of(month)
        (True, True, False)
        """
        if self.time_zone != whole.time_zone:
            return False
        if self.every.in_clock_time:
            return whole.starts_at_ms % self.every.smallest == 0 and (
                not whole.every.in_clock_time or whole.every.times(self.every) is not None
            )
        if whole.every.in_clock_time or self.starts_at_ms != whole.starts_at_ms:
            return False
        if whole.every.in_months and self.every.smallest == 1:
            return True
        if self.every.in_months:
            distance = MONTHS.index(self.year_starts) - MONTHS.index(whole.year_starts)
        else:
            distance = _dates(self).first(0) - _dates(whole).first(0)
        return whole.every.times(self.every) is not None and distance % self.every.smallest == 0


@cache
def _dates(calendar: Calendar) -> Dates:
    length = calendar.every.smallest
    if calendar.every.in_months:
        return dates_in_months(length, MONTHS.index(calendar.year_starts))
    origin = -((3 - WEEKDAYS.index(calendar.week_starts)) % 7)  # 1970-01-01 was a Thursday
    return dates_in_days(length, origin if calendar.every.unit == "week" else 0)


@cache
def _edges(calendar: Calendar) -> Edges:
    periods = calendar.periods
    if calendar.every.in_clock_time:
        return ClockEdges(periods, calendar.every.smallest)
    return DateEdges(periods, _dates(calendar), calendar.starts_at_ms)


def _runs(calendar: Calendar, from_ms: int, to_ms: int) -> Iterator[EdgeRun]:
    number, last = calendar.number(from_ms), calendar.number(to_ms - 1) + 1
    first_ms, last_ms = calendar.edge_ms(number), calendar.edge_ms(last)
    changes = [change_ms for change_ms, _ in calendar.periods.transitions(first_ms + 1, last_ms)]
    while number <= last:
        first_ms, following = calendar.edge_ms(number), number + 1
        every_ms = calendar.edge_ms(following) - first_ms
        if not calendar.every.in_months:
            changes = [change_ms for change_ms in changes if change_ms > first_ms]
            beyond = calendar.number(changes[0] - 1) + 1 if changes else last + 1
            if calendar.edge_ms(beyond - 1) == first_ms + (beyond - 1 - number) * every_ms:
                is_longer = calendar.edge_ms(beyond) > first_ms + (beyond - number) * every_ms
                following = max(following, beyond - is_longer)
        yield EdgeRun(first_ms, number, every_ms)
        number = following


def _greatest_nominal_ms(length: CalendarLength, intervals: int) -> int:
    """Greatest length of consecutive intervals in a zone without transitions."""
    smallest = intervals * length.smallest
    if length.in_clock_time:
        return smallest
    if not length.in_months:
        return smallest * DAY_MS
    return max(days_of(1970, month + smallest) - days_of(1970, month) for month in range(400 * 12)) * DAY_MS


@cache
def _longest_ms(calendar: Calendar, intervals: int) -> int:
    periods, nominal_ms = calendar.periods, _greatest_nominal_ms(calendar.every, intervals)
    if not calendar.every.in_clock_time:  # local time lost between its edges makes an interval longer
        return nominal_ms + greatest_drop_ms(periods, nominal_ms + 2 * DAY_MS)
    every_ms = calendar.every.smallest
    around = {calendar.number(start_ms + after_ms) for start_ms in periods.starts[1:] for after_ms in (-1, 0)}
    longest_ms = max((calendar.edge_ms(number + 1) - calendar.edge_ms(number) for number in around), default=every_ms)
    changes = min(intervals, most_transitions(periods, intervals * max(every_ms, longest_ms)))
    return nominal_ms + changes * max(0, longest_ms - every_ms)


@cache
def _most_steps(whole: Calendar, step: Calendar) -> int:
    longest_ms = _greatest_nominal_ms(whole.every, 1)
    if step.every.in_months:
        return whole.every.times(step.every) or 1
    if not step.every.in_clock_time:
        return longest_ms // (step.every.smallest * DAY_MS)
    starts = whole.periods.starts[1:]
    around = {whole.number(start_ms + after_ms) for start_ms in starts for after_ms in (-1, 0)}
    steps = (step.number(whole.edge_ms(number + 1)) - step.number(whole.edge_ms(number)) for number in around)
    return max([longest_ms // step.every.smallest, *steps])
