"""Plots: round axes that hold every value, the usual band of headline values, and marks outside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib.definition.toml.durations import UNITS
from windowlib.pages.day_counts import Headline, Number
from windowlib.pages.days import Day, Days
from windowlib.pages.hours import Hour
from windowlib.pages.plots.by_batch import plot
from windowlib.pages.plots.by_day import headline_plots
from windowlib.pages.plots.by_hour import days as by_hour
from windowlib.pages.plots.by_hour import usual_hour
from windowlib.pages.plots.scale import ticks
from windowlib.pages.trends import Measure, Trend, TrendPoint


def days(values: Sequence[Number | None], open_days: int = 0) -> Days:
    """Days with a headline value each, oldest first; the newest `open_days` are not final."""
    first = date(2026, 3, 1)
    newest_first = [
        Day(first + timedelta(days=number), 0, 0, number < len(values) - open_days, 0, 1, [value], 1, [value], 0, 0, ())
        for number, value in enumerate(values)
    ][::-1]
    return Days("UTC", 0, 0, [Headline("revenue", "sum")], newest_first)


@given(st.floats(1e-9, 1e15), st.booleans(), st.booleans())
def test_an_axis_has_few_round_numbers_at_equal_distances(highest: float, is_duration: bool, is_whole: bool) -> None:
    numbers = ticks(highest, is_duration=is_duration, is_whole=is_whole)
    steps = [high - low for low, high in pairwise(numbers)]
    assert 2 <= len(numbers) <= 4
    assert (numbers[0], numbers[-1] >= highest * (1 - 1e-8)) == (0, True)
    assert steps == pytest.approx([steps[0]] * len(steps), rel=1e-3)
    assert not is_whole or all(float(number).is_integer() for number in numbers)


def test_a_headline_value_has_its_usual_band() -> None:
    [shown] = headline_plots(days([*[100, 102, 98, 101] * 3, 250, 40], open_days=1), as_of_ms=0)
    assert [bar.kind for bar in shown.plot.bars] == [*[""] * 12, "unusual", "flight"]
    assert (shown.is_unusual, shown.usual, shown.newest) == (True, "usual 85 to 116", "14 Mar 2026: 40, not final")
    assert shown.plot.band is not None
    band = shown.plot.band
    for bar in shown.plot.bars[:12]:
        assert band.y < bar.y < band.y + band.height
    assert shown.plot.ticks == ["300", "200", "100", "0"]
    assert shown.plot.labels == ("1 Mar 2026", "14 Mar 2026")


def test_few_days_or_negative_values_have_no_band() -> None:
    few, negative = days([1.5] * 8), days([-1, *[5] * 12])
    assert [next(headline_plots(shown, 0)).plot.band for shown in (few, negative)] == [None, None]


def test_open_days_and_the_newest_day_do_not_move_the_band() -> None:
    usual = {next(headline_plots(days([*[100, 110] * 5, newest, 1], open_days=1), 0)).usual for newest in (90, 9_000)}
    assert len(usual) == 1


def test_a_trend_has_times_units_and_hover_values() -> None:
    points = [TrendPoint(number, number * UNITS["d"], 600_000.0 * number) for number in range(1, 12)]
    shown = plot(Trend("Run time", Measure.DURATION, points, (0.0, 2_000_000.0), "time"), as_of_ms=0)
    assert shown.ticks == ["2h", "1h", "0 s"]
    assert shown.labels == ("2 Jan 00:00", "12 Jan 00:00")
    assert (shown.bars[0].title, shown.bars[-1].kind) == ("batch 1, 2 Jan 00:00: 10m", "unusual")


def test_hours_have_their_usual_band() -> None:
    hours = [Hour(number * UNITS["h"], 5, 10 + number % 3, 0, 0, is_gap=False) for number in range(24)]
    flight = replace(hours[-1], events=15, in_flight=3)
    assert usual_hour([*hours, flight]) == usual_hour(hours)
    [day] = by_hour([*hours[:-1], flight])
    assert day.band is not None
    assert day.band.width == day.width == 240
    assert 0 < day.band.y < day.band.y + day.band.height <= 44
    assert usual_hour(hours[:5]) is None
