r"""Halves of surrogate pairs in JSON: `"\ud83d"` alone is not a character, and engines read it as a question mark.

A record with half of a pair is malformed (`windowlib.source.text.json_lines`). If the file does not have one record per
line, the file is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from windowlib.plans.functions import F
from windowlib.source.listed import SourceError

if TYPE_CHECKING:
    from pyspark.sql import Column

_HALF = r"\\u[dD][89a-fA-F]"
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_WHOLE = rf"{_PAIR}|\\[^u]"  # removed before the search; an escaped backslash may precede a `u`
MAY_BE = re.compile(rb"\\u[dD][89a-fA-F]")
_RAW = re.compile(rb"\xed[\xa0-\xbf]")  # a half that a faulty encoder wrote as a character


def check_whole(path: str, content: bytes, encoding: str) -> None:
    """Raises `SourceError` if a file that is read as a whole has half of a surrogate pair."""
    text = re.sub(_WHOLE, " ", content.decode(encoding, "replace"), flags=re.DOTALL)
    if re.search(_HALF, text) or (encoding == "UTF-8" and _RAW.search(content)):
        raise SourceError(
            f"{path} has half of a surrogate pair, such as a lone \\ud83d, and that is no character. Repair the file,"
            " or set it aside. In files with a record on each line, only that record would be malformed"
        )


def has_half(line: Column) -> Column:
    r"""Tests if a line of JSON has half of a surrogate pair.

    >>> bool(re.search(_HALF, re.sub(_WHOLE, " ", r'"\\ud83d" "\ud83d\ude00"')))
    False
    """
    return F.regexp_replace(line, _WHOLE, " ").rlike(_HALF)
