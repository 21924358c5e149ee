"""A preview in words: lines for a terminal, Markdown for Airflow. Both say the same."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from windowlib.definition.instants import instant, time_of
from windowlib.definition.plurals import counted
from windowlib.plans import reruns

if TYPE_CHECKING:
    from windowlib.reruns.previews import Preview
    from windowlib.tables.rerun import Rerun

HIDDEN = "hidden"  # in place of a value that the definition hides
WORDS = {reruns.ADDED: "added", reruns.REMOVED: "removed"}  # for those that are kept
# Addresses become links by themselves.
_MARKUP = re.compile(r"[\\`*_{}\[\]#|~]|^[-+]|(?<=http):|(?<=https):|(?<=www)\.|@")
NOTHING = "no published window would change: the windows of this range already agree with the source"


def facts(preview: Preview, hide: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """What would change: a name, and the sentence about it. Sums of columns in `hide` are not in it."""
    summary = preview.summary
    read = f"{counted(summary.files_read, 'file')}, {size(summary.bytes_read)}"
    if summary.files_missing:
        read += f"; {counted(len(summary.files_missing), 'file')} missing, whose events are left out"
    yield "reaches", " to ".join(map(instant, summary.reaches_ms))
    yield "reads", read
    yield "windows", ", ".join(f"{count:,} {WORDS.get(kind, kind)}" for kind, count in summary.windows.items())
    if summary.late_readmitted:
        join = "late event joins" if summary.late_readmitted == 1 else "late events join"
        yield "late events", f"{summary.late_readmitted:,} {join} a window"
    before, after = summary.in_flight
    if before or after:
        yield "in flight", f"{before:,} before, {after:,} after"
    for name, (was, now) in summary.sums.items():
        said = f"{_number(was)} before, {_number(now)} after ({_change(was, now)})"
        yield name, HIDDEN if name in hide else said
    rows = summary.rows_to_write
    yield "rows", ", ".join(f"{count:,} into {table}" for table, count in rows.items() if count) or "none"


def title(rerun: Rerun, keys: Sequence[str], hide: Collection[str] = ()) -> str:
    """What a rerun does; without the values of its key where a key column is in `hide`."""
    return rerun.titled(HIDDEN) if {*keys} & {*hide} else rerun.title


def notes(preview: Preview) -> list[str]:
    """What the operator should know before applying it."""
    waiting = preview.summary.files_waiting
    if waiting is None:
        return ["the source could not be listed: there may be new files, which this rerun does not read"]
    if waiting:
        wait, them = ("files are waiting", "them") if waiting > 1 else ("file is waiting", "it")
        return [f"{waiting:,} new {wait} for an ordinary run; this rerun does not read {them}"]
    return []


def largest(preview: Preview, keys: Sequence[str], hide: Collection[str] = ()) -> tuple[list[str], list[list[str]]]:
    """The largest changes as a table: names of columns, and cells. Values of columns in `hide` are not in it."""
    rows = preview.summary.largest
    outputs = list(next(((r["after"] or r["before"]) for r in rows), {}))
    names = ["change", *keys, "window (UTC)", *outputs]
    cells = []
    for row in rows:
        before, after = row["before"] or {}, row["after"] or {}
        values = [_from_to(before.get(name), after.get(name), bool(before), bool(after)) for name in outputs]
        cells.append(
            [WORDS.get(row["change"], row["change"]), *(str(row[key]) for key in keys), row["window"], *values]
        )
    return names, [[HIDDEN if name in hide else cell for name, cell in zip(names, row, strict=True)] for row in cells]


def markdown(preview: Preview, keys: Sequence[str], hide: Collection[str] = ()) -> str:
    """A preview as a page; without values of columns in `hide`."""
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
    lines += ["| | |", "|---|---|", *(f"| {name} | {escaped(text)} |" for name, text in facts(preview, hide)), ""]
    if preview.summary.largest:
        names, rows = largest(preview, keys, hide)
        lines += ["### Largest changes", "", _row(names), "|" + "---|" * len(names), *map(_row, rows), ""]
    lines += [f"Note: {note}." for note in notes(preview)]
    return "\n".join(lines)


def size(count: int) -> str:
    """Bytes for people.

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
    r"""Text of others in Markdown, on one line: it shows as it is, and is neither markup nor HTML nor a link.

    >>> print(escaped("a|b\n<script> [x](y) **c**"))
    a\|b &lt;script&gt; \[x\](y) \*\*c\*\*
    """
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(r"\\\g<0>", plain)


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1 else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _change(was: Any, now: Any) -> str:
    if isinstance(was, str) or isinstance(now, str):
        from decimal import Decimal

        was, now = Decimal(was), Decimal(now)
    difference = now - was
    return f"{'+' if difference > 0 else ''}{_number(difference)}"


def _from_to(before: Any, after: Any, was: bool, is_now: bool) -> str:
    then, now = (instant(time_of(x)) if isinstance(x, datetime) and x.tzinfo else str(x) for x in (before, after))
    if not was:
        return now
    if not is_now:
        return f"{then} → gone"
    return now if before == after else f"{then} → {now}"
