"""Plots of headline values by day, with their usual band."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from windowlib.pages.days import Day, Days
from windowlib.pages.plots.bars import BarValue, Plot, bar_plot, highest_of
from windowlib.pages.plots.scale import ticks
from windowlib.pages.words import amount, day_words
from windowlib.quality.bands import usual


@dataclass(frozen=True, slots=True)
class HeadlinePlot:
    """A headline value by day, oldest day on the left.

    `words` describe the plot, `newest` is the newest value. `usual` is the usual range in words; empty if there is
    none. `is_unusual`: the newest final value is outside.
    """

    title: str
    plot: Plot
    words: str
    newest: str
    usual: str
    is_unusual: bool


def headline_plots(days: Days, as_of_ms: int) -> Iterator[HeadlinePlot]:
    """Yields a plot for each headline value with at least two days. Values below 0 are not drawn."""
    for place, output in enumerate(days.headline):
        shown = [
            (day, float(value))
            for day in days.days[::-1]
            if (value := day.values[place]) is not None and isfinite(value)
        ]
        if len(shown) < 2 or max(value for _, value in shown) <= 0:
            continue
        texts = [
            f"{day_words(day.day, as_of_ms)}: {amount(day.values[place])}{'' if day.is_final else ', not final'}"
            for day, _ in shown
        ]
        yield _headline_plot(output.name, shown, texts, as_of_ms)


def usual_range(values: Sequence[float]) -> tuple[float, float] | None:
    """Usual range of the newest of some values, derived from the values before it. None with a negative value.

    >>> [round(bound, 1) for bound in usual_range([9, 10, 11, 10, 9, 10, 11, 10, 50])]
    [7.8, 12.2]
    >>> usual_range([-1.0] * 20) is None
    True
    """
    return None if min(values, default=0) < 0 else usual(values[:-1])


def _headline_plot(title: str, shown: Sequence[tuple[Day, float]], texts: Sequence[str], as_of_ms: int) -> HeadlinePlot:
    final = [value for day, value in shown if day.is_final]
    band = usual_range(final)
    low, high = band or (None, None)

    def is_outside(value: float) -> bool:
        return band is not None and not band[0] <= value <= band[1]

    values = [
        BarValue(value, "flight" if not day.is_final else "unusual" if is_outside(value) else "", text)
        for (day, value), text in zip(shown, texts, strict=True)
    ]
    numbers = ticks(highest_of(values, high))
    labels = [day_words(day.day, as_of_ms) for day, _ in shown]
    plot = bar_plot(values, (low, high), (numbers, axis_number), labels)
    shown_band = [amount(round(bound) if high and high >= 100 else float(bound)) for bound in band or ()]
    usual_words = f"usual {' to '.join(shown_band)}" if band else ""
    words = f"{title} by day: {', '.join(part for part in (texts[-1], usual_words) if part)}"
    return HeadlinePlot(title, plot, words, texts[-1], usual_words, bool(final) and is_outside(final[-1]))


def axis_number(value: float) -> str:
    """A number of a value axis.

    >>> axis_number(2000.0), axis_number(0.04), axis_number(2e12)
    ('2,000', '0.04', '2e+12')
    """
    return f"{value:.3g}" if value >= 1e12 else f"{value:,.10g}"
