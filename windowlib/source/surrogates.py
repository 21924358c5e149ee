r"""Halves of surrogate pairs in JSON: `"\ud83d"` alone is not a character, and engines read a question mark for it.

So a record that has one is malformed: files in which one may be are read line by line, as texts first. Where a record
has no line of its own, the file is refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from windowlib.plans.functions import F
from windowlib.source.found import SourceError

if TYPE_CHECKING:
    from pyspark.sql import Column

CHUNK_BYTES = 1 << 20
_HALF = r"\\u[dD][89a-fA-F]"
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_WHOLE = rf"{_PAIR}|\\[^u]"  # what a half may not be part of: another backslash may stand before it
_MAY_BE = re.compile(rb"\\u[dD][89a-fA-F]")
_RAW = re.compile(rb"\xed[\xa0-\xbf]")  # a half that a wrong encoder has written as if it were a character
_LONGEST = 4  # bytes of a mark that may lie across two chunks


def may_be_in(path: Path) -> bool:
    """Whether a file has the beginning of a half, or of a pair."""
    before = b""
    with pa.input_stream(path, compression="detect") as stream:
        for chunk in iter(lambda: stream.read(CHUNK_BYTES), b""):
            if _MAY_BE.search(before + chunk):
                return True
            before = chunk[1 - _LONGEST :]
    return False


def check_whole(path: Path, encoding: str) -> None:
    """Raises `SourceError` for a file, read as a whole, that has a half."""
    with pa.input_stream(path, compression="detect") as stream:
        content = stream.read()
    text = re.sub(_WHOLE, " ", content.decode(encoding, "replace"), flags=re.DOTALL)
    if re.search(_HALF, text) or (encoding == "UTF-8" and _RAW.search(content)):
        raise SourceError(
            f"{path} has half of a surrogate pair, such as \\ud83d alone, which is not a character. Repair it, or set"
            " it aside; in files with a record on each line such a record is malformed, and the others count"
        )


def has_half(line: Column) -> Column:
    r"""Whether a line of JSON has a half.

    >>> bool(re.search(_HALF, re.sub(_WHOLE, " ", r'"\\ud83d" "\ud83d\ude00"')))
    False
    """
    return F.regexp_replace(line, _WHOLE, " ").rlike(_HALF)
