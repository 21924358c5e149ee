"""Scan of a whole CSV file for records of several lines and quotes that are never closed.

An unclosed quote turns all records after it into one value. A file that may have such a quote is refused
(`windowlib.source.text.quoted_values`). If the delimiter is a blank, a line of only delimiters is a record without
values. Spark skips such a line as empty, unless its reader accepts records of several lines.
"""

from __future__ import annotations

import re

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.toml.source import Source
from windowlib.ledger.rows import SourceFile
from windowlib.source.listed import SourceError
from windowlib.source.text import decompression as packed
from windowlib.source.text import quoted_values

_OVERLAP = 64  # bytes kept from the last chunk, since a line of blanks may lie across two chunks


def may_have_longer_records(source: Source, file: SourceFile) -> bool:
    """Tests if one task must read the file: a record may have several lines, or a line only blank delimiters.

    Raises `SourceError` for a quote that is misplaced or never closed.
    """
    dialect = source.dialect
    if dialect.multi_line is False:
        return False
    has_quotes, has_blanks = (True, True) if dialect.encoding == "UTF-16" else _has_quotes_and_blanks(source, file)
    if has_quotes:
        _check_quotes(source, file)
    return bool(dialect.multi_line) or has_quotes or has_blanks


def _has_quotes_and_blanks(source: Source, file: SourceFile) -> tuple[bool, bool]:
    """Tests if a file has quotes, and if it has a line of only blank delimiters."""
    dialect = source.dialect
    quote, has_quotes, has_blanks, before = dialect.quote.encode(dialect.encoding, "replace"), False, False, b"\n"
    delimiter = re.escape(dialect.delimiter.encode(dialect.encoding, "replace"))
    blanks = re.compile(rb"[\r\n][ \t]*" + delimiter + rb"[ \t]*[\r\n]") if dialect.delimiter.isspace() else None
    for chunk in packed.chunks(source.store, file):
        window = before + chunk
        has_quotes = has_quotes or quote in window
        has_blanks = has_blanks or bool(blanks and blanks.search(window))
        before = window[-_OVERLAP:]
    return has_quotes, has_blanks or bool(blanks and blanks.search(before + b"\n"))


def _check_quotes(source: Source, file: SourceFile) -> None:
    skipped = source.dialect.skip_lines
    text = packed.texts(source.store, file, source.dialect.encoding, skipped)
    if (fault := quoted_values.fault(text, source.dialect)) is None:
        return
    if fault.out_of_place is None:
        problem = f"the quoted value that begins in line {fault.opened + skipped} is never closed, so it would contain"
        problem += " the rest of the file"
    else:
        problem = f"the quote in line {fault.out_of_place + skipped} neither opens nor closes a value, so the quoted"
        problem += f" value that begins in line {fault.opened + skipped} may contain other records"
    raise SourceError(
        f"{source.store}/{file.path}: {problem}."
        f" Repair the file, or set it aside: `{to_paste('set-aside', source.file, file.path, *WHY)}`. If no record has"
        f" several lines, set source.dialect.multi_line = false in {source.file}"
    )
