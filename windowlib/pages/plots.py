"""Shapes of the plots: rectangles in a box that the page stretches. Text and numbers are in the page around the box.

We would normally use a plotting library. These pages use their own SVG for two reasons:

* Plots need no script. The Content-Security-Policy allows only the script that searches and sorts the home page.
  Libraries that draw in the browser need scripts; Vega also needs `unsafe-eval`.
* Plots follow the reader's colours and width by the style sheet, in dark mode and at 390 px. Matplotlib's SVG has fixed
  colours and sizes, and its text is outlines that screen readers cannot read.

So only rectangles are drawn. Titles, bounds and legends are text of the page, and a table below each plot has its
numbers. Plots with their own axes, or with several series, would be a reason to use a library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from windowlib.definition.plurals import counted
from windowlib.pages.days import Days
from windowlib.pages.gaps import HOUR_MS
from windowlib.pages.history import CheckHistory
from windowlib.pages.hours import Hour
from windowlib.pages.local_hours import clock_words, days_in, offset_words, place_in_day
from windowlib.pages.trends import Trend
from windowlib.pages.words import amount
from windowlib.plans.grids.local_times import local_time
from windowlib.quality.check import CheckResult

HEIGHT, STEP = 72, 10
DAY_HEIGHT, DAY_STEP = 44, 10
GAP_HEIGHT = 4
SPARK_HEIGHT, SPARK_STEP = 16, 3
THINGS = ("result", "event in results")  # nouns with a plural


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle; `kind` is its CSS class, `title` its tooltip."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars over batches, oldest on the left, in front of the expected range. `highest` is the largest value."""

    width: float
    height: float
    highest: float
    bars: Sequence[Bar]
    band: Bar | None


@dataclass(frozen=True, slots=True)
class DayPlot:
    """Hours of one day of event time, `width` wide. `words` and `sum` describe the bars, in full and in short."""

    name: str
    width: int
    bars: Sequence[Bar]
    words: str
    sum: str


def sparkline(values: Sequence[float]) -> str:
    """Path of thin bars, oldest value on the left, in a box of `SPARK_STEP` per value and `SPARK_HEIGHT`.

    >>> sparkline([0, 1, 2]), sparkline([0, 0])
    ('M4 16V8M7 16V0', '')
    """
    highest = max(values, default=0)
    heights = [(number, SPARK_HEIGHT * value / highest) for number, value in enumerate(values) if value > 0]
    return "".join(
        f"M{SPARK_STEP * number + 1} {SPARK_HEIGHT}V{SPARK_HEIGHT - height:.3g}" for number, height in heights
    )


def plot(trend: Trend, text: Callable[[float], str]) -> Plot:
    """A trend as bars; `text` formats a value."""
    bars = [
        (point.value, _kind(trend, number), f"batch {point.batch_id}: {text(point.value)}")
        for number, point in enumerate(trend.points)
    ]
    low, high = trend.usual or (None, None)
    return _plot(bars, low, high, "usual")


def check_plot(history: CheckHistory) -> Plot | None:
    """Bar plot of a check's values, in front of the newest bounds.

    None if there are fewer than two values, all values are 0, or one value is negative.
    """
    outcomes = [outcome for outcome in history.outcomes if outcome.value is not None]
    values = [outcome.value for outcome in outcomes if outcome.value is not None]
    if len(outcomes) < 2 or not any(values) or min(values) < 0:
        return None
    bars = [
        (
            value,
            _marked(outcome.result),
            f"batch {outcome.batch_id}: {outcome.result.observed}, expected {outcome.result.expected}",
        )
        for outcome, value in zip(outcomes, values, strict=True)
    ]
    return _plot(bars, outcomes[-1].low, outcomes[-1].high, "bounds")


@dataclass(frozen=True, slots=True)
class HeadlinePlot:
    """A headline value by day, oldest day on the left. `words` describes the bars, `highest` the highest value."""

    title: str
    plot: Plot
    words: str
    highest: str


def headline_plots(days: Days) -> Iterator[HeadlinePlot]:
    """Yields a plot for each headline value with at least two days. Values below 0 are not drawn."""
    shown = days.days[::-1]
    for place, output in enumerate(days.headline):
        values = [(day, value) for day in shown if (value := day.values[place]) is not None and isfinite(value)]
        highest = max((value for _, value in values), default=0)
        if len(values) < 2 or highest <= 0:
            continue
        texts = [f"{day.day:%-d %b}: {amount(value)}{'' if day.is_final else ', not final'}" for day, value in values]
        bars = [
            (float(value), "events" if day.is_final else "flight", text)
            for (day, value), text in zip(values, texts, strict=True)
        ]
        words = f"{output.name} by day: {'; '.join(texts)}"
        yield HeadlinePlot(output.name, _plot(bars, None, None, ""), words, amount(highest))


def _plot(values: Sequence[tuple[float, str, str]], low: float | None, high: float | None, band: str) -> Plot:
    """Plot of values in front of a band between the bounds. Without bounds, the plot has no band.

    `values` has each value with the class and title of its bar.
    """
    highest = max(value for value, *_ in values)
    top = max(highest, high) if high is not None and high <= 3 * highest else highest

    def y(value: float) -> float:
        return round(HEIGHT * (1 - min(max(value, 0), top) / top), 2) if top > 0 else HEIGHT

    bars = [
        Bar(STEP * number + 1, y(value), STEP - 2, round(HEIGHT - y(value), 2), kind, title)
        for number, (value, kind, title) in enumerate(values)
    ]
    width, upper = STEP * len(bars), y(top if high is None else high)
    within = Bar(0, upper, width, round(max(y(low or 0) - upper, 1), 2), "band", band)
    return Plot(width, HEIGHT, highest, bars, None if low is None and high is None else within)


def _marked(result: CheckResult) -> str:
    if result.success:
        return ""
    return "mark-critical" if result.severity == "critical" else "mark-warning"


def _kind(trend: Trend, number: int) -> str:
    value = trend.points[number].value
    if trend.usual and not trend.usual[0] <= value <= trend.usual[1]:
        return "unusual"
    return "newest" if number == len(trend.points) - 1 else ""


def days(hours: Sequence[Hour]) -> list[DayPlot]:
    """Hours by day, newest day first. All days have the same scale."""
    highest, by_day = highest_hour(hours), dict[int, list[Hour]]()
    for hour in hours:
        by_day.setdefault(days_in(hour.zone).start_ms(hour.start_ms), []).append(hour)
    return [_day(start_ms, by_day[start_ms], highest) for start_ms in sorted(by_day, reverse=True)]


def highest_hour(hours: Sequence[Hour]) -> int:
    """Value of the highest bar: events if they are known, otherwise results, plus late events."""
    return max((sum(amount for _, amount, _ in _parts(hour)) for hour in hours), default=0)


def gaps(hours: Sequence[Hour], step_ms: int = HOUR_MS) -> list[str]:
    """Gaps in words. Adjacent gaps are joined. `step_ms` is the distance between hours in which windows start.

    >>> gaps([Hour(n * HOUR_MS, 0, 0, 0, 0, is_gap=n in (1, 2, 4, 23)) for n in range(24)])
    ['1970-01-01 01:00 to 03:00', '1970-01-01 04:00 to 05:00', '1970-01-01 23:00 to 1970-01-02 00:00']
    """
    spans: list[list[int]] = []
    for hour in hours:
        end_ms = max(hour.end_ms, hour.start_ms + step_ms) if step_ms > HOUR_MS else hour.end_ms
        if hour.is_gap and spans and spans[-1][1] >= hour.start_ms:
            spans[-1][1] = end_ms
        elif hour.is_gap:
            spans.append([hour.start_ms, end_ms])
    return [_from_to(start_ms, end_ms, hours[0].zone) for start_ms, end_ms in spans]


def _from_to(start_ms: int, end_ms: int, zone: str) -> str:
    """Span in local time. The start has its offset if the end has another one.

    >>> _from_to(1_792_886_400_000, 1_792_890_000_000, "Europe/Berlin")
    '2026-10-25 02:00 +02:00 to 02:00 +01:00'
    """
    start, end = local_time(zone, start_ms), local_time(zone, end_ms)
    same_day, same_offset = start.date() == end.date(), start.utcoffset() == end.utcoffset()
    of_start, of_end = "" if same_offset else offset_words(start, zone), offset_words(end, zone)
    return f"{start:%Y-%m-%d %H:%M}{of_start} to {end:{'%H:%M' if same_day else '%Y-%m-%d %H:%M'}}{of_end}"


def _day(start_ms: int, hours: Sequence[Hour], highest: int) -> DayPlot:
    bars = list[Bar]()
    for hour in hours:
        x, y = DAY_STEP * place_in_day(hour.start_ms, hour.zone)[1] + 0.5, float(DAY_HEIGHT)
        title = f"{clock_words(hour.start_ms, hour.zone)}: {_in_words([hour])}"
        if hour.is_gap:
            y -= GAP_HEIGHT  # late events are drawn above the gap
            bars.append(Bar(x, y, DAY_STEP - 1, GAP_HEIGHT, "gap", title))
        for kind, number, _ in _parts(hour):
            height = (DAY_HEIGHT - GAP_HEIGHT) * number / highest if highest else 0.0
            y -= height
            if number:
                bars.append(Bar(x, round(y, 2), DAY_STEP - 1, round(height, 2), kind, title))
    zone = hours[0].zone
    name, width = f"{local_time(zone, start_ms):%a %-d %b}", DAY_STEP * place_in_day(start_ms, zone)[2]
    return DayPlot(name, width, bars, f"{name}: {_in_words(hours)}", _in_words(hours, short=True))


def _parts(hour: Hour) -> list[tuple[str, int, str]]:
    """Parts of a bar from the bottom: CSS class, amount, noun."""
    if hour.events is None:
        return [("results", hour.results, "result"), ("late", hour.late, "late")]
    return [
        ("events", hour.events, "event in results"),
        ("flight", hour.in_flight or 0, "in flight"),
        ("late", hour.late, "late"),
    ]


def _in_words(hours: Sequence[Hour], *, short: bool = False) -> str:
    totals: dict[str, int] = {}
    for hour in hours:
        for _, number, words in _parts(hour):
            totals[words] = totals.get(words, 0) + number
    if short:
        first, number = next(iter(totals.items()))
        return f"{counted(number, first.partition(' ')[0])}, {totals['late']:,} late"
    missing = sum(hour.is_gap for hour in hours)
    parts = [counted(amount, words) if words in THINGS else f"{amount:,} {words}" for words, amount in totals.items()]
    if hours[0].events is not None:
        parts.append(counted(sum(hour.results for hour in hours), "result"))
    return ", ".join([*parts, *([f"{missing} missing"] if missing else [])])
