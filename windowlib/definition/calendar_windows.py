"""Registry of calendar windows: forms of tumbling, sliding and cumulating windows, with `time_zone` in `[window]`."""

from __future__ import annotations

from typing import Any

from windowlib.definition.kinds import Kind, kind, kinds
from windowlib.definition.toml.calendars import (
    ZONE,
    divisor,
    length,
    minutes_of,
    starts_at,
    step_of,
    week_starts,
    year_starts,
)
from windowlib.model.assigners import CalendarCumulating, CalendarWindows
from windowlib.model.calendar import Calendar, CalendarLength
from windowlib.plans.kinds.aligned import Aligned


def _calendar(every: CalendarLength, time_zone: str, starts_at: str, week_starts: str, year_starts: str) -> Calendar:
    return Calendar(every, time_zone, 60_000 * minutes_of(starts_at), week_starts, year_starts)


def _tumbling(
    every: CalendarLength,
    time_zone: str,
    starts_at: str = "00:00",
    week_starts: str = "monday",
    year_starts: str = "january",
) -> CalendarWindows:
    """Intervals of ``every`` in the local time of ``time_zone``, side by side."""
    return CalendarWindows(_calendar(every, time_zone, starts_at, week_starts, year_starts))


def _sliding(
    size: CalendarLength,
    every: CalendarLength,
    time_zone: str,
    starts_at: str = "00:00",
    week_starts: str = "monday",
    year_starts: str = "january",
) -> CalendarWindows:
    """Windows of consecutive intervals of ``every`` in the local time of ``time_zone``."""
    return CalendarWindows(_calendar(every, time_zone, starts_at, week_starts, year_starts), size.times(every) or 1)


def _cumulating(
    max_size: CalendarLength,
    step: CalendarLength,
    time_zone: str,
    starts_at: str = "00:00",
    week_starts: str = "monday",
    year_starts: str = "january",
) -> CalendarCumulating:
    """Windows that grow by ``step`` in each interval of ``max_size`` in the local time of ``time_zone``."""
    steps_at = "00:00" if step.in_clock_time else starts_at
    whole, steps = (
        _calendar(every, time_zone, at, week_starts, year_starts)
        for every, at in ((max_size, starts_at), (step, steps_at))
    )
    return CalendarCumulating(whole, steps)


def _starts(length_name: str) -> dict[str, Any]:
    return {
        "starts_at": starts_at(length_name),
        "week_starts": week_starts(length_name),
        "year_starts": year_starts(length_name),
    }


_PLACE = "of the calendar in {time_zone}{starts_at}{week_starts}{year_starts}"
CALENDAR_WINDOWS: dict[str, Kind] = kinds(
    kind(
        "tumbling",
        CalendarWindows,
        f"tumbling, every {{every}} {_PLACE}",
        _tumbling,
        plan=lambda window: Aligned(),
        every=length("the length of a window"),
        time_zone=ZONE,
        **_starts("every"),
    ),
    kind(
        "sliding",
        CalendarWindows,
        f"sliding, {{size}} long, every {{every}} {_PLACE}",
        _sliding,
        plan=lambda window: Aligned(),
        size=length("the length of a window", of_intervals=True),
        every=divisor("size", "time between starts of windows, which divides size"),
        time_zone=ZONE,
        **_starts("every"),
    ),
    kind(
        "cumulating",
        CalendarCumulating,
        f"cumulating, up to {{max_size}} long, every {{step}} {_PLACE}",
        _cumulating,
        plan=lambda window: Aligned(),
        max_size=length("the length after which windows start again"),
        step=step_of("max_size", "time by which a window is longer than the one before"),
        time_zone=ZONE,
        **_starts("max_size"),
    ),
)
"""Forms of `WINDOWS` by the same names; the section has a key of `ONLY_OF_CALENDARS`."""

ONLY_OF_CALENDARS = ("time_zone", "every", "starts_at", "week_starts", "year_starts")
