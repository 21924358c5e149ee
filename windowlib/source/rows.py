"""Rows of source files as a DataFrame, each with its file and its row number in the file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from windowlib.definition.toml.source import Source
from windowlib.engines.choice import dialect_of
from windowlib.engines.parquet_files import rows_of_files
from windowlib.ledger.rows import SourceFile
from windowlib.plans import names
from windowlib.plans.functions import F, looked_up, quoted
from windowlib.plans.sql.kinds import STRING
from windowlib.source import parquet_rows
from windowlib.source.columns.arrow_names import named_type
from windowlib.source.columns.column_types import kind_of
from windowlib.source.columns.layout import spark_type
from windowlib.source.text import rows as text
from windowlib.source.uris import path_in, spellings, uri_of
from windowlib.storage.at_once import at_once
from windowlib.storage.object_file import ObjectFile, opened
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


WHOLE_NUMBER = "^ *[+-]?[0-9]+ *$"
FEW_FILES = 16  # whose contents are sent to the engine, if they are small


@dataclass(frozen=True, slots=True)
class SourceRows:
    """A batch's source rows: the source's columns, SOURCE_FILE (a URI), SOURCE_ROW (long), CORRUPT (string).

    SOURCE_ROW counts from 0 in file order. JSON and CSV have no row numbers. Their rows are ordered by timestamp, event
    id and the whole row. MISFIT (string) is a further column if a folder value does not fit the type of its column.

    paths:     path of each file relative to the source, by URI
    sequences: sequence number of each file, by URI
    """

    frame: DataFrame
    paths: Mapping[str, str]
    sequences: Mapping[str, int]

    @property
    def columns(self) -> list[str]:
        """Names of the source's columns, without SOURCE_FILE and the like."""
        return names.own(self.frame.columns)

    def arrival(self) -> Column:
        """Position of a row in arrival order (long): the file's sequence number, then the row number."""
        numbers = set(self.sequences.values())
        of_file = F.col(names.SOURCE_FILE)
        sequence = F.lit(*numbers) if len(numbers) == 1 else looked_up(of_file, self.sequences)
        return sequence.cast("long") * F.lit(1 << 40) + F.col(names.SOURCE_ROW)


def rows(
    spark: SparkSession,
    source: Source,
    files: Sequence[SourceFile],
    staging: Store,
    recorded: Mapping[str, str] | None = None,
) -> SourceRows:
    """Rows of some source files. JSON and CSV files are parsed once, into Parquet in `staging`.

    recorded: the types that the columns in use keep, whatever their types in these files
    """
    if not source.is_text and not dialect_of(spark).numbers_rows:
        return _scanned(spark, source, files, recorded or {})
    if source.is_text:
        read = text.read(spark, source, files, staging)
        renamed = read.select(*_renamed(source, read.columns))
        frame = _numbered(_timed(renamed, source, source.kinds), source, f"{staging.url}/rows")
    else:
        read = parquet_rows.numbered(spark, source, files, recorded or {})
        texts = {field.name for field in read.schema if field.dataType.typeName() == "string"}
        frame = _of_parquet(read, source, recorded or {}, texts)
    by_path = {f.path: f for f in files}
    uris = {
        spelled: by_path[path]
        for uri in read.inputFiles()
        if (path := path_in(source.store, uri)) in by_path  # copies in `staging` are not in it
        for spelled in spellings(uri)
    }
    if source.is_text:  # copies of these files may have been read
        uris |= {uri_of(source.store, f.path): f for f in files}
    return SourceRows(frame, {uri: f.path for uri, f in uris.items()}, {uri: f.sequence for uri, f in uris.items()})


def _scanned(
    spark: SparkSession, source: Source, files: Sequence[SourceFile], recorded: Mapping[str, str]
) -> SourceRows:
    """Rows of Parquet files on an engine that does not number them."""
    places = [opened(source.store, file.path, file.size_bytes) for file in files]
    if len(files) <= FEW_FILES:
        places = at_once(ObjectFile.kept_if_small, places)
    frame = rows_of_files(spark, places, *parquet_rows.scan_of(source, files, recorded))
    frame = _of_parquet(frame, source, recorded)
    by_address = {place.address: file for place, file in zip(places, files, strict=True)}
    paths = {address: file.path for address, file in by_address.items()}
    return SourceRows(frame, paths, {address: file.sequence for address, file in by_address.items()})


def _of_parquet(read: DataFrame, source: Source, recorded: Mapping[str, str], texts: Collection[str] = ()) -> DataFrame:
    """Renames and completes rows of Parquet files to the columns of `SourceRows`.

    texts: string columns whose values Spark checks to be UTF-8
    """
    columns = [*_renamed(source, names.own(read.columns), texts), *_lacking(source, read.columns, recorded)]
    no_text = F.lit(None).cast("string").alias(names.CORRUPT)
    misfits = [names.MISFIT] if names.MISFIT in read.columns else []
    return _timed(read.select(*columns, names.SOURCE_FILE, names.SOURCE_ROW, no_text, *misfits), source, recorded)


def _lacking(source: Source, columns: Sequence[str], recorded: Mapping[str, str]) -> list[Column]:
    """Null columns for columns in use that no file has, since all files may be older than these columns."""
    have = {source.named(name).casefold() for name in columns}
    lacking = {name.casefold(): pa.field(name, kind) for name, text in recorded.items() if (kind := named_type(text))}
    return [
        F.lit(None).cast(spark_type(field)).alias(field.name) for folded, field in lacking.items() if folded not in have
    ]


def _renamed(source: Source, columns: Sequence[str], texts: Collection[str] = ()) -> list[Column]:
    """Renames columns as in the definition. Checks that the string columns `texts` are UTF-8, since Spark does not."""
    columns_read = {name: F.col(quoted(name)) for name in columns}
    columns_read |= {name: F.validate_utf8(columns_read[name]) for name in columns if name in texts}
    return [column.alias(names.renamed(name, source.named)) for name, column in columns_read.items()]


def _timed(rows: DataFrame, source: Source, kinds: Mapping[str, str]) -> DataFrame:
    """Parses event times that are integers stored as strings. Marks other strings as malformed.

    kinds: column types, by the column's name in the definition or in the files
    """
    name = quoted(source.timestamp)
    kind = kinds.get(source.timestamp) or kinds.get(source.in_files(source.timestamp)) or ""
    if source.timestamp_unit is None or kind_of(kind.strip().casefold()) != STRING:
        return rows
    number = F.when(F.col(name).rlike(WHOLE_NUMBER), F.trim(F.col(name)).try_cast("bigint"))
    whole = dialect_of(rows.sparkSession).as_json(rows, names.own(rows.columns))
    other = F.when(F.col(name).isNotNull() & number.isNull(), whole)
    return rows.withColumns({names.CORRUPT: F.coalesce(names.CORRUPT, other), source.timestamp: number})


def _numbered(read: DataFrame, source: Source, folder: str) -> DataFrame:
    """Numbers rows of JSON or CSV within their file, and writes them to a folder as Parquet."""
    from pyspark.sql import Window

    keys = [F.col(quoted(name)) for name in (source.timestamp, source.event_id) if name]
    whole = F.to_json(F.struct(*(quoted(name) for name in read.columns if name != names.SOURCE_FILE)))
    in_order = Window.partitionBy(names.SOURCE_FILE).orderBy(*keys, whole)
    numbered = read.withColumn(names.SOURCE_ROW, F.row_number().over(in_order).cast("long") - 1)
    numbered.write.parquet(folder)
    return read.sparkSession.read.schema(numbered.schema).parquet(folder)


def with_path(spark: SparkSession, rows: DataFrame, paths: Mapping[str, str]) -> DataFrame:
    """Replaces the URI in SOURCE_FILE by source_file, the path relative to the source."""
    named = spark.createDataFrame(list(paths.items()), f"{names.SOURCE_FILE} string, source_file string")
    columns = ["source_file" if c == names.SOURCE_FILE else c for c in rows.columns]
    return rows.join(F.broadcast(named), names.SOURCE_FILE).select(*map(quoted, columns))
