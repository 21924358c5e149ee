"""Hours of the local clock of a zone. In autumn the clock shows an hour twice, and in spring it skips one."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from windowlib.definition.definition import Definition
from windowlib.model.calendar import Calendar, CalendarLength
from windowlib.model.geometry import geometry_of
from windowlib.model.rerun import TimeRange
from windowlib.plans.grids.local_times import local_time

DAY_MS = 86_400_000
CLOSE_MS = 31 * DAY_MS  # hours of a span up to this length are few
Ints = NDArray[np.int64]


def page_zone(definition: Definition) -> str:
    """Zone of the days and hours on the pages: that of the windows; otherwise that of `[pages] time_zone`."""
    calendar = geometry_of(definition.spec.assigner).calendar
    return definition.pages.time_zone if calendar is None else calendar.time_zone


@lru_cache(maxsize=64)
def hours_in(zone: str) -> Calendar:
    """Calendar of the hours of a zone."""
    return Calendar(CalendarLength(1, "hour"), zone)


def zone_terms(zone: str) -> str:
    """Name of a zone with a digest of its transitions, for counts that depend on them."""
    return f"{zone} {hours_in(zone).periods.digest}"


@lru_cache(maxsize=64)
def days_in(zone: str) -> Calendar:
    """Calendar of the days of a zone."""
    return Calendar(CalendarLength(1, "day"), zone)


def place_in_day(hour_ms: int, zone: str) -> tuple[int, int, int]:
    """Start of the day of an hour in ms, number of the day's hours before the hour, and number of all its hours.

    >>> after_ms = 1_792_893_600_000  # 2026-10-25 03:00 in Berlin, on a day of 25 hours
    >>> place_in_day(after_ms, "Europe/Berlin")[1:], place_in_day(after_ms, "UTC")[1:]
    ((4, 25), (2, 24))
    """
    days, hours = days_in(zone), hours_in(zone)
    start_ms, end_ms = days.start_ms(hour_ms), days.next_ms(hour_ms)
    first = hours.number(start_ms)
    return start_ms, hours.number(hour_ms) - first, hours.number(end_ms - 1) + 1 - first


def offset_words(moment: datetime, zone: str) -> str:
    """Offset of a local time, such as `` +02:00``; empty in UTC."""
    return "" if zone == "UTC" else f" {moment.isoformat()[19:]}"


def clock_words(hour_ms: int, zone: str) -> str:
    """Time of the clock at which an hour starts; with the offset unless the zone is UTC.

    >>> [clock_words(1_792_890_000_000 + hour * 3_600_000, "Europe/Berlin") for hour in (-1, 0)]
    ['02:00 +02:00', '02:00 +01:00']
    """
    start = local_time(zone, hour_ms)
    return f"{start:%H:%M}{offset_words(start, zone)}"


def edges_around(hours: Calendar, times_ms: Ints) -> Ints:
    """Starts of hours, in order, among them those of each hour that holds one of the times, and of the hour after it.

    >>> edges_around(hours_in("Asia/Kolkata"), np.array([0, 7_200_000])).tolist()
    [-1800000, 1800000, 5400000, 9000000]
    """
    low, high = int(times_ms.min()), int(times_ms.max()) + 1
    if high - low <= CLOSE_MS:
        return _edges_of(hours, TimeRange(low, high))
    days = np.unique(times_ms // DAY_MS)
    breaks = np.flatnonzero(np.diff(days) > 1)
    firsts, lasts = days[[0, *(breaks + 1)]], days[[*breaks, len(days) - 1]]
    spans = [(int(first) * DAY_MS, int(last + 1) * DAY_MS) for first, last in zip(firsts, lasts, strict=True)]
    edges = [_edges_of(hours, TimeRange(max(low, start_ms), min(high, end_ms))) for start_ms, end_ms in spans]
    return np.unique(np.concatenate(edges))


def _edges_of(hours: Calendar, span: TimeRange) -> Ints:
    """Starts of the hours that meet a span, and of the hour after them."""
    runs = hours.runs(span.from_ms, span.to_ms)
    ends = [run.first_ms for run in runs[1:]]
    parts = [np.arange(run.first_ms, end_ms, run.every_ms) for run, end_ms in zip(runs, ends, strict=False)]
    edges = np.concatenate([*parts, np.arange(runs[-1].first_ms, span.to_ms + runs[-1].every_ms, runs[-1].every_ms)])
    return edges[: np.searchsorted(edges, span.to_ms, side="left") + 1]
