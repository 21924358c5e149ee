"""What only a look at all of a CSV file says: whether its records may have several lines, and whether its quotes close.

A quote that opens a value and is never closed makes one value of all that follows, records among it: such a file is
refused. A line of nothing but delimiters that are blanks is a record without values; where each line is taken for a
record, Spark passes it over as empty.
"""

from __future__ import annotations

import re
from pathlib import Path

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.source import Dialect, Source
from windowlib.source.found import SourceError
from windowlib.source.packed import chunks, content

_OVERLAP = 64  # bytes of a line of blanks that may lie across two chunks


def may_have_longer_records(source: Source, path: Path) -> bool:
    """Whether one task must read a file, with one kind of line break. Raises `SourceError` for an open quote."""
    dialect = source.dialect
    if dialect.multi_line is False:
        return False
    of_two_bytes = dialect.encoding == "UTF-16"
    number, has_blanks = (1, True) if of_two_bytes else _counted(path, dialect)
    has_escapes = bool(number) and dialect.escape not in ("", dialect.quote)
    if of_two_bytes or has_escapes or number % 2:
        _check_closed(source, path)
    return bool(dialect.multi_line) or number > 0 or has_blanks


def _counted(path: Path, dialect: Dialect) -> tuple[int, bool]:
    """How many quotes a file has, and whether it has a line of nothing but delimiters, which are blanks."""
    quote, number, has_blanks, before = dialect.quote.encode(dialect.encoding, "replace"), 0, False, b"\n"
    delimiter = re.escape(dialect.delimiter.encode(dialect.encoding, "replace"))
    blanks = re.compile(rb"[\r\n][ \t]*" + delimiter + rb"[ \t]*[\r\n]") if dialect.delimiter.isspace() else None
    for chunk in chunks(path):
        number += chunk.count(quote)
        if blanks and not has_blanks:
            has_blanks = bool(blanks.search(before + chunk))
            before = (before + chunk)[-_OVERLAP:]
    return number, has_blanks or bool(blanks and blanks.search(before + b"\n"))


def _check_closed(source: Source, path: Path) -> None:
    text = content(path).decode(source.dialect.encoding, "replace")
    if (at := _open_quote(text, source.dialect)) is None:
        return
    line = text.count("\n", 0, at) + 1
    name = path.relative_to(source.path).as_posix()
    raise SourceError(
        f"{path}: the quote that opens a value in line {line} is never closed, so all that follows would be that value."
        f" Repair the file, or set it aside: `{to_paste('set-aside', source.file, name, *WHY)}`; where quotes mean"
        f" nothing, say so in {source.file}: source.dialect.multi_line = false"
    )


def _open_quote(text: str, dialect: Dialect) -> int | None:
    r"""Where a quote opens a value and is never closed; None without one.

    >>> texts = ["a,'b", "'a','b", "'a''", "'a''','b'", "a,b'c", "\ufeff'a"]
    >>> [_open_quote(text, Dialect(quote="'")) for text in texts]
    [2, 4, 0, None, None, 1]
    >>> [_open_quote(text, Dialect(quote="'", escape="\\")) for text in (r"'a\'", r"'a\\'", r"'a\'','b'")]
    [0, None, None]
    """
    quote, delimiter = re.escape(dialect.quote), re.escape(dialect.delimiter)
    escape = re.escape(dialect.escape or dialect.quote)
    inside = rf"[^{quote}]|{quote}{quote}" if escape == quote else rf"[^{quote}{escape}]|{escape}."
    value = rf"(?:\A\ufeff?|[{delimiter}\r\n])({quote})(?:{inside})*+({quote}?)"
    return next((found.start(1) for found in re.finditer(value, text, re.DOTALL) if not found[2]), None)
