"""Windows of calendars around changes of the clock, and times around these changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from hypothesis import strategies as st

from windowlib.model.assigners import CalendarCumulating, CalendarWindows
from windowlib.model.calendar import Calendar, CalendarLength

CHANGES = {
    "Europe/Berlin": (datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)),
    "Australia/Lord_Howe": (datetime(2026, 4, 4, 15, tzinfo=UTC),),  # by half an hour
    "Pacific/Apia": (datetime(2011, 12, 30, 10, tzinfo=UTC),),  # a date is skipped
    "America/St_Johns": (datetime(2006, 10, 29, 2, 31, tzinfo=UTC),),  # from 00:01 to the day before
    "Asia/Kathmandu": (datetime(1985, 12, 31, 18, 30, tzinfo=UTC),),  # by a quarter of an hour
    "UTC": (datetime(1969, 12, 31, tzinfo=UTC),),
}
HOUR_MS = 3_600_000
MONTH_MS = 31 * 24 * HOUR_MS
OFTEN = ("minute", 15), ("hour", 1), ("hour", 6)
DAILY = ("day", 1), ("day", 2), ("week", 1), ("week", 2)
YEARLY = ("quarter", "year")
RARELY = ("month", 1), ("quarter", 1), ("year", 1)
STEPS = (("minute", 15), ("hour", 2)), (("hour", 1), ("day", 1)), (("day", 1), ("week", 1)), (("day", 1), ("month", 1))
LENGTHS_MS = {"minute": HOUR_MS // 60, "hour": HOUR_MS, "day": 24 * HOUR_MS, "week": 168 * HOUR_MS, "month": MONTH_MS}
LENGTHS_MS |= {"quarter": 3 * MONTH_MS, "year": 12 * MONTH_MS}


@dataclass(frozen=True)
class CalendarCase:
    """Windows, the time of a change of the clock, and a unit of time in proportion to the windows."""

    assigner: CalendarWindows | CalendarCumulating
    change_ms: int
    unit_ms: int

    def time_ms(self, units: int, beside_ms: int = 0) -> int:
        """Time at a number of units after the change."""
        return self.change_ms + units * self.unit_ms + beside_ms


@st.composite
def calendar_cases(draw: st.DrawFn) -> CalendarCase:
    """Tumbling, sliding and cumulating windows of a calendar."""
    zone = draw(st.sampled_from(list(CHANGES)))
    change_ms = int(draw(st.sampled_from(CHANGES[zone])).timestamp()) * 1000
    starts_at_ms = draw(st.sampled_from([0, 0, 4 * HOUR_MS]))
    week_starts = draw(st.sampled_from(["monday", "sunday"]))

    def calendar(unit: str, count: int, *, starts: bool = True) -> Calendar:
        clock = unit in ("minute", "hour") or not starts
        week, year = week_starts if unit == "week" else "monday", "april" if unit in YEARLY else "january"
        return Calendar(CalendarLength(count, unit), zone, 0 if clock else starts_at_ms, week, year)

    if draw(st.integers(0, 2)) == 0:
        (unit, count), whole = draw(st.sampled_from(STEPS))
        step = calendar(unit, count)
        in_clock_time = unit in ("minute", "hour")
        windows: CalendarWindows | CalendarCumulating = CalendarCumulating(
            calendar(whole[0], whole[1], starts=not in_clock_time), step
        )
    else:
        unit, count = draw(st.sampled_from([*OFTEN, *DAILY, *RARELY]))
        windows = CalendarWindows(calendar(unit, count), draw(st.sampled_from([1, 1, 2, 3, 7])))
    return CalendarCase(windows, change_ms, count * LENGTHS_MS[unit] // draw(st.sampled_from([2, 6])))
