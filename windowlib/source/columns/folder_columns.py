"""Partition columns in folder names (`store=1/`) that Spark misreads or does not find.

Spark expects all files at the same depth, below folders for the same columns, with values in Spark's own spelling.
Other writers put files at different depths, or below folders for different columns. Arrow and delta-rs escape each byte
of a non-ASCII character. Spark does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from windowlib.ledger.rows import SourceFile
from windowlib.plans import names
from windowlib.plans.functions import F, quoted
from windowlib.plans.partitions import folder_values
from windowlib.plans.sql.kinds import STRING
from windowlib.source.columns.partition_values import is_value, misfit
from windowlib.source.uris import path_in, spellings
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LAST_PART = "/[^/]*$"
_NOT_SPARKS = r"=(?:/|$)|(?:^|/)=|%[89a-fA-F]"


def are_as_spark_finds(files: Collection[SourceFile]) -> bool:
    """Tests if Spark finds the right partition values of these files in the names of their folders.

    >>> of = lambda *paths: [SourceFile(path, 1, 1, 1) for path in paths]
    >>> are_as_spark_finds(of("a=1/b=2/1", "a=1/b=3/2")), are_as_spark_finds(of("1", "2"))
    (True, True)
    >>> others = "a=1/1", "1", "b=2/a=1/1", "a=1/b=/1", "a=1/b=%C3%A9/1"
    >>> [are_as_spark_finds(of("a=1/b=2/1", other)) for other in others]
    [False, False, False, False, False]
    >>> are_as_spark_finds([SourceFile("a=1/1", 1, 1, 1, '{"a": "2"}')])
    False
    """
    if any(file.partition_values is not None and file.values != folder_values(file.path) for file in files):
        return False
    folders = {file.path.rpartition("/")[0] for file in files}
    columns = {tuple(part.partition("=")[0] for part in folder.split("/") if "=" in part) for folder in folders}
    return len(columns) <= 1 and not any(re.search(_NOT_SPARKS, folder) for folder in folders)


def with_values(rows: DataFrame, uris: Sequence[str], store: Store, files: Sequence[SourceFile]) -> DataFrame:
    """Adds the partition columns as strings to rows with SOURCE_FILE, the URI of a file in the source's store."""
    by_folder = all(file.partition_values is None for file in files)
    by_path = {file.path: file for file in files}
    values_of: dict[str, dict[str, str | None]] = {}
    for uri in uris:
        for spelled in spellings(uri):
            values_of[spelled.rpartition("/")[0] if by_folder else spelled] = by_path[path_in(store, uri) or uri].values
    place = F.regexp_replace(names.SOURCE_FILE, _LAST_PART, "") if by_folder else F.col(names.SOURCE_FILE)
    columns = {}
    for name in dict.fromkeys(name for values in values_of.values() for name in values):
        texts = {uri: values[name] for uri, values in values_of.items()}
        columns[name] = F.element_at(F.from_json(F.lit(json.dumps(texts)), "map<string, string>"), place)
    return rows.withColumns(columns) if columns else rows


def misfits_of(files: Iterable[SourceFile], kinds: Mapping[str, str]) -> dict[str, list[str]]:
    """Maps each partition column to the strings that are not values of the column's type."""
    texts = {(name, text): None for file in files for name, text in file.values.items() if kinds[name] != STRING}
    misfits: dict[str, list[str]] = {}
    for name, text in texts:
        if text is not None and not is_value(text, kinds[name]):
            misfits.setdefault(name, []).append(text)
    return misfits


def typed(rows: DataFrame, kinds: Mapping[str, str], misfits: Mapping[str, Sequence[str]]) -> DataFrame:
    """Casts partition columns from strings to their types.

    A value that does not fit its type becomes null, and MISFIT has a message about it.
    """
    columns: dict[str, Column] = {}
    sentences = []
    for name, kind in kinds.items():
        text = F.col(quoted(name))
        if texts := misfits.get(name):
            sentences += [F.when(text == F.lit(value), F.lit(misfit(name, value, kind))) for value in texts]
            text = F.when(~text.isin(*texts), text)
        if kind != STRING:
            columns[name] = text.cast(kind)
    if misfits:
        columns[names.MISFIT] = F.coalesce(*sentences, F.lit(None).cast("string"))
    return rows.withColumns(columns) if columns else rows
