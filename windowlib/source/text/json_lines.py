r"""Lines of JSON that Spark reads otherwise than they are written, in files with a record on each.

A line with half of a surrogate pair (`windowlib.source.text.surrogates`) is not a text; of a line with several records,
as in `{"a": 1}{"a": 2}`, Spark reads the first and passes the others over. Such a line is malformed, the others count.
So files in which one may be, which a look at their bytes says, are looked at line by line; where there is one, the
others are copied, and the copy is read in the place of the file.

A file whose records have several lines is one record, or one list of them, for Spark: whatever follows would be passed
over, so such a file is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from windowlib.plans import names
from windowlib.plans.functions import F, looked_up
from windowlib.source.listed import SourceError
from windowlib.source.text import surrogates
from windowlib.source.text.decompression import chunks

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

NUMBER = names.internal("file_number")
_OVERLAP = 64  # bytes of a mark that may lie across two chunks
_AFTER_A_RECORD = rb'[}\]][ \t]*(?:,[ \t]*[{\[]|[^ \t\r\n,}\]"\\])'  # within a record, too, but seldom
_MAY_BE_ODD = re.compile(surrogates.MAY_BE.pattern + rb"|" + _AFTER_A_RECORD)
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"?|[{\[]|[}\]]', re.DOTALL)
_NOT_FINITE = r"[+-]?(?:NaN|INF|Infinity)"


def may_be_odd(path: Path) -> bool:
    """Whether a file may have such a line."""
    before = b""
    for chunk in chunks(path):
        if _MAY_BE_ODD.search(before + chunk):
            return True
        before = (before + chunk)[-_OVERLAP:]
    return False


def is_odd(line: Column) -> Column:
    """Whether a line has half a character, or is not one value of JSON."""
    counted = F.json_array_length(F.concat(F.lit("["), F.regexp_replace(line, _NOT_FINITE, "0"), F.lit(",0]")))
    return surrogates.has_half(line) | ~F.coalesce(counted == 2, F.lit(False))


def read(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """The lines of files that have something in them: value (string), SOURCE_FILE. `paths` are as Spark takes them."""
    lines = spark.read.text([*paths])
    of_file = lines.metadataColumn("_metadata")["file_path"].alias(names.SOURCE_FILE)
    return lines.select("value", of_file).where(F.trim("value") != "")


def odd_files(lines: DataFrame) -> list[str]:
    """The files of some lines that have such a one, as URIs."""
    return sorted(row[0] for row in lines.where(is_odd(F.col("value"))).select(names.SOURCE_FILE).distinct().collect())


def copied(lines: DataFrame, uris: Sequence[str], folder: Path) -> None:
    """Keeps the other lines of these files in a folder, with the NUMBER that each file has among them."""
    number = looked_up(F.col(names.SOURCE_FILE), {uri: number for number, uri in enumerate(uris)})
    others = lines.where(number.isNotNull() & ~is_odd(F.col("value")))
    others.select("value", number.alias(NUMBER)).write.partitionBy(NUMBER).text(str(folder))


def check_one_record(path: Path, text: str) -> None:
    """Raises `SourceError` where something follows the record, or the list, that a file's text begins with."""
    if text[_end_of_first(text) :].strip(" \t\r\n\ufeff\0"):
        raise SourceError(
            f"{path} has more than one value of JSON, and source.dialect.multi_line reads the first of a file: write"
            " one list of records. In files with a record on each line leave multi_line out"
        )


def _end_of_first(text: str) -> int:
    """Where the first object or list of a text ends; its end where it does not.

    >>> [_end_of_first(text) for text in ('{"a": "}"} {}', "[{}, []]", "[{}", "1", r'{"\\"}": 1}')]
    [10, 8, 3, 1, 10]
    """
    depth = 0
    for token in _TOKENS.finditer(text):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
            if depth <= 0:
                return token.end()
    return len(text)
