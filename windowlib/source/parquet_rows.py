"""Rows of Parquet files as a DataFrame, with the columns and types of `windowlib.source.columns.layout`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowlib.definition.toml.source import Source
from windowlib.engines.parquet_files import parquet_file, rows_read
from windowlib.ledger.rows import SourceFile
from windowlib.plans import names
from windowlib.plans.admission import thousandth
from windowlib.plans.balanced import balanced
from windowlib.plans.functions import F, quoted
from windowlib.plans.sql.kinds import NULL
from windowlib.source.columns.column_types import is_unread, kind_of, schema_of, schemas_of
from windowlib.source.columns.folder_columns import are_as_spark_finds, misfits_of, typed, with_values
from windowlib.source.columns.layout import NANOS, Layout, Types, each_once, is_readable
from windowlib.source.columns.partition_values import values_in
from windowlib.source.text import rows as text
from windowlib.storage.object_file import opened
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType


def numbered(spark: SparkSession, source: Source, files: Sequence[SourceFile], recorded: Types) -> DataFrame:
    """Rows of the files: their columns, SOURCE_FILE (a URI), SOURCE_ROW (from 0 in its file)."""
    store = source.store
    schemas = schemas_of(store, files)
    layout = Layout.of(source, files, recorded)
    misfits = misfits_of(files, layout.in_folders)
    if not are_as_spark_finds(files):
        return _with_folders(spark, store, files, layout)
    differing = {id(schema): tuple(layout.differing(schema).items()) for schema in each_once(schemas)}
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for file, schema in zip(files, schemas, strict=True):
        alike.setdefault(differing[id(schema)], []).append(f"{store.url}/{file.path}")
    reader = spark.read.option("basePath", store.url)
    if [*alike] == [()]:
        of_all = {tuple((field.name, kind_of(field.type)) for field in schema) for schema in each_once(schemas)}
        as_spark = _only_spark_knows(schemas[0]) and len(of_all) == 1
        paths = next(iter(alike.values()))
        plain = _as_spark_knows(reader, layout, paths) if as_spark else _read(reader, layout, {}, paths)
        return typed(_placed(plain, {}, layout), layout.in_folders, misfits)
    parts = [_placed(_read(reader, layout, dict(types), paths), dict(types), layout) for types, paths in alike.items()]
    return typed(balanced(lambda a, b: a.unionByName(b), parts), layout.in_folders, misfits)


def _with_folders(spark: SparkSession, store: Store, files: Sequence[SourceFile], layout: Layout) -> DataFrame:
    """Rows of files whose folder names Spark misreads, as in `numbered`.

    This function adds the partition columns. Spark reads all other columns from the files.
    """
    from pyspark.sql.types import StructType

    alike: dict[tuple[tuple[tuple[str, str], ...], tuple[str, ...]], list[SourceFile]] = {}
    for file in files:
        differing = tuple(layout.differing(schema_of(store, file)).items())
        alike.setdefault((differing, tuple(sorted(file.values))), []).append(file)
    misfits, parts = misfits_of(files, layout.in_folders), []
    for (differing, in_folders), of_part in alike.items():
        wanted = layout.with_folders(layout.schema(dict(differing)))
        own = StructType([field for field in wanted if field.name not in in_folders])
        read = spark.read.schema(own).parquet(*(text.no_pattern(f"{store.url}/{file.path}") for file in of_part))
        valued = with_values(_placed(read, dict(differing), layout), read.inputFiles(), store, of_part)
        parts.append(typed(valued, {name: layout.in_folders[name] for name in in_folders}, misfits))
    return balanced(lambda a, b: a.unionByName(b), parts)


def _read(reader: DataFrameReader, layout: Layout, differing: Types, paths: Sequence[str]) -> DataFrame:
    schema = layout.with_folders(layout.schema(differing), as_texts=True)
    return reader.schema(schema).parquet(*map(text.no_pattern, paths))


def _as_spark_knows(reader: DataFrameReader, layout: Layout, paths: Sequence[str]) -> DataFrame:
    """Reads files with the types that Spark infers, except for the partition columns in folder names."""
    from pyspark.sql.types import StructType

    read = reader.parquet(*map(text.no_pattern, paths))
    own = StructType([field for field in read.schema if field.name not in layout.in_folders])
    wanted = layout.with_folders(own, as_texts=True)
    if all(read.schema[field.name].dataType == field.dataType for field in wanted):
        return read
    return reader.schema(wanted).parquet(*map(text.no_pattern, paths))


def _only_spark_knows(schema: pa.Schema) -> bool:
    """Tests if only Spark can determine the types of a file's columns. Spark needs a job to infer them."""
    if any(is_unread(field.type) for field in schema) or names.same_but_for_case(schema.names):
        return False
    by_spark = any(key.startswith(b"org.apache.spark") for key in schema.metadata or ())
    return by_spark or not all(map(is_readable, schema))


def _placed(read: DataFrame, differing: Types, layout: Layout) -> DataFrame:
    """Casts the rows of files to the layout's types, and adds the file and number of each row."""
    of_file = read.metadataColumn("_metadata")  # works even if the source has a column of that name
    spelled = {name.casefold(): name for name in layout.kinds}
    columns = [spelled.get(name.casefold(), name) for name in read.columns]
    names_of = [*layout.kinds, *(name for name in columns if name not in layout.kinds)] if differing else columns
    return read.select(
        *(_column(name, differing, layout).alias(name) for name in names_of),
        of_file["file_path"].alias(names.SOURCE_FILE),
        of_file["row_index"].alias(names.SOURCE_ROW),
    )


def _column(name: str, differing: Types, layout: Layout) -> Column:
    of_file = quoted(names.plain(name))
    if (kind := differing.get(name)) is None:
        return F.col(of_file)
    wanted = layout.type_of(name, layout.kinds[name])
    if kind == NULL:
        return F.lit(None).cast(wanted)
    if kind == NANOS:
        return F.timestamp_micros(thousandth(of_file)).cast(wanted)
    return F.col(of_file).cast(wanted)


def check_texts(source: Source, files: Sequence[SourceFile]) -> None:
    """Raises `UnreadableRows` for a file with a string that is not UTF-8. Spark's own error does not name the file."""
    for file in files:
        place = opened(source.store, file.path, file.size_bytes)
        for _ in rows_read(place.address, parquet_file(place)):
            pass


def is_as_recorded(source: Source, files: Sequence[SourceFile], recorded: Types) -> bool:
    """Tests if every column has the same type in all these files as the type that it is read as."""
    layout = Layout.of(source, files, recorded)
    return not any(layout.differing(schema_of(source.store, file)) for file in files)


def scan_of(
    source: Source, files: Sequence[SourceFile], recorded: Types
) -> tuple[StructType, Mapping[str, Mapping[str, str | None]], Mapping[str, Mapping[str, Any]]]:
    """Arguments of `windowlib.engines.parquet_files`: the schema to read, and two mappings by file.

    The first mapping gives, for columns of the file, the column of the schema that takes their values. The second gives
    the values of the file's partition columns.
    """
    layout = Layout.of(source, files, recorded)
    schemas = {f"{source.store.url}/{file.path}": schema_of(source.store, file) for file in files}
    placed = {id(schema): layout.placed(schema) for schema in each_once([*schemas.values()])}
    elsewhere = {path: columns for path, schema in schemas.items() if (columns := placed[id(schema)])}
    values = {f"{source.store.url}/{file.path}": values_in(file, layout.in_folders) for file in files}
    schema = layout.with_folders(layout.whole())
    if any(names.MISFIT in of_file for of_file in values.values()):
        schema = schema.add(names.MISFIT, "string")
    return schema, elsewhere, values
