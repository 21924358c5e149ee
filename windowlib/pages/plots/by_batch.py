"""Plots of trends and of values of checks, batch by batch."""

from __future__ import annotations

from windowlib.pages.history import CheckHistory
from windowlib.pages.plots.bars import BarValue, Plot, bar_plot, highest_of
from windowlib.pages.plots.scale import ticks
from windowlib.pages.trends import Measure, Trend
from windowlib.pages.words import measure, moment
from windowlib.quality.check import CheckResult, column_of
from windowlib.quality.number_words import number_in_words


def plot(trend: Trend, as_of_ms: int) -> Plot:
    """A trend as bars. Times are UTC."""
    values = [
        BarValue(
            point.value,
            "unusual" if trend.usual and not trend.usual[0] <= point.value <= trend.usual[1] else "",
            f"batch {point.batch_id}, {moment(point.at_ms, as_of_ms)}: {measure(point.value, trend.measure)}",
            trend.usual or (None, None),
        )
        for point in trend.points
    ]
    kind = trend.measure
    numbers = ticks(
        highest_of(values), is_duration=kind is Measure.DURATION, is_whole=kind in (Measure.COUNT, Measure.RATE)
    )
    labels = [moment(point.at_ms, as_of_ms) for point in trend.points]
    return bar_plot(values, (numbers, lambda value: measure(value, kind)), labels)


def check_plot(history: CheckHistory) -> Plot | None:
    """Bar plot of a check's values, in front of the newest bounds.

    None if there are fewer than two values, all values are 0, or one value is negative.
    """
    outcomes = [outcome for outcome in history.outcomes if outcome.value is not None]
    values = [
        BarValue(
            outcome.value or 0,
            _marked(outcome.result),
            f"batch {outcome.batch_id}: {outcome.result.observed}, expected {outcome.result.expected}",
            (outcomes[-1].low, outcomes[-1].high),
        )
        for outcome in outcomes
    ]
    if len(values) < 2 or not any(value.value for value in values) or min(value.value for value in values) < 0:
        return None
    figure = column_of(history.newest.expectation)
    axis = ticks(highest_of(values)), lambda value: number_in_words(value, figure)
    return bar_plot(values, axis, [f"batch {outcome.batch_id}" for outcome in outcomes])


def _marked(result: CheckResult) -> str:
    if result.success:
        return ""
    return "mark-critical" if result.severity == "critical" else "mark-warning"
