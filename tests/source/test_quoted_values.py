"""Records of a CSV file never disappear in a value of another record, for any missing quote."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib.definition.toml.source import FileDialect
from windowlib.source.text.quoted_values import Fault, fault

COMMA, SEMICOLON, ESCAPES = (
    FileDialect(),
    FileDialect(delimiter=";", quote="'"),
    FileDialect(delimiter="\t", escape="\\"),
)

TEXTS: dict[str, tuple[FileDialect, str, Fault | None]] = {
    "nothing": (COMMA, "", None),
    "values of RFC 4180": (COMMA, 'a,"b ""c"", d\r\n"\r\n"e\n\n""f""",""\n"","""",",\n"\n', None),
    "blanks behind a quote": (COMMA, 'a,"b\nc" \t,"d\ne"  ', None),
    "quotes inside of a value": (COMMA, 'a,5"\nb,6" "7"\nc,"8" d\n', None),
    "quotes inside of a value of a file with longer ones": (COMMA, 'a,"b\nc"\nd,5"\ne,"f\n","g"\nh,"i" 6"\n', None),
    "an open quote": (COMMA, 'a,b\nc,"d\ne,f\n', Fault(2, None)),
    "an open quote at the end": (COMMA, 'a,b\nc,"', Fault(2, None)),
    "one, and quotes that close": (COMMA, 'a,"b\nc,"d"\ne,f\n', Fault(1, 2)),
    "two in the last column": (COMMA, 'a,1,"b\nc,2,d\ne,3,"f\ng,4,h\n', Fault(1, 3)),
    "two in the first column": (COMMA, '"a,b\n"c,d\n', Fault(1, 2)),
    "two in columns between": (COMMA, 'a,"b,1\nc,d,2\ne,"f,3\n', Fault(1, 3)),
    "two, with other quotes": (SEMICOLON, "a;'b\r\nc;'d\r\n", Fault(1, 2)),
    "two, with escapes": (ESCAPES, 'a\t"b\\"\nc\t"d\n', Fault(1, 2)),
    "one whose line has another quote": (COMMA, 'a,5","b\nc,d,e\n', Fault(1, None)),
    "two whose lines have other quotes": (COMMA, 'a,5","b\nc,6","d\n', Fault(2, None)),
    "one before a value that begins with a delimiter": (COMMA, 'a,"b\nc,", d"\n', Fault(1, 2)),
    "one before a value that begins with a line break": (COMMA, 'a,"b\nc,"\nd"\ne,f\n', Fault(1, 3)),
    "one before a value that begins with quotes and a delimiter": (COMMA, 'a,"b\nc,""",d"\n', Fault(1, 2)),
    "one before values that do": (COMMA, 'a,"b,c\nd,",e,",f\ng,h,"i"\n', Fault(1, 3)),
    "one before a value on its line": (COMMA, '","a,"\n"",""\n",""\n', Fault(1, 1)),
    "one before blanks on its line": (COMMA, '"," ,"\n"",""\n",""\n', Fault(1, 1)),
    "two before blanks": (COMMA, 'a,"b\nc," \n', Fault(1, 2)),
    "an escape behind a value": (ESCAPES, 'a\t"b"" \\c"\n"d"\\e\t\nf\tg\n', Fault(2, 2)),
    "an escape behind a value that ends with quotes": (ESCAPES, 'a\t"b"""\\\nf\tg\n', Fault(1, 1)),
    "a value whose quotes are not doubled": (COMMA, 'a,"b\n "c" d"\n', Fault(1, 2)),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_quote_that_may_hide_records_is_found(case: str) -> None:
    dialect, text, expected = TEXTS[case]
    for size in range(1, len(text) + 2):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert fault(pieces, dialect) == expected, size


VALUES = st.text('ab,"\n\r ', max_size=6)
RECORDS = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(VALUES, min_size=width, max_size=width), min_size=1, max_size=8)
)
WELL_FORMED = re.compile(r'(?:(?:"(?:[^"]|"")*+"|[^",\r\n]*+)[,\r\n])*+')


def written(record: Sequence[str], quoting: Literal[0, 1]) -> list[str]:
    """Text of a record's values."""
    lines = [io.StringIO() for _ in record]
    for value, line in zip(record, lines, strict=True):
        csv.writer(line, quoting=quoting).writerow([value])
    return [line.getvalue().removesuffix("\r\n") for line in lines]


def damaged(values: Sequence[str], column: int) -> list[str]:
    """A record with an open quote in one value."""
    value = values[column]
    return [*values[:column], value[:-1] if value.startswith('"') else f'"{value}', *values[column + 1 :]]


def text_of(lines: Sequence[Sequence[str]]) -> str:
    return "".join(f"{','.join(line)}\n" for line in lines)


@given(RECORDS, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), st.data())
def test_no_record_disappears(records: list[list[str]], quoting: Literal[0, 1], data: st.DataObject) -> None:
    """Two open quotes at most: of more, two may make a value as RFC 4180 has it, and the others be seen for themselves.

    Python reads a text in the same records as Spark does.
    """
    lines = [written(record, quoting) for record in records]
    assert fault([text_of(lines)], COMMA) is None

    at = st.tuples(st.integers(0, len(records) - 1), st.integers(0, len(records[0]) - 1))
    for row, column in (damages := data.draw(st.lists(at, min_size=1, max_size=2, unique_by=lambda one: one[0]))):
        lines[row] = damaged(lines[row], column)
    text = text_of(lines)
    if fault([text], COMMA) or WELL_FORMED.fullmatch(text):
        return
    read = iter(csv.reader(io.StringIO(text, newline="")))
    for row, record in enumerate(records):
        assert row in dict(damages) or record in read, text
