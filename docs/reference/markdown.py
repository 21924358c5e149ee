"""Markdown of tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown of one line.

    >>> print(table(["key", "means"], [["`a|b`", "either"]]))
    | key | means |
    |---|---|
    | `a\\|b` | either |
    """
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def sentence(text: str) -> str:
    """`text` with a capital letter and a full stop.

    >>> sentence("the folder of the events"), sentence("`name` is taken.")
    ('The folder of the events.', '`name` is taken.')
    """
    text = " ".join(text.split())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
