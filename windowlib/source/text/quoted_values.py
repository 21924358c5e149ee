r"""Search for misplaced quotes in CSV text, which could hide records in one long value.

RFC 4180: a quote at the start of a value opens it. A quote before a delimiter or a line break closes it. Between these
two quotes the value may have line breaks, and each quote in it is doubled.

An engine reads from an opening quote to the next quote, regardless of the character after that. If a quote was
forgotten, the next quote opens another value, and all records up to there become one value. So three conditions must
hold for a value with line breaks:

- A delimiter, a line break or the end of the text follows its closing quote, possibly after blanks.
- If its closing quote might instead open a value (a delimiter or a line break precedes it), no later quote is out of
  place.
- If its opening quote might instead close a value (a delimiter or a line break follows it), no earlier closing quote is
  out of place.

A quoted value that begins with any character except a delimiter, line break or quote shows that all earlier quotes are
paired correctly.

If an escape follows the closing quote, and the escape character is not the quote, Spark reads on past delimiters and
line breaks. Such a value is never accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from windowlib.definition.toml.source import FileDialect


@dataclass(frozen=True, slots=True)
class Fault:
    """Misplaced quote in a CSV text.

    opened:       line of the quote that opens the value
    out_of_place: line of the misplaced quote; None if no quote closes the value
    """

    opened: int
    out_of_place: int | None


def fault(pieces: Iterable[str], dialect: FileDialect) -> Fault | None:
    r"""Finds the first fault in CSV text that arrives in pieces. Returns None if there is no fault.

    >>> texts = ["a,'b", "'a','b'", "'a''", "'a''','b'", "a,b'c", "a,'b\nc'", "a,'b\nc'd", "a,'b\nc,'\nd'"]
    >>> faults = [fault([text], FileDialect(quote="'")) for text in texts]
    >>> [(fault.opened, fault.out_of_place) if fault else None for fault in faults]
    [(1, None), None, (1, None), None, None, None, (1, 2), (1, 3)]
    >>> [fault([text], FileDialect(quote="'", escape="\\")) is None for text in (r"'a\'", r"'a\\'", r"'a\'','b'")]
    [False, True, True]
    """
    reader = _Reader(dialect)
    for piece in chain("\n", pieces):
        if problem := reader.read(piece):
            return problem
    return reader.read("\n", is_last=True)


class _Reader:
    """Scanner of quoted values. It scans an unclosed value again after twice as much text has arrived."""

    def __init__(self, dialect: FileDialect) -> None:
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
        self.doubtful: int | None = None  # line of a value that may be text between two values
        self.astray: int | None = None  # line of a closing quote that other text follows

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
        """Scans the buffered text up to the last complete value, or up to the first fault."""
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
            if problem := self._fault_of(value):
                return problem
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
        """Line of a position in the buffered text. Positions must not decrease from call to call."""
        self.line += self.text.count("\n", self.counted, at)
        self.counted = at
        return self.line
