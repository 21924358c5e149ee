"""Edges of calendars in the periods of a zone: `ClockEdges` of hours and minutes, `DateEdges` of days and longer.

Both number the intervals between edges without gaps. Times after the listed periods of a zone are moved by cycles of
400 years, because rules repeat.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from windowlib.model.time_zones.zones import CYCLE_MS, DAY_MS, REPEATS_FROM_MS, Zone, cycles, days_of
from windowlib.model.windows import MIN_TIME_MS


class Edges(Protocol):
    """Edges of a calendar, by the number of the interval that starts there."""

    def number(self, timestamp_ms: int) -> int:
        """Number of the interval that contains an instant."""

    def edge_ms(self, number: int) -> int:
        """Start of an interval."""


@dataclass(frozen=True)
class ClockEdges:
    """Edges of hours and minutes. In a period of constant offset they are multiples of ``every_ms`` in local time."""

    zone: Zone
    every_ms: int

    @cached_property
    def periods(self) -> tuple[list[int], list[int], list[bool]]:
        """Lists by period: the number of its first edge less one, the number less the multiple, and the skipped edge.

        The last is true if the start of the period is an edge because the clock skips one.
        """
        every_ms, offsets = self.every_ms, self.zone.offsets
        before, bases, skips = [MIN_TIME_MS], [0], [False]
        for index in range(1, len(offsets)):
            start_ms = self.zone.starts[index]
            ended_ms, begun_ms = start_ms + offsets[index - 1], start_ms + offsets[index]
            before.append(bases[-1] + (ended_ms - 1) // every_ms)
            skips.append(begun_ms % every_ms > 0 and begun_ms // every_ms > (ended_ms - 1) // every_ms)
            bases.append(before[-1] + skips[-1] - (begun_ms - 1) // every_ms)
        epoch = bisect_right(self.zone.starts, 0) - 1
        zero = bases[epoch] + offsets[epoch] // every_ms
        return [number - zero for number in before], [number - zero for number in bases], skips

    @cached_property
    def cycle(self) -> tuple[int, int]:
        """Number of the first interval of the cycle that repeats, and number of its intervals."""
        first = self.listed(REPEATS_FROM_MS)
        return first, self.listed(REPEATS_FROM_MS + CYCLE_MS) - first

    def listed(self, timestamp_ms: int) -> int:
        index = bisect_right(self.zone.starts, timestamp_ms) - 1
        local_ms = timestamp_ms + self.zone.offsets[index]
        return self.periods[1][index] + local_ms // self.every_ms

    def number(self, timestamp_ms: int) -> int:
        beyond = cycles(timestamp_ms)
        return self.listed(timestamp_ms - beyond * CYCLE_MS) + (beyond * self.cycle[1] if beyond else 0)

    def edge_ms(self, number: int) -> int:
        first, length = self.cycle
        beyond = max(0, (number - first) // length)
        before, bases, skips = self.periods
        listed = number - beyond * length
        index = bisect_left(before, listed) - 1
        if skips[index] and listed == before[index] + 1:
            return self.zone.starts[index] + beyond * CYCLE_MS
        return (listed - bases[index]) * self.every_ms - self.zone.offsets[index] + beyond * CYCLE_MS


@dataclass(frozen=True)
class Dates:
    """Dates at which intervals start, as days since 1970: the first day of interval n, and the interval of a day."""

    first: Callable[[int], int]
    interval: Callable[[int], int]


def dates_in_days(length: int, origin: int = 0) -> Dates:
    """Intervals of ``length`` days, from the day ``origin``."""
    return Dates(lambda n: origin + n * length, lambda day: (day - origin) // length)


def dates_in_months(length: int, origin: int = 0) -> Dates:
    """Intervals of ``length`` months, from the month ``origin``, counted from January 1970."""
    return Dates(lambda n: days_of(1970, 1 + origin + n * length), lambda day: (_month(day) - origin) // length)


def _month(day: int) -> int:
    """Months from January 1970 to the month of a day."""
    month = (day * 400 * 12) // 146_097
    while days_of(1970, 1 + month) > day:
        month -= 1
    while days_of(1970, 2 + month) <= day:
        month += 1
    return month


@dataclass(frozen=True)
class DateEdges:
    """Edges of days and longer. They follow the greatest local time so far, which the clock does not set back."""

    zone: Zone
    dates: Dates
    starts_at_ms: int

    @cached_property
    def reached(self) -> list[int]:
        """Local time that the clock had not reached before each period."""
        times = [MIN_TIME_MS]
        for start_ms, offset_ms in zip(self.zone.starts[1:], self.zone.offsets, strict=False):
            times.append(max(times[-1], start_ms + offset_ms))
        return times

    @cached_property
    def skipped(self) -> list[int]:
        """Dates, counted in intervals, without an interval: the clock skips them up to the next one or beyond."""
        skipped: list[int] = []
        for start_ms, offset_ms, reached_ms in zip(self.zone.starts, self.zone.offsets, self.reached, strict=True):
            if start_ms > MIN_TIME_MS and start_ms + offset_ms >= reached_ms:
                skipped += range(self.of_local(reached_ms - 1) + 1, self.of_local(start_ms + offset_ms))
        return skipped

    def of_local(self, local_ms: int) -> int:
        return self.dates.interval((local_ms - self.starts_at_ms) // DAY_MS)

    def number(self, timestamp_ms: int) -> int:
        beyond_ms = cycles(timestamp_ms) * CYCLE_MS
        index = bisect_right(self.zone.starts, timestamp_ms - beyond_ms) - 1
        local_ms = max(timestamp_ms - beyond_ms + self.zone.offsets[index], self.reached[index] - 1)
        date = self.of_local(local_ms + beyond_ms)
        return date - bisect_left(self.skipped, date) + bisect_left(self.skipped, 0)

    def edge_ms(self, number: int) -> int:
        date = number - bisect_left(self.skipped, 0)
        for skipped in self.skipped:
            date += skipped <= date
        local_ms = self.dates.first(date) * DAY_MS + self.starts_at_ms
        beyond_ms = cycles(local_ms) * CYCLE_MS
        index = bisect_right(self.reached, local_ms - beyond_ms) - 1
        return max(self.zone.starts[index], local_ms - beyond_ms - self.zone.offsets[index]) + beyond_ms
