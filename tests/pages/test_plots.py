"""Plots: round axes that hold every value, the usual band of headline values, and marks outside it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib.definition.toml.durations import UNITS
from windowlib.pages.counts.row_counts import NumericOutput
from windowlib.pages.days import Day, Days, ResultHour
from windowlib.pages.local_hours import hours_in
from windowlib.pages.plots.by_batch import plot
from windowlib.pages.plots.headline import headline_by_day, headline_by_hour
from windowlib.pages.plots.scale import ticks
from windowlib.pages.trends import Measure, Trend, TrendPoint
from windowlib.plans.grids.local_times import local_time
from windowlib.reruns.totals import Number


def days(values: Sequence[Number | None], open_days: int = 0) -> Days:
    """Days with a headline value each, oldest first; the newest `open_days` are not final."""
    first = date(2026, 3, 1)
    newest_first = [
        Day(first + timedelta(days=number), 0, 0, number < len(values) - open_days, 0, 1, [value], 1, [value], 0, 0, ())
        for number, value in enumerate(values)
    ][::-1]
    return Days("UTC", 0, 0, [NumericOutput("revenue", "sum")], newest_first)


@given(st.floats(1e-9, 1e15), st.booleans(), st.booleans())
def test_an_axis_has_few_round_numbers_at_equal_distances(highest: float, is_duration: bool, is_whole: bool) -> None:
    numbers = ticks(highest, is_duration=is_duration, is_whole=is_whole)
    steps = [high - low for low, high in pairwise(numbers)]
    assert 2 <= len(numbers) <= 4
    assert (numbers[0], numbers[-1] >= highest * (1 - 1e-8)) == (0, True)
    assert steps == pytest.approx([steps[0]] * len(steps), rel=1e-3)
    assert not is_whole or all(float(number).is_integer() for number in numbers)


def test_a_headline_value_has_its_usual_band() -> None:
    [shown] = headline_by_day(days([*[100, 102, 98, 101] * 3, 250, 40], open_days=1), as_of_ms=0)
    assert [bar.kind for bar in shown.plot.bars] == [*[""] * 12, "unusual", "flight"]
    assert (shown.is_unusual, shown.usual, shown.newest) == (True, "usual 85 to 116", "14 Mar 2026: 40, not final")
    [band] = shown.plot.bands
    for bar in shown.plot.bars[:12]:
        assert band.y < bar.y < band.y + band.height
    assert shown.plot.ticks == ["300", "200", "100", "0"]
    assert shown.plot.labels == ("1 Mar 2026", "14 Mar 2026")


def test_few_days_or_negative_values_have_no_band() -> None:
    few, negative = days([1.5] * 8), days([-1, *[5] * 12])
    assert [next(headline_by_day(shown, 0)).plot.bands for shown in (few, negative)] == [[], []]


def test_open_days_and_the_newest_day_do_not_move_the_band() -> None:
    usual = {next(headline_by_day(days([*[100, 110] * 5, newest, 1], open_days=1), 0)).usual for newest in (90, 9_000)}
    assert len(usual) == 1


def test_a_trend_has_times_units_and_hover_values() -> None:
    points = [TrendPoint(number, number * UNITS["d"], 600_000.0 * number) for number in range(1, 12)]
    shown = plot(Trend("Run time", Measure.DURATION, points, (0.0, 2_000_000.0), "time"), as_of_ms=0)
    assert shown.ticks == ["2h", "1h", "0 s"]
    assert shown.labels == ("2 Jan 00:00", "12 Jan 00:00")
    assert (shown.bars[0].title, shown.bars[-1].kind) == ("batch 1, 2 Jan 00:00: 10m", "unusual")


def by_hours(values: Sequence[Number | None], final: int, zone: str = "UTC", combine: str = "sum") -> Days:
    """Hours with a headline value each, oldest first, from midnight of 2026-03-20; the first `final` are final."""
    first = hours_in(zone).number(1_773_964_800_000)
    hours = [
        ResultHour(hours_in(zone).edge_ms(first + number), number < final, int(value is not None), [value])
        for number, value in enumerate(values)
    ]
    return Days(zone, 0, 0, [NumericOutput("revenue", combine)], hours=hours)


def test_the_band_of_an_hour_separates_day_and_night() -> None:
    night_and_day = [10.0] * 8 + [500.0] * 16
    values = [*night_and_day * 10, *[10.0] * 8, 500.0, 10.0, 90.0]
    [shown] = headline_by_hour(by_hours(values, len(values) - 1), as_of_ms=0)
    assert len(shown.plot.bars) == 72
    assert [bar.kind for bar in shown.plot.bars[-4:]] == ["", "", "unusual", "flight"]
    assert (shown.is_unusual, shown.usual) == (True, "usual 425 to 575")
    assert len(shown.plot.bands) == 7  # three nights, three days and what is left of a day
    assert {round(band.height, 1) for band in shown.plot.bands} == {1.0, 18.0}


def test_an_hour_without_results_is_drawn_for_sums_alone() -> None:
    values = [*[5.0] * 30, None, 5.0]
    [sums], [means] = (headline_by_hour(by_hours(values, 32, combine=combine), 0) for combine in ("sum", "mean"))
    assert (len(sums.plot.bars), len(means.plot.bars)) == (32, 31)
    assert sums.plot.bars[30].height == 0


def test_windows_of_whole_days_have_no_plot_by_hour() -> None:
    assert [*headline_by_hour(by_hours([1.0, *[None] * 23] * 14, 14 * 24), 0)] == []


def test_the_band_follows_the_local_clock() -> None:
    """On 29 March the clocks of Berlin skip an hour, so that the values move by an hour in UTC."""
    hours = by_hours([0.0] * 24 * 12, 0, "Europe/Berlin").hours
    values = [500.0 if local_time("Europe/Berlin", hour.start_ms).hour >= 8 else 10.0 for hour in hours]
    berlin, utc = (next(headline_by_hour(by_hours(values, len(values), zone), 0)) for zone in ("Europe/Berlin", "UTC"))
    assert "unusual" not in {bar.kind for bar in berlin.plot.bars}
    assert "unusual" in {bar.kind for bar in utc.plot.bars}
