"""Bars in front of a band, with axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

HEIGHT, STEP = 72, 10
LONGEST = 9  # characters of a label that has room in the middle


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle; `kind` is its CSS class, `title` its value in words."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class BarValue:
    """A value with the class and title of its bar. `usual` is its expected range: lowest and highest, or None."""

    value: float
    kind: str
    title: str
    usual: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars, the oldest on the left, in front of their expected ranges.

    * `ticks` are the labels of the value axis from the top to 0. They are at equal distances, and so are the lines of
      the `grid`.
    * `labels` are labels below the first bar, a bar in the middle, and the last bar.
    """

    width: float
    height: float
    bars: Sequence[Bar]
    bands: Sequence[Bar] = ()
    ticks: Sequence[str] = ()
    labels: Sequence[str] = ()

    @property
    def grid(self) -> Sequence[float]:
        """Heights of the lines above 0."""
        steps = len(self.ticks) - 1
        return [round(self.height * number / steps, 2) for number in range(steps)]


def highest_of(values: Sequence[BarValue]) -> float:
    """Value that the axis must reach. A bound far above all values does not count."""
    highest = max(value.value for value in values)
    return max([highest, *(high for value in values if (high := value.usual[1]) is not None and high <= 3 * highest)])


def bar_plot(
    values: Sequence[BarValue], axis: tuple[Sequence[float], Callable[[float], str]], labels: Sequence[str]
) -> Plot:
    """Plot of values in front of bands. Adjacent values with the same expected range share a band.

    axis: numbers on the value axis from 0, and the function that formats them
    labels: a label per value
    """
    numbers, text = axis
    top = numbers[-1]

    def y(value: float) -> float:
        return round(HEIGHT * (1 - min(max(value, 0), top) / top), 2)

    bars = [
        Bar(STEP * number + 1, y(value.value), STEP - 2, round(HEIGHT - y(value.value), 2), value.kind, value.title)
        for number, value in enumerate(values)
    ]
    bands = list[Bar]()
    for (low, high), same in groupby(enumerate(values), key=lambda pair: pair[1].usual):
        places, upper = [place for place, _ in same], y(top if high is None else high)
        if low is not None or high is not None:
            height = round(max(y(low or 0) - upper, 1), 2)
            bands.append(Bar(STEP * places[0], upper, STEP * len(places), height, "band", ""))
    shown = [text(number) for number in reversed(numbers)]
    return Plot(STEP * len(bars), HEIGHT, bars, bands, shown, ends(labels))


def ends(labels: Sequence[str]) -> Sequence[str]:
    """First, middle and last label. Leaves out the middle of two, or if labels are long.

    >>> ends(["1 Nov", "2 Nov", "3 Nov"]), ends(["a", "b"]), ends(["1 Nov 00:30"] * 9)
    (('1 Nov', '2 Nov', '3 Nov'), ('a', 'b'), ('1 Nov 00:30', '1 Nov 00:30'))
    """
    has_middle = len(labels) > 2 and max(map(len, labels)) <= LONGEST
    places = (0, len(labels) // 2, len(labels) - 1) if has_middle else (0, len(labels) - 1)
    return tuple(labels[place] for place in places)
