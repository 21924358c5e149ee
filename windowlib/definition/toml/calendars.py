"""Values of calendar windows in TOML: lengths such as `"1 day"`, time zones, and times such as `"04:00"`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, ValidationInfo

from windowlib.definition.kinds import Parameter
from windowlib.definition.mistakes import nearest
from windowlib.model.calendar import CLOCK_UNITS, DAY_UNITS, MONTH_UNITS, MONTHS, WEEKDAYS, Calendar, CalendarLength
from windowlib.model.errors import InvalidSpec
from windowlib.model.time_zones.zones import zone_names

UNITS = (*CLOCK_UNITS, *DAY_UNITS, *MONTH_UNITS)
LENGTHS = (
    'a length of the calendar, such as "15 minutes", "1 hour", "1 day", "2 weeks", "1 month", "1 quarter", "1 year"'
)
_LENGTH = re.compile(rf"([0-9]{{1,6}}) ({'|'.join(UNITS)})(s?)")
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


def parse_length(text: object) -> CalendarLength:
    """Parses a calendar length. Raises ValueError for other values, such as the fixed length ``1d``.

    >>> parse_length("2 weeks"), str(parse_length("60 minutes"))
    (CalendarLength(count=2, unit='week'), '1 hour')
    """
    if isinstance(text, CalendarLength):
        return text
    match = _LENGTH.fullmatch(text) if isinstance(text, str) else None
    if not match or (int(match[1]) == 1) == bool(match[3]):
        raise ValueError("not a length of the calendar, and with time_zone every length is one")
    try:
        return CalendarLength(int(match[1]), match[2]).in_largest_unit()
    except InvalidSpec as error:
        raise ValueError(str(error)) from error


def minutes_of(starts_at: str) -> int:
    """Minutes after 00:00 of a time of day, such as ``04:00``."""
    hours, _, minutes = starts_at.partition(":")
    return 60 * int(hours) + int(minutes)


def _zone(name: str) -> str:
    if name not in zone_names():
        proposal = nearest(name, zone_names(), 0.8)
        raise ValueError(f"is no time zone of the package tzdata{proposal}")
    return name


Length = Annotated[CalendarLength, BeforeValidator(parse_length), PlainSerializer(str)]
PinnedZone = Annotated[str, AfterValidator(_zone)]  # a zone of the package tzdata
ZONE = Parameter(
    PinnedZone,
    'the time zone, such as "Europe/Berlin"; all lengths of the window are calendar lengths in it',
)


def length(text: str, *, of_intervals: bool = False) -> Parameter:
    """Parameter for a length. If it only counts intervals of another length, 14 days are 2 weeks."""

    def check(value: CalendarLength) -> CalendarLength:
        if not of_intervals:
            value.check_divides_day()
        return value.in_largest_unit(weeks=of_intervals)

    return Parameter(Annotated[Length, AfterValidator(check)], f"{text}, {LENGTHS}")


def divisor(whole: str, text: str) -> Parameter:
    """Parameter for a length that divides ``whole``, an earlier parameter, into a whole number of intervals."""

    def check(value: CalendarLength, info: ValidationInfo) -> CalendarLength:
        value.check_divides_day()
        divided = info.data.get(whole)
        if divided is not None and divided.times(value) is None:
            needs = "both in days or weeks, in months, quarters or years, or in hours or minutes"
            raise ValueError(f"does not divide {whole} ({divided}), which needs a whole number of them, {needs}")
        return value

    return Parameter(Annotated[Length, AfterValidator(check)], f"{text}, {LENGTHS}")


def step_of(whole: str, text: str) -> Parameter:
    """Parameter for a length whose edges include those of ``whole``, an earlier parameter."""

    def check(step: CalendarLength, info: ValidationInfo) -> CalendarLength:
        coarse = info.data.get(whole)
        if coarse is not None and not Calendar(step, "UTC").holds_edges_of(Calendar(coarse, "UTC")):
            raise ValueError(f"has no edges at all edges of {whole} ({coarse}); need a length that divides it")
        return step

    return Parameter(Annotated[Length, AfterValidator(check)], f"{text}, {LENGTHS}")


def starts_at(length_name: str) -> Parameter:
    """Parameter for the time at which days start; ``length_name`` is the parameter with the length."""

    def check(text: str, info: ValidationInfo) -> str:
        if not _TIME.fullmatch(text):
            raise ValueError("is no time of day")
        every, step = info.data.get(length_name), info.data.get("step")
        if every is not None and every.in_clock_time:
            raise ValueError(f"has no meaning for {length_name} = {every}, which counts from 00:00; leave it out")
        if step is not None and step.in_clock_time and 60_000 * minutes_of(text) % step.smallest:
            raise ValueError(f"is no edge of step ({step}); need a multiple of it")
        return text

    text = 'the local time at which days start, such as "04:00"'
    shown = ", starting at {}".format
    return Parameter(Annotated[str, AfterValidator(check)], text, lambda at: "" if at == "00:00" else shown(at))


def _named(length_name: str, names: tuple[str, ...], has_meaning: Any, needs: str, text: str, words: str) -> Parameter:
    def check(name: str, info: ValidationInfo) -> str:
        if (every := info.data.get(length_name)) is not None and not has_meaning(every):
            raise ValueError(f"has no meaning for {length_name} = {every}, which is not in {needs}; leave it out")
        return name

    return Parameter(
        Annotated[Literal[names], AfterValidator(check)],
        text,
        lambda name: "" if name == names[0] else words.format(name.capitalize()),
    )


def week_starts(length_name: str) -> Parameter:
    text = 'the first day of a week, such as "sunday"'
    return _named(length_name, WEEKDAYS, lambda every: every.unit == "week", "weeks", text, ", weeks from {}")


def year_starts(length_name: str) -> Parameter:
    text = 'the month from which months, quarters and years count, such as "april"'
    return _named(
        length_name, MONTHS, lambda every: every.in_months, "months, quarters or years", text, ", years from {}"
    )
