"""Screen of the command line, and output that several commands share: tables, rows, values, files left out."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from windowlib.definition.instants import instant, time_of
from windowlib.definition.json_text import as_json
from windowlib.definition.plurals import counted
from windowlib.definition.visible import visible
from windowlib.source.transfers import has_prefix, is_unfinished

if TYPE_CHECKING:
    import pyarrow as pa


ROWS_SHOWN = 20
FILES_SHOWN = 5


class Screen(Console):
    """Console that shows the control characters of a string instead of obeying them."""

    def render_str(self, text: str, **style: Any) -> Text:
        """Renders a string with visible control characters. The console calls this for every string, also in tables."""
        return super().render_str(visible(text), **style)


def console(*, quiet: bool = False) -> Console:
    """Screen of the command. In a file or a pipe, lines have no maximum length."""
    width = None if sys.stdout.isatty() else 10_000
    return Screen(quiet=quiet, width=width, emoji=False)


def table_of(
    names: Iterable[str], right: Collection[str] = (), *, wraps: bool = True, title: str | None = None
) -> Table:
    """Table without rows. The columns named in `right` are flush right."""
    table = Table(box=None, header_style="bold", pad_edge=False, title=title, title_justify="left")
    for name in names:
        table.add_column(
            escape(name),
            justify="right" if name in right else "left",
            overflow="fold" if wraps else "ellipsis",
            no_wrap=not wraps,
        )
    return table


def show_rows(screen: Console, rows: pa.Table) -> None:
    """Prints the first rows of a table, and the number of all rows."""
    from windowlib.delta.data_files import rows_of

    table = table_of(rows.column_names)
    for row in rows_of(rows.slice(0, ROWS_SHOWN)):
        table.add_row(*(_cell(value) for value in row.values()))
    if rows.num_columns:
        screen.print(table)
    shown = (
        f", of which the first {ROWS_SHOWN} are shown (--out FILE.csv for all)" if rows.num_rows > ROWS_SHOWN else ""
    )
    screen.print(f"{counted(rows.num_rows, 'row')}{shown}", highlight=False)


def _cell(value: Any) -> str:
    return "[dim]null[/dim]" if value is None else escape(readable(value))


def readable(value: Any) -> str:
    """Text of a row's value for people, without the quotes of JSON.

    >>> readable(Decimal("1566.02")), readable(Decimal("0E-10")), readable(date(2026, 3, 2)), readable(["a"])
    ('1566.02', '0.0000000000', '2026-03-02', '["a"]')
    >>> readable(datetime(2026, 3, 29, 2, 30))  # without a zone
    '2026-03-29 02:30:00'
    """
    match value:
        case str():
            return value
        case datetime():
            shown = instant(time_of(value))
            return shown if value.tzinfo else shown.removesuffix(" UTC")
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case float():
            return json.dumps(value)
    return as_json(value)


def left_out_sentences(left_out: Sequence[str]) -> list[str]:
    """Sentences about the files that runs leave out, by patterns or as unfinished transfers. Names the first few."""
    unfinished = sorted((name for name in left_out if is_unfinished(name)), key=has_prefix)
    by_patterns = [name for name in left_out if not is_unfinished(name)]
    sentences = []
    for names, reason in (
        (by_patterns, "left out by source.include and source.exclude"),
        (unfinished, "left out, named like unfinished transfers"),
    ):
        shown = ", ".join(names[:FILES_SHOWN]) + (", …" if len(names) > FILES_SHOWN else "")
        sentences += [f"{counted(len(names), 'file')} {reason}: {shown}"] if names else []
    return sentences
