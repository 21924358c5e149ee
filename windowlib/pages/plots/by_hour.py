"""Plots of events and results by hour of event time, a plot per day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windowlib.definition.plurals import counted
from windowlib.pages.gaps import HOUR_MS
from windowlib.pages.hours import Hour
from windowlib.pages.local_hours import clock_words, days_in, offset_words, place_in_day
from windowlib.pages.plots.bars import Bar
from windowlib.pages.plots.scale import ticks
from windowlib.plans.grids.local_times import local_time

HEIGHT, STEP = 44, 10
GAP_HEIGHT = 4
WIDTH = 24 * STEP  # of a day without a change of the clock
LABELS = ("00:00", "06:00", "12:00", "18:00", "24:00")
THINGS = ("result", "event in results")  # nouns with a plural


@dataclass(frozen=True, slots=True)
class DayPlot:
    """Hours of one day of event time, `width` wide. `words` and `sum` describe the bars, in full and in short."""

    name: str
    width: int
    bars: Sequence[Bar]
    words: str
    sum: str

    @property
    def labels(self) -> Sequence[str]:
        """Times below the plot, at equal distances. A day with a change of the clock has only its ends."""
        return LABELS if self.width == WIDTH else (LABELS[0], LABELS[-1])

    @property
    def grid(self) -> Sequence[float]:
        """Places of the labels between the ends."""
        steps = len(self.labels) - 1
        return [self.width * number / steps for number in range(1, steps)]


def days(hours: Sequence[Hour]) -> list[DayPlot]:
    """Hours by day, newest day first. All days have the same scale."""
    top, by_day = top_of(hours), dict[int, list[Hour]]()
    for hour in hours:
        by_day.setdefault(days_in(hour.zone).start_ms(hour.start_ms), []).append(hour)
    return [_day(start_ms, by_day[start_ms], top) for start_ms in sorted(by_day, reverse=True)]


def top_of(hours: Sequence[Hour]) -> float:
    """Upper end of the value axis: events if they are known, otherwise results, plus late events."""
    highest = max((sum(amount for _, amount, _ in _parts(hour)) for hour in hours), default=0)
    return ticks(highest, is_whole=True)[-1]


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


def _day(start_ms: int, hours: Sequence[Hour], top: float) -> DayPlot:
    bars = list[Bar]()
    for hour in hours:
        x, y = STEP * place_in_day(hour.start_ms, hour.zone)[1] + 0.5, float(HEIGHT)
        title = f"{clock_words(hour.start_ms, hour.zone)}: {_in_words([hour])}"
        if hour.is_gap:
            y -= GAP_HEIGHT  # late events are drawn above the gap
            bars.append(Bar(x, y, STEP - 1, GAP_HEIGHT, "gap", title))
        for kind, number, _ in _parts(hour):
            height = HEIGHT * number / top
            y = max(y - height, 0.0)
            if number:
                bars.append(Bar(x, round(y, 2), STEP - 1, round(height, 2), kind, title))
    zone = hours[0].zone
    name, width = f"{local_time(zone, start_ms):%a %-d %b}", STEP * place_in_day(start_ms, zone)[2]
    return DayPlot(name, width, bars, f"{name}: {_in_words(hours)}", _in_words(hours, short=True))


def _parts(hour: Hour) -> list[tuple[str, int, str]]:
    """Parts of a bar from the bottom: CSS class, amount, noun."""
    if hour.events is None:
        return [("", hour.results, "result"), ("late", hour.late, "late")]
    return [
        ("", hour.events, "event in results"),
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
