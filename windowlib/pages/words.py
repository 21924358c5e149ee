"""Numbers, times and lists of marks in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from zoneinfo import ZoneInfo

from windowlib.definition.instants import instant, nearest_utc
from windowlib.definition.plurals import counted
from windowlib.definition.toml.durations import LONGEST_MS, UNITS, format_duration
from windowlib.model.rerun import TimeRange
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.pages.counts.row_counts import local
from windowlib.pages.days import Days
from windowlib.pages.history import CheckHistory
from windowlib.pages.local_hours import clock_words
from windowlib.pages.overview import CheckMark
from windowlib.pages.rows import TextRows
from windowlib.pages.trends import Measure, Trend
from windowlib.plans.grids.local_times import local_time
from windowlib.reruns.totals import Number

CHECKS_MARKED = 20
CAUSES = {
    "firing": "windows fired",
    "late": "late events",
    "merge": "sessions merged",
    "migrate": "migration to another definition",
    "forget": "erasure of a key",
    "adopt": "changes of another program, adopted",
}
NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?(e[+-]\d+)?")


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


def moment(time_ms: int | None, as_of_ms: int, zone: str = "UTC") -> str:
    """A time to the minute, for a column whose head names the zone. Has the year if it is not that of `as_of_ms`.

    >>> moment(61_000, 0), moment(61_000, 2**41), moment(None, 0), moment(2**63 - 1, 0)
    ('1 Jan 00:01', '1 Jan 1970 00:01', '–', 'the end of time')
    >>> moment(0, 0, "Asia/Tokyo")
    '1 Jan 09:00'
    """
    if time_ms is None:
        return "–"
    if not instant(time_ms).endswith(" UTC"):
        return instant(time_ms)
    when = local(time_ms, ZoneInfo(zone))
    return f"{day_words(when.date(), as_of_ms)} {when:%H:%M}"


def typed_time(time_ms: int, zone: str) -> str:
    """A time as an operator types it in a form: local, with its zone; in UTC if the local time occurs twice.

    >>> typed_time(1_792_792_800_000, "Europe/Berlin"), typed_time(1_792_890_000_000, "Europe/Berlin")
    ('2026-10-24 00:00 Europe/Berlin', '2026-10-25 01:00 UTC')
    """
    when = local(time_ms, ZoneInfo(zone))
    if when.utcoffset() != when.replace(fold=1 - when.fold).utcoffset():
        when, zone = nearest_utc(time_ms), "UTC"
    return f"{when:%Y-%m-%d %H:%M} {zone}"


def hour_words(hour_ms: int, as_of_ms: int, zone: str) -> str:
    """Start of an hour of a zone, with its offset unless the zone is UTC. Has the year as `moment`.

    >>> hour_words(0, 0, "UTC"), hour_words(0, 0, "Asia/Tokyo")
    ('1 Jan 00:00', '1 Jan 09:00 +09:00')
    """
    return f"{day_words(local_time(zone, hour_ms).date(), as_of_ms)} {clock_words(hour_ms, zone)}"


def day_words(day: date, as_of_ms: int) -> str:
    """A day. Has the year if it is not that of `as_of_ms`.

    >>> day_words(date(1970, 3, 5), 0), day_words(date(2026, 3, 5), 0)
    ('5 Mar', '5 Mar 2026')
    """
    year = "" if day.year == nearest_utc(as_of_ms).year else f" {day.year}"
    return f"{day.day} {day:%b}{year}"


def final_words(days: Days, as_of_ms: int) -> str:
    """Sentences that say up to when results are final, and which day is not.

    >>> final_words(Days("UTC", 3_600_000, 0, first_open=date(1970, 1, 1), open_until_ms=86_399_999), 0)
    'Final up to 1 Jan 01:00 UTC. 1 Jan is not final: its windows may change until the watermark passes 2 Jan 00:00.'
    >>> final_words(Days("UTC", None, 0, why_none="windows have no end in time"), 0)
    'No day is ever final: windows have no end in time.'
    """
    if days.why_none:
        return f"No day is ever final: {days.why_none}."
    if days.all_final:
        return "Every day is final: the input was declared complete."
    if days.final_ms in (None, MIN_WATERMARK):
        final = "Nothing is final yet."
    else:
        final = f"Final up to {moment(days.final_ms, as_of_ms, days.zone)} {days.zone}."
    if days.first_open is None or days.open_until_ms is None:
        return final
    return (
        f"{final} {day_words(days.first_open, as_of_ms)} is not final: its windows may change until the watermark"
        f" passes {moment(days.open_until_ms + 1, as_of_ms, days.zone)}."
    )


def amount(value: Number | None) -> str:
    """A value of an aggregate.

    >>> from decimal import Decimal
    >>> amount(1234), amount(Decimal("1234.50")), amount(0.123456789), amount(12345.678), amount(None)
    ('1,234', '1,234.50', '0.1235', '12,345.68', '–')
    """
    if not isinstance(value, float):
        return "–" if value is None else f"{value:,}"
    return f"{value:,.2f}" if abs(value) >= 100 else f"{value:.4g}"


def is_numeric(rows: TextRows, column: int) -> bool:
    """Tests if all cells of a column are numbers or nulls, and at least one is a number.

    >>> rows = TextRows(["user", "clicks"], [["u1", "1,234"], ["2", "null"], ["3", "-0.5"]])
    >>> is_numeric(rows, 0), is_numeric(rows, 1)
    (False, True)
    """
    cells = {row[column] for row in rows.cells} - {"null"}
    return bool(cells) and all(NUMBER.fullmatch(cell) for cell in cells)


def difference(now: Number | None, before: Number | None) -> str:
    """Change of a value; empty if it did not change or one of both is not known.

    >>> from decimal import Decimal
    >>> difference(12, 10), difference(Decimal("1.00"), Decimal("4.00")), difference(1, 1), difference(1, None)
    ('+2', '-3.00', '', '')
    """
    if now is None or before is None or now == before:
        return ""
    if isinstance(now, float) or isinstance(before, float):
        change: Number = float(now) - float(before)
    else:
        change = now - before
    return signed(change)


def signed(change: Number | None) -> str:
    """A change of a value, with its sign.

    >>> signed(2), signed(-2.5), signed(0), signed(None)
    ('+2', '-2.5', '0', '–')
    """
    return f"{'+' if change is not None and change > 0 else ''}{amount(change)}"


def cause_words(cause: str) -> str:
    """Cause of changes of results, for a table.

    >>> cause_words("late"), cause_words("rerun")
    ('late events', 'rerun')
    """
    return CAUSES.get(cause, cause)


def percent(now: Number | None, before: Number | None) -> str:
    """Change of a value in percent of the value before; empty if that was 0, or if there is no value any more.

    >>> percent(12, 10), percent(-3, -2), percent(1, 0), percent(None, 1)
    ('+20.0 %', '-50.0 %', '', '')
    """
    share = (float(now) - float(before)) / abs(float(before)) if before and now is not None else None
    return "" if share is None else f"{share:+.1%}".replace("%", " %")


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
    ('1.23 %', '1,234', '1m 30s')
    >>> measure(1234.5, Measure.RATE), measure(0.00001, Measure.SHARE), measure(0.5, Measure.SHARE)
    ('1,234 a second', '< 0.01 %', '50.0 %')
    """
    match kind:
        case Measure.SHARE:
            shown = f"{value:.{2 if 0 < value < 0.1 else 1}%}"
            return "< 0.01 %" if 0 < value < 0.00005 else shown.replace("%", " %")
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
