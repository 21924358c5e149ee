"""What only a look at all of a CSV file says: whether its records may have several lines, and whether its quotes close.

A quote that opens a value and is never closed makes one value of what follows, records among it: a file that may have
one (`windowlib.source.text.quoted_values`) is refused. A line of nothing but delimiters that are blanks is a record
without values; where each line is taken for a record, Spark passes it over as empty.
"""

from __future__ import annotations

import re
from pathlib import Path

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.toml.source import Dialect, Source
from windowlib.source.listed import SourceError
from windowlib.source.text import decompression as packed
from windowlib.source.text import quoted_values

_OVERLAP = 64  # bytes of a line of blanks that may lie across two chunks


def may_have_longer_records(source: Source, path: Path) -> bool:
    """Whether one task must read a file, with one kind of line break. Raises `SourceError` for an open quote."""
    dialect = source.dialect
    if dialect.multi_line is False:
        return False
    has_quotes, has_blanks = (True, True) if dialect.encoding == "UTF-16" else _looked_at(path, dialect)
    if has_quotes:
        _check_quotes(source, path)
    return bool(dialect.multi_line) or has_quotes or has_blanks


def _looked_at(path: Path, dialect: Dialect) -> tuple[bool, bool]:
    """Whether a file has quotes, and whether it has a line of nothing but delimiters, which are blanks."""
    quote, has_quotes, has_blanks, before = dialect.quote.encode(dialect.encoding, "replace"), False, False, b"\n"
    delimiter = re.escape(dialect.delimiter.encode(dialect.encoding, "replace"))
    blanks = re.compile(rb"[\r\n][ \t]*" + delimiter + rb"[ \t]*[\r\n]") if dialect.delimiter.isspace() else None
    for chunk in packed.chunks(path):
        known = before + chunk
        has_quotes = has_quotes or quote in known
        has_blanks = has_blanks or bool(blanks and blanks.search(known))
        before = known[-_OVERLAP:]
    return has_quotes, has_blanks or bool(blanks and blanks.search(before + b"\n"))


def _check_quotes(source: Source, path: Path) -> None:
    skipped = source.dialect.skip_lines
    text = packed.texts(path, source.dialect.encoding, skipped)
    if (found := quoted_values.fault(text, source.dialect)) is None:
        return
    name = path.relative_to(source.path).as_posix()
    if found.out_of_place is None:
        says = f"the quote that opens a value in line {found.opened + skipped} is never closed, so all that follows"
        says += " would be that value"
    else:
        says = f"the quote in line {found.out_of_place + skipped} neither opens nor closes a value, so the value in"
        says += f" quotes that begins in line {found.opened + skipped} may hold other records"
    raise SourceError(
        f"{path}: {says}."
        f" Repair the file, or set it aside: `{to_paste('set-aside', source.file, name, *WHY)}`; where quotes mean"
        f" nothing, say so in {source.file}: source.dialect.multi_line = false"
    )
