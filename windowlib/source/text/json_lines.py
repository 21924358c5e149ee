r"""Lines of JSON that Spark misreads, in files with a record on each line.

Two kinds of lines are *odd*, and become malformed rows:

* a line with half of a surrogate pair (`windowlib.source.text.surrogates`), which is not a character
* a line with several records, as in `{"a": 1}{"a": 2}`, of which Spark reads only the first

A search of the bytes finds files that may have odd lines. Spark then tests each line of these files. If a file has odd
lines, its other lines are copied, and the copy is read instead.

In multi-line mode Spark reads one record, or one list of records, and ignores the rest of the file. A file with any
further content is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from windowlib.ledger.rows import SourceFile
from windowlib.plans import names
from windowlib.plans.functions import F, looked_up
from windowlib.source.listed import SourceError
from windowlib.source.text import surrogates
from windowlib.source.text.decompression import chunks
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

NUMBER = names.internal("file_number")
_OVERLAP = 64  # bytes kept from the last chunk, since a match may lie across two chunks
_AFTER_A_RECORD = rb'[}\]][ \t]*(?:,[ \t]*[{\[]|[^ \t\r\n,}\]"\\])'  # rarely matches within a record, too
_MAY_BE_ODD = re.compile(surrogates.MAY_BE.pattern + rb"|" + _AFTER_A_RECORD)
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"?|[{\[]|[}\]]', re.DOTALL)
_NOT_FINITE = r"[+-]?(?:NaN|INF|Infinity)"


def may_be_odd(store: Store, file: SourceFile) -> bool:
    """Tests by a search of its bytes if a file may have odd lines."""
    before = b""
    for chunk in chunks(store, file):
        if _MAY_BE_ODD.search(before + chunk):
            return True
        before = (before + chunk)[-_OVERLAP:]
    return False


def is_odd(line: Column) -> Column:
    """Tests if a line has half of a surrogate pair, or is not exactly one value of JSON."""
    counted = F.json_array_length(F.concat(F.lit("["), F.regexp_replace(line, _NOT_FINITE, "0"), F.lit(",0]")))
    return surrogates.has_half(line) | ~F.coalesce(counted == 2, F.lit(False))


def read(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Non-blank lines of files: value (string), SOURCE_FILE. `paths` are escaped for Spark."""
    lines = spark.read.text([*paths])
    of_file = lines.metadataColumn("_metadata")["file_path"].alias(names.SOURCE_FILE)
    return lines.select("value", of_file).where(F.trim("value") != "")


def odd_files(lines: DataFrame) -> list[str]:
    """URIs of the files that have odd lines."""
    return sorted(row[0] for row in lines.where(is_odd(F.col("value"))).select(names.SOURCE_FILE).distinct().collect())


def copy_other_lines(lines: DataFrame, uris: Sequence[str], folder: str) -> None:
    """Writes the lines that are not odd to a folder, partitioned by NUMBER, the position of the file in `uris`."""
    number = looked_up(F.col(names.SOURCE_FILE), {uri: number for number, uri in enumerate(uris)})
    others = lines.where(number.isNotNull() & ~is_odd(F.col("value")))
    others.select("value", number.alias(NUMBER)).write.partitionBy(NUMBER).text(folder)


def check_one_record(path: str, text: str) -> None:
    """Raises `SourceError` if the content of a file goes on after its first record or list."""
    if text[_end_of_first(text) :].strip(" \t\r\n\ufeff\0"):
        raise SourceError(
            f"{path} has more than one JSON value, but source.dialect.multi_line reads only the first. Write one list"
            " of records. If each line is a record, leave multi_line out"
        )


def _end_of_first(text: str) -> int:
    """Position after the first JSON object or list; the length of `text` if that object or list is not closed.

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
