"""Plots of headline values by day and by hour, with their usual band."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from windowlib.pages.days import Days, ResultHour
from windowlib.pages.local_hours import days_in
from windowlib.pages.plots.bars import BarValue, Plot, bar_plot, highest_of
from windowlib.pages.plots.scale import ticks
from windowlib.pages.words import amount, day_words, moment
from windowlib.plans.grids.local_times import local_time
from windowlib.quality.bands import usual
from windowlib.reruns.totals import Number

HOURS = 72  # newest hours that are drawn


@dataclass(frozen=True, slots=True)
class HeadlinePlot:
    """A headline value by day or hour, the oldest on the left.

    `words` describe the plot, `newest` is the newest value. `usual` is the usual range of the newest final value in
    words; empty if there is none. `is_unusual`: the newest final value is outside.
    """

    title: str
    plot: Plot
    words: str
    newest: str
    usual: str
    is_unusual: bool


@dataclass(frozen=True, slots=True)
class HeadlinePoint:
    """A value of a day or an hour, with its usual range; None if there are too few values before it."""

    time: str
    shown: str
    value: float
    is_final: bool
    usual: tuple[float, float] | None

    @property
    def is_outside(self) -> bool:
        return self.usual is not None and not self.usual[0] <= self.value <= self.usual[1]

    @property
    def text(self) -> str:
        return f"{self.time}: {self.shown}{'' if self.is_final else ', not final'}"


def headline_by_day(days: Days, as_of_ms: int) -> Iterator[HeadlinePlot]:
    """Yields a plot for each headline value with at least two days. Values below 0 are not drawn.

    The usual range is derived from the final days before the newest.
    """
    for place, output in enumerate(days.headline):
        shown = [
            (day, number, value) for day in days.days[::-1] if (value := drawn(number := day.values[place])) is not None
        ]
        band = usual_range([value for day, _, value in shown if day.is_final][:-1])
        points = [
            HeadlinePoint(day_words(day.day, as_of_ms), amount(number), value, day.is_final, band)
            for day, number, value in shown
        ]
        yield from _plots(output.name, "day", points)


def headline_by_hour(days: Days, as_of_ms: int) -> Iterator[HeadlinePlot]:
    """Yields a plot of the newest hours for each headline value. Yields nothing if windows end at one hour of each day.

    The usual range of an hour is derived from the final hours with the same time of the clock, a day or more before
    the newest. A sum without results is 0.
    """
    per_day = Counter(days_in(days.zone).start_ms(hour.start_ms) for hour in days.hours if hour.results)
    if max(per_day.values(), default=0) < 2:
        return
    clock = {hour.start_ms: local_time(days.zone, hour.start_ms).hour for hour in days.hours}
    times = {hour.start_ms: moment(hour.start_ms, as_of_ms, days.zone) for hour in days.hours[-HOURS:]}
    newest_final = max((place for place, hour in enumerate(days.hours) if hour.is_final), default=0)
    for place, output in enumerate(days.headline):
        numbers = [_number(hour, place, output.combine) for hour in days.hours]
        before: dict[int, list[float]] = {}
        for hour, number in zip(days.hours[: max(0, newest_final - 23)], numbers, strict=False):
            if (value := drawn(number)) is not None:
                before.setdefault(clock[hour.start_ms], []).append(value)
        bands = {hour: usual_range(values) for hour, values in before.items()}
        points = [
            HeadlinePoint(
                times[hour.start_ms],
                amount(number),
                value,
                hour.is_final,
                bands.get(clock[hour.start_ms]),
            )
            for hour, number in [*zip(days.hours, numbers, strict=True)][-HOURS:]
            if (value := drawn(number)) is not None
        ]
        yield from _plots(output.name, "hour", points)


def _number(hour: ResultHour, place: int, combine: str) -> Number | None:
    return 0 if combine == "sum" and not hour.results else hour.values[place]


def drawn(number: Number | None) -> float | None:
    """Height of a value; None if it has none."""
    return None if number is None or not isfinite(number) else float(number)


def usual_range(values: Sequence[float]) -> tuple[float, float] | None:
    """Usual range of some values. None if one of them is negative, or there are too few.

    >>> [round(bound, 1) for bound in usual_range([9, 10, 11, 10, 9, 10, 11, 10])]
    [7.8, 12.2]
    >>> usual_range([-1.0] * 20) is None
    True
    """
    return None if min(values, default=0) < 0 else usual(values)


def _plots(title: str, unit: str, points: Sequence[HeadlinePoint]) -> Iterator[HeadlinePlot]:
    """Yields the plot of a value. There is none with fewer than two points, or without a value above 0."""
    if len(points) < 2 or max(point.value for point in points) <= 0:
        return
    values = [
        BarValue(
            point.value,
            "flight" if not point.is_final else "unusual" if point.is_outside else "",
            point.text,
            point.usual or (None, None),
        )
        for point in points
    ]
    plot = bar_plot(values, (ticks(highest_of(values)), axis_number), [point.time for point in points])
    newest, final = points[-1], next((point for point in reversed(points) if point.is_final), None)
    usual_words = _usual_words(final.usual) if final and final.usual else ""
    words = f"{title} by {unit}: {', '.join(part for part in (newest.text, usual_words) if part)}"
    yield HeadlinePlot(title, plot, words, newest.text, usual_words, final is not None and final.is_outside)


def _usual_words(band: tuple[float, float]) -> str:
    return f"usual {' to '.join(amount(round(bound) if band[1] >= 100 else bound) for bound in band)}"


def axis_number(value: float) -> str:
    """A number of a value axis.

    >>> axis_number(2000.0), axis_number(0.04), axis_number(2e12)
    ('2,000', '0.04', '2e+12')
    """
    return f"{value:.3g}" if value >= 1e12 else f"{value:,.10g}"
