"""Calendar windows in TOML and in Python: what `time_zone` means, and the mistakes around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from windowlib.definition.define import define
from windowlib.definition.definition import Definition, InvalidDefinition, definition_of
from windowlib.definition.toml.windows import windows_in_words
from windowlib.inspection.plan import explain
from windowlib.model.assigners import Assigner, CalendarCumulating, CalendarWindows, Tumbling
from windowlib.model.calendar import Calendar, CalendarLength

SOURCE = {"format": "parquet", "path": "in", "key": ["user"], "timestamp": "at"}
WATERMARK = {"out_of_orderness": "1m"}
AGGREGATES = {"events": "count(*)"}
DAY, WEEK, MONTH, HOUR = (CalendarLength(1, unit) for unit in ("day", "week", "month", "hour"))
BERLIN = {"time_zone": "Europe/Berlin"}


def made(**window: Any) -> Definition:
    contents = {"name": "clicks", "source": SOURCE, "watermark": WATERMARK, "aggregates": AGGREGATES}
    return definition_of({**contents, "window": window}, Path("clicks.toml"))


WINDOWS: list[tuple[dict[str, Any], Assigner, str]] = [
    (
        {"type": "tumbling", "every": "1 day", "starts_at": "04:00"},
        CalendarWindows(Calendar(DAY, "Europe/Berlin", 14_400_000)),
        "tumbling, every 1 day of the calendar in Europe/Berlin, starting at 04:00",
    ),
    (
        {"type": "sliding", "size": "4 weeks", "every": "1 week", "week_starts": "sunday"},
        CalendarWindows(Calendar(WEEK, "Europe/Berlin", week_starts="sunday"), 4),
        "sliding, 4 weeks long, every 1 week of the calendar in Europe/Berlin, weeks from Sunday",
    ),
    (
        {"type": "sliding", "size": "105 minutes", "every": "15 minutes"},
        CalendarWindows(Calendar(CalendarLength(15, "minute"), "Europe/Berlin"), 7),
        "sliding, 105 minutes long, every 15 minutes of the calendar in Europe/Berlin",
    ),
    (
        {"type": "cumulating", "max_size": "1 day", "step": "1 hour", "starts_at": "04:00"},
        CalendarCumulating(Calendar(DAY, "Europe/Berlin", 14_400_000), Calendar(HOUR, "Europe/Berlin")),
        "cumulating, up to 1 day long, every 1 hour of the calendar in Europe/Berlin, starting at 04:00",
    ),
    (
        {"type": "tumbling", "every": "1 year", "year_starts": "april"},
        CalendarWindows(Calendar(CalendarLength(1, "year"), "Europe/Berlin", year_starts="april")),
        "tumbling, every 1 year of the calendar in Europe/Berlin, years from April",
    ),
]


@pytest.mark.parametrize(("window", "assigner", "words"), WINDOWS)
def test_a_zone_makes_all_lengths_of_a_window_calendar_lengths(
    window: dict[str, Any], assigner: Assigner, words: str
) -> None:
    definition = made(**window, **BERLIN)
    assert definition.spec.assigner == assigner
    assert windows_in_words(definition.window) == words


@pytest.mark.parametrize(("window", "assigner", "words"), WINDOWS)
def test_python_gives_the_definition_that_toml_gives(window: dict[str, Any], assigner: Assigner, words: str) -> None:
    defined = define("clicks", source=SOURCE, watermark=WATERMARK, assigner=assigner, aggregates=AGGREGATES)
    assert defined.fingerprint == made(**window, **BERLIN).fingerprint
    assert defined.spec.assigner == assigner


def test_another_zone_or_start_is_another_definition() -> None:
    days: list[dict[str, Any]] = [
        {"every": "1 day", **BERLIN},
        {"every": "1 day", "time_zone": "Asia/Tokyo"},
        {"every": "1 day", **BERLIN, "starts_at": "04:00"},
        {"size": "1d"},
    ]
    assert len({made(type="tumbling", **day).fingerprint for day in days}) == 4
    assert made(type="tumbling", size="1d").spec.assigner == Tumbling(86_400_000)


@pytest.mark.parametrize(
    ("window", "mistake"),
    [
        (
            {"every": "1 day", "time_zone": "Europe/Berlim"},
            "window.time_zone: is no time zone of the package tzdata; did you mean Europe/Berlin?, given"
            ' "Europe/Berlim"; allowed: the time zone, such as "Europe/Berlin"',
        ),
        ({"every": "1 day"}, 'window.time_zone: missing; allowed: the time zone, such as "Europe/Berlin"'),
        ({"size": "1 day"}, 'window.size: not a duration but a calendar length, which needs time_zone, given "1 day"'),
        (
            {"every": "1d", **BERLIN},
            "window.every: not a length of the calendar, and with time_zone every length is one, given"
            ' "1d"; allowed: the length of a window, a length of the calendar, such as "15 minutes"',
        ),
        ({"size": "1d", **BERLIN}, "window.every: missing; allowed: the length of a window, a length of the calendar"),
        ({"every": "2 day", **BERLIN}, "window.every: not a length of the calendar, and with time_zone"),
        ({"every": "7 minutes", **BERLIN}, "window.every: 7 minutes does not divide a day: need a length such as"),
        (
            {"type": "sliding", "size": "14 minutes", "every": "7 minutes", **BERLIN},
            "window.every: 7 minutes does not divide a day: need a length such as",
        ),
        (
            {"type": "cumulating", "max_size": "5 hours", "step": "1 hour", **BERLIN},
            "window.max_size: 5 hours does not divide a day: need a length such as",
        ),
        (
            {"type": "cumulating", "max_size": "6 hours", "step": "7 minutes", **BERLIN},
            "window.step: 7 minutes does not divide a day: need a length such as",
        ),
        (
            {"every": "1 hour", **BERLIN, "starts_at": "04:00"},
            "window.starts_at: has no meaning for every = 1 hour, which counts from 00:00; leave it out",
        ),
        ({"every": "1 day", **BERLIN, "starts_at": "4"}, 'window.starts_at: is no time of day, given "4"; allowed'),
        (
            {"every": "1 day", **BERLIN, "week_starts": "sunday"},
            "window.week_starts: has no meaning for every = 1 day, which is not in weeks; leave it out",
        ),
        (
            {"every": "1 week", **BERLIN, "year_starts": "april"},
            "window.year_starts: has no meaning for every = 1 week, which is not in months, quarters or years",
        ),
        ({"every": "1 week", **BERLIN, "week_starts": "Sunday"}, 'window.week_starts: given "Sunday"; did you mean'),
        (
            {"type": "sliding", "size": "1 month", "every": "1 day", **BERLIN},
            "window.every: does not divide size (1 month), which needs a whole number of them, both in days or weeks",
        ),
        (
            {"type": "sliding", "size": "3 days", "every": "2 days", **BERLIN},
            "window.every: does not divide size (3 days)",
        ),
        (
            {"type": "cumulating", "max_size": "1 month", "step": "1 week", **BERLIN},
            "window.step: has no edges at all edges of max_size (1 month); need a length that divides it",
        ),
        (
            {"type": "cumulating", "max_size": "1 day", "step": "2 hours", "starts_at": "03:00", **BERLIN},
            "window.starts_at: is no edge of step (2 hours); need a multiple of it",
        ),
        (
            {"type": "sliding", "size": "1 day", "every": "1 minute", **BERLIN},
            "window.every: does not divide size (1 day)",
        ),
        (
            {"type": "session", "gap": "1m", **BERLIN},
            'window.time_zone: unknown key, given "Europe/Berlin"; allowed: type, gap',
        ),
    ],
)
def test_mistakes_of_calendar_windows(window: dict[str, Any], mistake: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        made(**{"type": "tumbling", **window})
    assert any(line.startswith(f"clicks.toml: {mistake}") for line in str(raised.value).splitlines()), raised.value


def test_the_plan_says_which_kind_of_window_it_is() -> None:
    calendar, fixed = (
        str(explain(made(type="tumbling", **day))) for day in ({"every": "1 day", **BERLIN}, {"size": "1d"})
    )
    assert "tumbling, every 1 day of the calendar in Europe/Berlin" in calendar
    assert "tumbling, 1d long" in fixed
