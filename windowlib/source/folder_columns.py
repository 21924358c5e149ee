"""Columns that stand in the names of folders, where Spark by itself finds none or others.

Spark takes a source for one table, whose files all lie equally deep, below folders of the same names, each with a
value, in its own spelling. The files of other writers need not: some may lie above, or below other folders, and
Arrow and delta-rs write a byte of UTF-8 where Spark writes a character.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from windowlib.plans import names
from windowlib.plans.functions import F, looked_up
from windowlib.plans.partitions import folder_values
from windowlib.source.uris import file_of, spellings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_LAST_PART = "/[^/]*$"
_NOT_SPARKS = r"=(?:/|$)|(?:^|/)=|%[89a-fA-F]"


def are_as_spark_finds(paths: Collection[str]) -> bool:
    """Whether Spark reads the same from the folders of these files as `folder_values`.

    >>> are_as_spark_finds(["a=1/b=2/1", "a=1/b=3/2"]), are_as_spark_finds(["1", "2"])
    (True, True)
    >>> others = "a=1/1", "1", "b=2/a=1/1", "a=1/b=/1", "a=1/b=%C3%A9/1"
    >>> [are_as_spark_finds(["a=1/b=2/1", other]) for other in others]
    [False, False, False, False, False]
    """
    folders = {path.rpartition("/")[0] for path in paths}
    columns = {tuple(part.partition("=")[0] for part in folder.split("/") if "=" in part) for folder in folders}
    return len(columns) <= 1 and not any(re.search(_NOT_SPARKS, folder) for folder in folders)


def with_values(rows: DataFrame, source: Path, uris: Sequence[str], types: Mapping[str, DataType]) -> DataFrame:
    """Rows, with SOURCE_FILE, of these files below `source`, with the columns of their folders, of these types."""
    found: dict[str, Mapping[str, str | None]] = {}
    for uri in uris:
        of_file = folder_values(file_of(uri).relative_to(source).as_posix())
        for spelled in spellings(uri):
            found[re.sub(_LAST_PART, "", spelled)] = of_file
    folder = F.regexp_replace(names.SOURCE_FILE, _LAST_PART, "")
    columns = {}
    for name, kind in types.items():
        known = {one: F.lit(values[name]).cast("string") for one, values in found.items()}
        columns[name] = looked_up(folder, known).cast(kind)
    return rows.withColumns(columns) if columns else rows
