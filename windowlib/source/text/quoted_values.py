r"""Where a text of CSV may hold records that it does not show: an open quote makes one value of all that follows.

RFC 4180: a quote opens a value where it stands first in it, and closes it where a delimiter or a line break follows; a
value between two such quotes may have line breaks, and holds each quote twice. Engines read on from a quote that opens
a value to the next one, whatever follows that. Where a quote was forgotten, the next one opens another value, and the
records up to there become one value. So a value with line breaks counts only if

- a delimiter, a line break or the end of the text follows the quote that closes it, after blanks or none; and
- no quote is out of place behind it, where the one that closes it may as well open a value, since a delimiter or a line
  break stands before it; and
- none is that closes another value before it, where the one that opens it may as well close that one, since a delimiter
  or a line break follows.

A value that begins with anything else shows that quotes are in step again.

With an escape of its own, Spark reads on in a value, past delimiters and line breaks, if an escape follows the quote
that closes it: such a value never counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from windowlib.definition.toml.source import Dialect


@dataclass(frozen=True, slots=True)
class Fault:
    """The line of the quote that opens a value, and of the one that is out of place; None where nothing closes it."""

    opened: int
    out_of_place: int | None


def fault(pieces: Iterable[str], dialect: Dialect) -> Fault | None:
    r"""The first fault of a text, which comes in pieces; None without one.

    >>> texts = ["a,'b", "'a','b'", "'a''", "'a''','b'", "a,b'c", "a,'b\nc'", "a,'b\nc'd", "a,'b\nc,'\nd'"]
    >>> [(found.opened, found.out_of_place) if (found := fault([text], Dialect(quote="'"))) else None for text in texts]
    [(1, None), None, (1, None), None, None, None, (1, 2), (1, 3)]
    >>> [fault([text], Dialect(quote="'", escape="\\")) is None for text in (r"'a\'", r"'a\\'", r"'a\'','b'")]
    [False, True, True]
    """
    reader = _Reader(dialect)
    for piece in chain("\n", pieces):
        if found := reader.read(piece):
            return found
    return reader.read("\n", is_last=True)


class _Reader:
    """Reads quoted values; a value that is not closed in a piece is looked at again when there is twice as much."""

    def __init__(self, dialect: Dialect) -> None:
        quote, delimiter = re.escape(dialect.quote), re.escape(dialect.delimiter)
        escape = re.escape(dialect.escape or dialect.quote)
        other = rf"{quote}{quote}" if escape == quote else rf"{escape}.?"
        inside = rf"[^{quote}{escape}]*+(?:{other}[^{quote}{escape}]*+)*+"
        ends, blanks = rf"[{delimiter}\r\n]", rf"(?:(?!{delimiter})[ \t])*+"
        usual = rf"(?<={ends})(?:{quote}{quote}|{quote}{inside}(?<![{quote}{delimiter}\r\n]){quote})(?={blanks}{ends})"
        self.usual = re.compile(rf"(?:[^{quote}]*+(?:{usual}|(?<!{ends}){quote}))*+", re.DOTALL)
        self.value = re.compile(rf"{quote}({inside})({quote}?)({quote}*+{escape}?)({blanks})", re.DOTALL)
        self.quote, self.quoting = dialect.quote, dialect.quote + dialect.escape
        self.ends = (dialect.delimiter, "\r", "\n")
        self.text, self.at, self.pieces, self.wanted = "", 0, [""], 0
        self.line, self.counted = 0, 0
        self.doubtful: int | None = None  # the line of a value that may be none
        self.astray: int | None = None  # that of a quote which other text follows

    def read(self, piece: str, *, is_last: bool = False) -> Fault | None:
        self.pieces.append(piece)
        if sum(map(len, self.pieces)) < self.wanted and not is_last:
            return None
        start = max(self.at - 1, 0)
        self._line_of(start)
        self.text = self.text[start:] + "".join(self.pieces)
        self.at, self.counted, self.pieces, self.wanted = self.at - start, self.counted - start, [], 0
        return self._faults(is_last)

    def _faults(self, is_last: bool) -> Fault | None:
        """Reads on in the text at hand, as far as it shows what is in it."""
        while True:
            if not (self.doubtful or self.astray) and (usual := self.usual.match(self.text, self.at)):
                self.at = usual.end()
            if (opened := self.text.find(self.quote, self.at)) < 0:
                self.at = len(self.text)
                return None
            if self.text[opened - 1] not in self.ends:
                if self.doubtful is not None:
                    return Fault(self.doubtful, self._line_of(opened))
                self.at = opened + 1
                continue
            value = self.value.match(self.text, opened)
            assert value
            if value.end() == len(self.text) and not is_last:
                self.at, self.wanted = opened, len(self.text) - opened
                return None
            if found := self._fault_of(value):
                return found
            self.at = value.end(2)

    def _fault_of(self, value: re.Match[str]) -> Fault | None:
        held, closing, behind, blanks = value.groups()
        line = self._line_of(value.start())
        if not closing:
            return Fault(line, None)
        is_long = "\n" in held or "\r" in held
        may_open = held.rstrip(self.quoting).endswith(self.ends)
        in_step = held != "" and not held.startswith((*self.ends, self.quote))
        is_loose = bool(blanks) and (may_open or not (in_step or self.doubtful is None))
        if behind or self.text[value.end()] not in self.ends or is_loose:
            self.astray = self._line_of(value.end(2))
            reads_on = is_long or behind[-1:] not in ("", self.quote)
            doubtful = self.doubtful or (line if reads_on else None)
            return None if doubtful is None else Fault(doubtful, self.astray)
        if in_step:
            self.doubtful = self.astray = None
        elif is_long and self.astray:
            return Fault(line, self.astray)
        if is_long and may_open:
            self.doubtful = line
        return None

    def _line_of(self, at: int) -> int:
        """The line of a place in the text at hand; places are asked for in order."""
        self.line += self.text.count("\n", self.counted, at)
        self.counted = at
        return self.line
