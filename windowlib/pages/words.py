"""Numbers, times and lists of marks in words."""

from __future__ import annotations

from collections.abc import Sequence

from windowlib.definition.instants import instant, nearest_utc
from windowlib.definition.plurals import counted
from windowlib.definition.toml.durations import LONGEST_MS, UNITS, format_duration
from windowlib.model.rerun import TimeRange
from windowlib.pages.history import CheckHistory
from windowlib.pages.overview import CheckMark
from windowlib.pages.trends import Measure, Trend

CHECKS_MARKED = 20


def rough(duration_ms: float) -> str:
    """A duration in its two largest units.

    >>> rough(90_061_000), rough(2_699_000), rough(1_234), rough(59_999), rough(0), rough(2**62)
    ('1d 1h', '44m 59s', '1.2 s', '59 s', '0 s', 'without end')
    """
    whole_ms = int(duration_ms)
    if whole_ms > LONGEST_MS:
        return "without end"
    if whole_ms < UNITS["m"]:
        seconds = whole_ms / 1000
        return f"{seconds:.1f} s" if 0 < seconds < 10 else f"{int(seconds)} s"
    largest = next(name for name in "dhm" if whole_ms >= UNITS[name])
    second_ms = UNITS[{"d": "h", "h": "m", "m": "s"}[largest]]
    return format_duration(whole_ms // second_ms * second_ms)


def ago(time_ms: int | None, now_ms: int) -> str:
    """Time since an event, in words.

    >>> ago(0, 7_200_000), ago(5_000, 5_001), ago(None, 0), ago(60_000, 0)
    ('2h ago', 'just now', 'never', 'in 1m')
    """
    if time_ms is None:
        return "never"
    passed_ms = now_ms - time_ms
    if abs(passed_ms) < UNITS["s"]:
        return "just now"
    return f"{rough(passed_ms)} ago" if passed_ms > 0 else f"in {rough(-passed_ms)}"


def minute(time_ms: int | None) -> str:
    """A time to the minute.

    >>> minute(61_000), minute(None), minute(2**63 - 1)
    ('1970-01-01 00:01 UTC', 'none yet', 'the end of time')
    """
    shown = instant(time_ms)
    return f"{shown[: len('1970-01-01 00:00')]} UTC" if shown.endswith(" UTC") else shown


def moment(time_ms: int | None, as_of_ms: int) -> str:
    """A time to the minute, for a column whose head names the zone. Has the year if it is not that of `as_of_ms`.

    >>> moment(61_000, 0), moment(61_000, 2**41), moment(None, 0), moment(2**63 - 1, 0)
    ('1 Jan 00:01', '1 Jan 1970 00:01', '–', 'the end of time')
    """
    if time_ms is None:
        return "–"
    if not instant(time_ms).endswith(" UTC"):
        return instant(time_ms)
    when = nearest_utc(time_ms)
    year = "" if when.year == nearest_utc(as_of_ms).year else f" {when.year}"
    return f"{when.day} {when:%b}{year} {when:%H:%M}"


def age(time_ms: int | None, now_ms: int) -> str:
    """Time since an event, without a word.

    >>> age(0, 7_200_000), age(60_000, 0), age(None, 0)
    ('2h', '0 s', '–')
    """
    return "–" if time_ms is None else rough(max(0, now_ms - time_ms))


def range_words(span: TimeRange) -> str:
    """A range to the minute.

    >>> range_words(TimeRange(0, 7_260_000))
    '1970-01-01 00:00 to 1970-01-01 02:01 UTC'
    """
    return f"{minute(span.from_ms).removesuffix(' UTC')} to {minute(span.to_ms)}"


def measure(value: float, kind: Measure) -> str:
    """A value with its unit.

    >>> measure(0.0123, Measure.SHARE), measure(1234.0, Measure.COUNT), measure(90_000, Measure.DURATION)
    ('1.2 %', '1,234', '1m 30s')
    >>> measure(1234.5, Measure.RATE), measure(0.00001, Measure.SHARE), measure(7.5, Measure.COUNT)
    ('1,234 a second', '< 0.1 %', '7.5')
    """
    match kind:
        case Measure.SHARE:
            return "< 0.1 %" if 0 < value < 0.0005 else f"{value:.1%}".replace("%", " %")
        case Measure.DURATION:
            return rough(value)
        case Measure.RATE:
            return f"{value:,.0f} a second"
    return f"{value:,.0f}" if value >= 100 or float(value).is_integer() else f"{value:.2g}"


def strip_words(marks: Sequence[CheckMark]) -> str:
    """Text alternative of a strip of checks, for screen readers.

    >>> strip_words([CheckMark(1, "met", 0), CheckMark(2, "warning", 2)])
    'checks of 2 batches: 1 met, 1 with warnings, 0 refused; the newest with warnings'
    """
    words = {"met": "met", "warning": "with warnings", "critical": "refused"}
    counts = {worst: sum(check_mark.worst == worst for check_mark in marks) for worst in words}
    parts = ", ".join(f"{count} {words[worst]}" for worst, count in counts.items())
    return f"checks of {counted(len(marks), 'batch')}: {parts}; the newest {words[marks[-1].worst]}"


def trend_words(trend: Trend) -> str:
    """Text alternative of a trend, for screen readers."""
    highest = max(trend.points, key=lambda point: point.value)
    band = f", usual {' to '.join(measure(bound, trend.measure) for bound in trend.usual)}" if trend.usual else ""
    return (
        f"{trend.title} over {len(trend.points)} batches: newest {measure(trend.newest.value, trend.measure)}{band},"
        f" highest {measure(highest.value, trend.measure)} (batch {highest.batch_id})"
    )


def check_words(history: CheckHistory) -> str:
    """Text alternative of a check's values, for screen readers."""
    newest, failed = history.newest, len(history.failures)
    return (
        f"{history.sentence} Over {counted(len(history.outcomes), 'batch')}: {failed} failed; the newest observed"
        f" {newest.observed}, expected {newest.expected}"
    )


def check_strip(history: CheckHistory) -> list[CheckMark]:
    """Marks for the newest outcomes of one check."""
    return [
        CheckMark.of(outcome.batch_id, [] if outcome.result.success else [outcome.result.severity])
        for outcome in history.outcomes[-CHECKS_MARKED:]
    ]
