"""A preview as text: lines for a terminal, Markdown for Airflow. Both have the same content."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from windowlib.contract.change import Change
from windowlib.definition.instants import instant, time_of
from windowlib.definition.plurals import counted

if TYPE_CHECKING:
    from windowlib.ledger.rerun_request import Rerun
    from windowlib.reruns.previews import Preview
    from windowlib.reruns.totals import DayTotals, Total

Cells = tuple[list[str], list[list[str]]]  # names of columns, and rows

HIDDEN = "hidden"  # shown instead of a value that the definition hides
ARROW = " \u2192 "
NO_TOTAL = "no total"
DAYS = 31  # days that a table shows
LISTED = 3  # windows that are listed for one change
# The last alternatives break web and mail addresses, which would become links.
_MARKUP = re.compile(r"[\\`*_{}\[\]#|~]|^[-+]|(?<=http):|(?<=https):|(?<=www)\.|@")
NOTHING = "no published window would change: the windows of this range already agree with the source"


def facts(preview: Preview) -> Iterator[tuple[str, str]]:
    """Yields facts about the changes, each as a name and a description."""
    summary = preview.summary
    read = f"{counted(summary.files_read, 'file')}, {size(summary.bytes_read)}"
    if summary.files_missing:
        read += f"; {counted(len(summary.files_missing), 'file')} missing, whose events are left out"
    kinds = (f"{count:,} {kind}" for kind, count in summary.windows.items() if count or kind in [*Change])
    yield "windows", ", ".join(kinds)
    yield "reaches", " to ".join(map(instant, summary.reaches_ms))
    yield "reads", read
    if summary.late_readmitted:
        join = "late event joins" if summary.late_readmitted == 1 else "late events join"
        yield "late events", f"{summary.late_readmitted:,} {join} a window"
    before, after = summary.in_flight
    if before or after:
        yield "in flight", f"{before:,} before, {after:,} after"
    rows = summary.rows_to_write
    yield "rows", ", ".join(f"{count:,} into {table}" for table, count in rows.items() if count) or "none"


def title(rerun: Rerun, keys: Sequence[str], hide: Collection[str] = ()) -> str:
    """Title of a rerun. Hides the values of its key if a key column is in `hide`."""
    return rerun.titled(HIDDEN) if {*keys} & {*hide} else rerun.title


def notes(preview: Preview) -> list[str]:
    """Notes for the operator before applying the preview."""
    summary, sentences = preview.summary, []
    if any(None in (total.before, total.after) for total in summary.totals.values()):
        sentences.append(f'"{NO_TOTAL}": a value is NaN or infinite, or the total is too large')
    if summary.files_waiting is None:
        sentences.append("the source could not be listed: there may be new files, which this rerun does not read")
    elif summary.files_waiting:
        wait, them = ("files are waiting", "them") if summary.files_waiting > 1 else ("file is waiting", "it")
        sentences.append(f"{summary.files_waiting:,} new {wait} for an ordinary run; this rerun does not read {them}")
    return sentences


def totals(preview: Preview, hide: Collection[str] = ()) -> Cells:
    """Totals of the range as a table; no rows if no result would change."""
    summary = preview.summary
    names = ["total of the range", "before", "after", "difference", "percent"]
    shown = [("results", summary.results)] if summary.results else []
    rows = [[name, *_before_after(total)] for name, total in shown]
    for name, total in summary.totals.items():
        rows.append([f"sum of {name}", *([HIDDEN] * 4 if name in hide else _before_after(total))])
    return names, rows


def days(preview: Preview, hide: Collection[str] = (), most: int = DAYS) -> Cells:
    """Differences by day as a table, for at most `most` days: the days with the most differing results."""
    summary = preview.summary
    names = ["day (UTC)", "results that differ", "results", *(f"sum of {name}" for name in summary.totals)]
    chosen = sorted(sorted(summary.days, key=lambda day: -day.differing)[:most], key=lambda day: day.day)
    return names, [_day(day, summary.totals, hide) for day in chosen]


def _day(day: DayTotals, totals: Collection[str], hide: Collection[str]) -> list[str]:
    sums = (HIDDEN if name in hide else _with_percent(day.totals[name]) for name in totals)
    return [day.day, f"{day.differing:,}", _with_percent(day.results), *sums]


def left_out(preview: Preview, most: int = DAYS) -> str:
    """Sentence about the days that are missing from the table `days`; empty if no day is missing."""
    more = len(preview.summary.days) - most
    return f"{counted(more, 'day')} with fewer results that differ left out; --json has all" if more > 0 else ""


def largest(preview: Preview, keys: Sequence[str], hide: Collection[str] = ()) -> Cells:
    """Largest changes as a table: names of columns, and cells. Hides the values of columns in `hide`."""
    rows = preview.summary.largest
    outputs = list(max((row[side] or {} for row in rows for side in ("after", "before")), key=len, default={}))
    names = ["change", *keys, "window (UTC)", *outputs]
    cells = [
        [
            row["change"],
            *(str(row[key]) for key in keys),
            _bounds(row["windows_before"], row["windows_after"]),
            *(_from_to(row["before"], row["after"], name, name in preview.summary.totals) for name in outputs),
        ]
        for row in rows
    ]
    return names, [[HIDDEN if name in hide else cell for name, cell in zip(names, row, strict=True)] for row in cells]


def changed_cells(preview: Preview, keys: Sequence[str]) -> set[tuple[int, int]]:
    """Cells of the table `largest` with a value that would change, by row and column."""
    names, _ = largest(preview, keys)
    first = 2 + len(keys)  # the first columns are the change, the key and the window
    return {
        (place, column)
        for place, row in enumerate(preview.summary.largest)
        for column, name in enumerate(names[first:], first)
        if name in (row["before"] or {}) and name in (row["after"] or {}) and row["before"][name] != row["after"][name]
    }


def markdown(preview: Preview, keys: Sequence[str], hide: Collection[str] = ()) -> str:
    """Formats a preview as Markdown. Hides the values of columns in `hide`."""
    rerun, what = preview.rerun, title(preview.rerun, keys, hide)
    lines = [
        f"## {what[0].upper()}{what[1:]}",
        "",
        f"Reason: {escaped(rerun.reason) or 'none given'}  ",
        f"Preview `{preview.preview_id}` of {instant(preview.at_ms)}, after batch {preview.base_batch_id}",
        "",
    ]
    if preview.summary.is_empty:
        lines += [f"**{NOTHING[0].upper()}{NOTHING[1:]}.**", ""]
    lines += _table("", totals(preview, hide))
    lines += _table("Differences by day", days(preview, hide))
    if less := left_out(preview):
        lines += [f"{less[0].upper()}{less[1:]}.", ""]
    lines += _table("Largest differences", largest(preview, keys, hide))
    lines += ["### In numbers", "", "| | |", "|---|---|"]
    lines += [*(f"| {name} | {escaped(text)} |" for name, text in facts(preview)), ""]
    lines += [f"Note: {note}." for note in notes(preview)]
    return "\n".join(lines)


def _table(heading: str, cells: Cells) -> list[str]:
    """Formats a table as lines of Markdown with a heading; no lines if the table has no rows."""
    names, rows = cells
    if not rows:
        return []
    return [*([f"### {heading}", ""] if heading else []), _row(names), "|" + "---|" * len(names), *map(_row, rows), ""]


def size(count: int) -> str:
    """Formats a number of bytes for people.

    >>> size(1), size(999), size(1_000), size(10_292), size(3_100_000), size(2_500_000_000_000)
    ('1 byte', '999 bytes', '1.0 kB', '10.3 kB', '3.1 MB', '2,500.0 GB')
    >>> size(999_949), size(999_950), size(999_999_999)
    ('999.9 kB', '1.0 MB', '1.0 GB')
    """
    if count < 1_000:
        return counted(count, "byte")
    for unit, factor in (("kB", 10**3), ("MB", 10**6)):
        if count < 999.95 * factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count / 10**9:,.1f} GB"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(escaped, cells)) + " |"


def escaped(text: str) -> str:
    r"""Escapes a string for one line of Markdown, so that no part of the string becomes markup, HTML or a link.

    >>> print(escaped("a|b\n<script> [x](y) **c**"))
    a\|b &lt;script&gt; \[x\](y) \*\*c\*\*
    """
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(r"\\\g<0>", plain)


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1 else f"{value:,.2f}"
    return f"{Decimal(value):,}" if isinstance(value, str) else f"{value:,}"


def _signed(difference: Any) -> str:
    """Formats a difference with its sign.

    >>> _signed(2079), _signed("-1.25"), _signed(0), _signed(None)
    ('+2,079', '-1.25', '0', 'no total')
    """
    if difference is None:
        return NO_TOTAL
    return f"{'+' if Decimal(difference) > 0 else ''}{_number(difference)}"


def _percent(total: Total) -> str:
    """Formats the difference in percent of the value before; empty if `percent` is None or the difference is 0.

    >>> from windowlib.reruns.totals import Total
    >>> _percent(Total(8, 10, 2, 25.0)), _percent(Total(9, 1, -8, -88.8889))
    ('+25.0 %', '-88.9 %')
    >>> _percent(Total(0, 1, 1, None)), _percent(Total(1, 1, 0, 0.0))
    ('', '')
    """
    return "" if total.percent is None or not Decimal(total.difference) else f"{total.percent:+,.1f} %"


def _before_after(total: Total) -> list[str]:
    before, after = (NO_TOTAL if value is None else _number(value) for value in (total.before, total.after))
    return [before, after, _signed(total.difference), _percent(total)]


def _with_percent(total: Total) -> str:
    percent = _percent(total)
    return f"{_signed(total.difference)} ({percent})" if percent else _signed(total.difference)


def _bounds(before: Sequence[str], after: Sequence[str]) -> str:
    """Formats the old and new window bounds of a change.

    >>> _bounds(["1 to 2"], ["1 to 2"]), _bounds([], ["1 to 2"]), _bounds(["1 to 2"], ["1 to 3"])
    ('1 to 2', '1 to 2', '1 to 2 → 1 to 3')
    """
    listed = [
        "; ".join(map(_short, bounds[:LISTED])) + (f"; and {len(bounds) - LISTED} more" if len(bounds) > LISTED else "")
        for bounds in (before, after)
    ]
    return ARROW.join(dict.fromkeys(filter(None, listed)))


def _short(bounds: str) -> str:
    """Shortens the bounds of a window: leaves out the date of the end if start and end have the same date.

    >>> _short("2026-03-02 10:00:00 to 2026-03-02 11:00:00"), _short("2026-03-02 23:00:00 to 2026-03-03 00:00:00")
    ('2026-03-02 10:00:00 to 11:00:00', '2026-03-02 23:00:00 to 2026-03-03 00:00:00')
    """
    start, _, end = bounds.partition(" to ")
    day = start.partition(" ")[0]
    return f"{start} to {end.removeprefix(f'{day} ')}" if end else bounds


def _from_to(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, name: str, adds_up: bool) -> str:
    """Formats a value before and after, with the difference if its aggregate is additive (`adds_up`).

    Empty for merged or split windows if the aggregate is not additive.
    """
    shown = [_value(side[name], adds_up) if side and name in side else "" for side in (before, after)]
    if before is None:
        return shown[1]
    if after is None:
        return f"{shown[0]}{ARROW}gone"
    if name not in before or name not in after:
        return ""
    if before[name] == after[name]:
        return shown[1]
    if not adds_up and isinstance(before[name], float) and isinstance(after[name], float):
        shown = _floats(before[name], after[name])
    is_number = adds_up and before[name] is not None and after[name] is not None
    return ARROW.join(shown) + (f" ({_signed(_difference(before[name], after[name]))})" if is_number else "")


def _floats(before: float, after: float) -> list[str]:
    """Formats two different values with six digits, or with all digits if the six digits are equal.

    >>> _floats(145 / 3, 4885.25), _floats(1.0, 1.00000001)
    (['48.3333', '4885.25'], ['1.0', '1.00000001'])
    """
    short = [f"{value:.6g}" for value in (before, after)]
    return short if short[0] != short[1] else [str(before), str(after)]


def _difference(before: Any, after: Any) -> Any:
    if isinstance(before, float):
        return after - before
    return Decimal(after) - Decimal(before)


def _value(value: Any, adds_up: bool) -> str:
    if adds_up and value is not None:
        return _number(value)
    return instant(time_of(value)) if isinstance(value, datetime) and value.tzinfo else str(value)
