"""The rows of Parquet files as a DataFrame, each column of one type in all of them.

That is the type that was recorded of it first (`windowlib.source.column_types`); of a column that the definition does
not name the widest, or text where its types have nothing in common.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from windowlib.definition.source import Source
from windowlib.engines.sail_files import parquet_file, rows_read
from windowlib.plans import names
from windowlib.plans.admission import thousandth
from windowlib.plans.balanced import balanced
from windowlib.plans.functions import F, quoted
from windowlib.plans.partitions import folder_values
from windowlib.plans.sql_kinds import NULL, STRING, is_nested
from windowlib.source import text
from windowlib.source.column_types import arrow_type, in_nanos, is_unread, is_wider, kind_of, schema_of
from windowlib.source.files import folder_types
from windowlib.source.folder_columns import are_as_spark_finds, with_values
from windowlib.tables.ledger_rows import SourceFile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import DataType, StructType

Types = Mapping[str, str]
NANOS = "nanos"  # of a timestamp in nanoseconds, which Spark reads as a whole number
_UNSIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20)}
"""What Spark reads numbers without a sign as."""
FOLDED = ("int", "bigint", "date", "string")


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of some files, by the files' names for them, in order of appearance.

    kinds:      what each is read as
    fields:     the field of a file for each type that it has
    in_folders: what columns are read as that stand in the names of folders
    """

    kinds: Types
    fields: Mapping[str, Mapping[str, pa.Field]]
    in_folders: Types

    @classmethod
    def of(cls, source: Source, files: Sequence[SourceFile], recorded: Types) -> Layout:
        """Of these files; `recorded` has the types of columns in use by the definition's names, as Arrow names them."""
        folded = folder_types(source, [file.path for file in files])
        of_files = {name: recorded.get(source.named(name), "") for name in folded}
        folded |= {name: kind_of(kind) for name, kind in of_files.items() if kind_of(kind) in FOLDED}
        fields: dict[str, dict[str, pa.Field]] = {}
        spelled: dict[str, str] = {}
        for file in files:
            for field in schema_of(source.path / file.path):
                name = spelled.setdefault(field.name.casefold(), field.name)
                if name not in folded and (source.named(name) in recorded or _is_readable(field)):
                    fields.setdefault(name, {}).setdefault(kind_of(field.type), field.with_name(name))
        kinds = {name: _kind(recorded.get(source.named(name)), [*of]) for name, of in fields.items()}
        return cls(kinds, fields, folded)

    def differing(self, schema: pa.Schema) -> dict[str, str]:
        """The columns of a file that are of another type than they are read as, with that type."""
        own = {field.name.casefold(): field.type for field in schema}
        of_file = {name: own[name.casefold()] for name in self.kinds if name.casefold() in own}
        return {
            name: NANOS if in_nanos(kind) else kind_of(kind)
            for name, kind in of_file.items()
            if in_nanos(kind) or kind_of(kind) == NULL or kind_of(kind) != self.kinds[name]
        }

    def type_of(self, name: str, kind: str) -> DataType:
        """Spark's type for what a column is in a file, or is read as."""
        known = self.fields[name].get(kind)
        if known is None or kind == NULL:
            known = pa.field(name, arrow_type("bigint" if kind == NANOS else kind))
        return _spark_type(known)

    def schema(self, found: Types = MappingProxyType({})) -> StructType:
        """What to read of a file in which these columns are of these types; those of nulls are left out."""
        from pyspark.sql.types import StructField, StructType

        own = {name: found.get(name, kind) for name, kind in self.kinds.items() if found.get(name) != NULL}
        return StructType([StructField(name, self.type_of(name, kind)) for name, kind in own.items()])

    def with_folders(self, schema: StructType, kinds: Collection[str] = FOLDED) -> StructType:
        """The same with the columns, of these types, that stand in the names of folders."""
        from pyspark.sql.types import StructField, StructType

        folded = ((name, kind) for name, kind in self.in_folders.items() if kind in kinds)
        return StructType(
            [*schema, *(StructField(name, _spark_type(pa.field(name, arrow_type(kind)))) for name, kind in folded)]
        )


def _kind(recorded: str | None, found: Sequence[str]) -> str:
    """The type that a column is read as, from what was recorded of it, or what it is in the files."""
    if recorded is not None:
        return kind_of(recorded)
    typed = [kind for kind in found if kind != NULL]
    if not typed:
        return NULL
    widest = reduce(lambda a, b: b if is_wider(b, a) else a, typed)
    return widest if all(kind == widest or is_wider(widest, kind) for kind in typed) else STRING


def _spark_type(field: pa.Field) -> DataType:
    from pyspark.sql.pandas.types import from_arrow_schema

    field = field.with_type(_UNSIGNED.get(field.type, field.type))
    return from_arrow_schema(pa.schema([field]), prefer_timestamp_ntz=True)[0].dataType


def _is_readable(field: pa.Field) -> bool:
    from pyspark.errors import PySparkException

    if is_unread(field.type) or field.type in _UNSIGNED:
        return False
    try:
        return _spark_type(field) is not None
    except PySparkException:
        return False


def on_spark(spark: SparkSession, source: Source, files: Sequence[SourceFile], recorded: Types) -> DataFrame:
    """The files' columns, SOURCE_FILE (a URI), SOURCE_ROW (from 0 in its file)."""
    folder = source.path
    schemas = [schema_of(folder / file.path) for file in files]
    layout = Layout.of(source, files, recorded)
    if {*layout.in_folders.values()} <= {*FOLDED} and not are_as_spark_finds([file.path for file in files]):
        return _with_folders(spark, folder, files, layout)
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for file, schema in zip(files, schemas, strict=True):
        alike.setdefault(tuple(layout.differing(schema).items()), []).append(str(folder / file.path))
    reader = spark.read.option("basePath", str(folder))
    if [*alike] == [()]:
        as_spark = _only_spark_knows(schemas[0]) and all(schema.names == schemas[0].names for schema in schemas)
        paths = next(iter(alike.values()))
        plain = _as_spark_knows(reader, layout, paths) if as_spark else _read(reader, layout, {}, paths)
        return _placed(plain, {}, layout)
    parts = [_placed(_read(reader, layout, dict(found), paths), dict(found), layout) for found, paths in alike.items()]
    return balanced(lambda a, b: a.unionByName(b), parts)


def _with_folders(spark: SparkSession, folder: Path, files: Sequence[SourceFile], layout: Layout) -> DataFrame:
    """The same where Spark does not find the columns of folders: those that a file's folders lack are its own."""
    from pyspark.sql.types import StructType

    alike: dict[tuple[tuple[tuple[str, str], ...], tuple[str, ...]], list[str]] = {}
    for file in files:
        found = tuple(layout.differing(schema_of(folder / file.path)).items())
        alike.setdefault((found, tuple(sorted(folder_values(file.path)))), []).append(str(folder / file.path))
    types = {field.name: field.dataType for field in layout.with_folders(StructType())}
    parts = []
    for (found, in_folders), paths in alike.items():
        wanted = layout.with_folders(layout.schema(dict(found)))
        own = StructType([field for field in wanted if field.name not in in_folders])
        read = spark.read.schema(own).parquet(*map(text.no_pattern, paths))
        of_folders = {name: types[name] for name in in_folders}
        parts.append(with_values(_placed(read, dict(found), layout), folder, read.inputFiles(), of_folders))
    return balanced(lambda a, b: a.unionByName(b), parts)


def _read(reader: DataFrameReader, layout: Layout, found: Types, paths: Sequence[str]) -> DataFrame:
    return reader.schema(layout.with_folders(layout.schema(found))).parquet(*map(text.no_pattern, paths))


def _as_spark_knows(reader: DataFrameReader, layout: Layout, paths: Sequence[str]) -> DataFrame:
    """The columns as Spark reads them, but for those that stand in the names of folders."""
    from pyspark.sql.types import StructType

    found = reader.parquet(*map(text.no_pattern, paths))
    own = StructType([field for field in found.schema if field.name not in layout.in_folders])
    wanted = layout.with_folders(own)
    if all(found.schema[field.name].dataType == field.dataType for field in wanted):
        return found
    return reader.schema(wanted).parquet(*map(text.no_pattern, paths))


def _only_spark_knows(schema: pa.Schema) -> bool:
    """Whether only Spark can say what the columns of a file are, which costs it a job; not where it cannot."""
    if any(is_unread(field.type) for field in schema):
        return False
    by_spark = any(key.startswith(b"org.apache.spark") for key in schema.metadata or ())
    return by_spark or not all(map(_is_readable, schema))


def _placed(read: DataFrame, found: Types, layout: Layout) -> DataFrame:
    """What was read, in the types that it is read as, with the place of each row."""
    of_file = read.metadataColumn("_metadata")  # also where the source has a column of that name
    names_of = [*layout.kinds, *(name for name in read.columns if name not in layout.kinds)] if found else read.columns
    return read.select(
        *(_column(name, found, layout).alias(name) for name in names_of),
        of_file["file_path"].alias(names.SOURCE_FILE),
        of_file["row_index"].alias(names.SOURCE_ROW),
    )


def _column(name: str, found: Types, layout: Layout) -> Column:
    if (kind := found.get(name)) is None:
        return F.col(quoted(name))
    wanted = layout.type_of(name, layout.kinds[name])
    if kind == NULL:
        return F.lit(None).cast(wanted)
    value = F.col(quoted(name))
    if kind == NANOS:
        return F.timestamp_micros(thousandth(quoted(name))).cast(wanted)
    return F.to_json(value) if is_nested(kind) or kind.startswith("map") else value.cast(wanted)


def check_texts(source: Source, files: Sequence[SourceFile]) -> None:
    """Raises `UnreadableRows` for a file with a text that is not UTF-8, which Spark refuses without its name."""
    for file in files:
        path = source.path / file.path
        for _ in rows_read(path, parquet_file(path)):
            pass


def is_as_recorded(source: Source, files: Sequence[SourceFile], recorded: Types) -> bool:
    """Whether every column of these files is of the type that it is read as."""
    layout = Layout.of(source, files, recorded)
    return not any(layout.differing(schema_of(source.path / file.path)) for file in files)


def schema_on_sail(source: Source, files: Sequence[SourceFile], recorded: Types) -> StructType:
    """What `windowlib.engines.sail_files` reads the columns of files as."""
    layout = Layout.of(source, files, recorded)
    return layout.with_folders(layout.schema(), kinds=(*FOLDED, "other"))
