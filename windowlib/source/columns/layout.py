"""Types that the columns of Parquet files are read as, if the types differ between files.

A column that the definition names is read as the type that was recorded first
(`windowlib.source.columns.column_types`).

All other columns only appear as JSON in late and quarantined rows. Such a column is read as the widest of its types.
Values of a type that does not fit into the widest type are read into a separate column
(`windowlib.plans.names.of_another_type`), which is null in the rows of other files. JSON omits nulls, so a row shows
the value of its own file.

Values of a type that no engine reads are null. A column is split into at most `MOST_TYPES` columns. Values of further
types are null.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from windowlib.definition.toml.source import Source
from windowlib.ledger.rows import SourceFile
from windowlib.plans import names
from windowlib.plans.sql.kinds import NULL, STRING
from windowlib.source.columns.check import spelled_twice
from windowlib.source.columns.column_types import (
    arrow_type,
    in_nanos,
    is_unread,
    is_wider,
    kind_of,
    schemas_of,
    with_inner,
)
from windowlib.source.columns.partition_values import kinds_of

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

Types = Mapping[str, str]
Fields = Mapping[str, Mapping[str, pa.Field]]
NANOS = "nanos"  # a timestamp in nanoseconds, which Spark reads as an integer
MOST_TYPES = 8
"""Limit for a column that the definition does not name. A struct column may have another type in every file."""
_UNSIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20)}
"""Signed types that Spark reads unsigned types as."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of some files, by their names in the files, in order of appearance.

    kinds:      the type that each column is read as
    fields:     a field from a file, by column and type
    in_folders: types of the partition columns in folder names
    places:     by column that the definition does not name, and by its type in a file: the column in `kinds` that takes
                the values; values of types without an entry are not read
    """

    kinds: Types
    fields: Fields
    in_folders: Types
    places: Mapping[str, Types] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source, files: Sequence[SourceFile], recorded: Types) -> Layout:
        """Derives the layout of some files from their schemas.

        recorded: the types of the columns in use, as Arrow names them, by the definition's names
        """
        folded = kinds_of(source, files, recorded)
        fields = _fields(source, files, recorded, folded)
        in_use = {source.in_files(name).casefold(): kind for name, kind in recorded.items()}
        kinds: dict[str, str] = {}
        places: dict[str, Types] = {}
        for name, types in fields.items():
            if (recorded_type := in_use.get(name.casefold())) is not None:
                kinds[name] = kind_of(recorded_type)
                continue
            columns = {names.of_another_type(name, i) if i else name: group for i, group in enumerate(_apart([*types]))}
            kinds |= {column: _widest(group) for column, group in columns.items()}
            places[name] = {kind: column for column, group in columns.items() for kind in group if kind != NULL}
        return cls(kinds, fields, folded, places)

    def differing(self, schema: pa.Schema) -> dict[str, str]:
        """Types in a file that differ from the types in `kinds`, by column of `kinds`.

        NULL: the column is not read from this file, or has only nulls there.
        """
        own = {field.name.casefold(): field.type for field in schema}
        twice = {*map(str.casefold, names.same_but_for_case(schema.names))}
        types_read = {}
        for name, kind in self.kinds.items():
            column = names.plain(name)
            own_type = own.get(column.casefold())
            if column.casefold() in twice:
                types_read[name] = NULL
                continue
            if own_type is None and name == column:
                continue
            of_file = NULL if own_type is None else kind_of(own_type)
            if column in self.places and self.places[column].get(of_file) != name:
                types_read[name] = NULL
            elif in_nanos(own_type) or of_file == NULL or of_file != kind:
                types_read[name] = NANOS if in_nanos(own_type) else of_file
        return types_read

    def placed(self, schema: pa.Schema) -> dict[str, str | None]:
        """Maps lower-case names of a file's columns to differently named columns that take their values.

        A column that is not read maps to None.
        """
        differing = self.differing(schema)
        columns_read = {names.plain(name): name for name in self.kinds if differing.get(name) != NULL}
        return {name.casefold(): columns_read.get(name) for name in self.places if columns_read.get(name) != name}

    def type_of(self, name: str, kind: str) -> DataType:
        """Spark's type for a column of type `kind`, which is its type in a file or in `kinds`."""
        field = self.fields[names.plain(name)].get(kind)
        if field is None or kind == NULL:
            field = pa.field(name, arrow_type("bigint" if kind == NANOS else kind))
        return spark_type(field)

    def schema(self, differing: Types = MappingProxyType({})) -> StructType:
        """Schema to read a file with.

        differing: types that differ in the file, as in the method `differing`; columns of type NULL are omitted
        """
        from pyspark.sql.types import StructField, StructType

        own = {name: differing.get(name, kind) for name, kind in self.kinds.items() if differing.get(name) != NULL}
        return StructType([StructField(names.plain(name), self.type_of(name, kind)) for name, kind in own.items()])

    def whole(self) -> StructType:
        """Schema of all columns, with the types in `kinds`."""
        from pyspark.sql.types import StructField, StructType

        return StructType([StructField(name, self.type_of(name, kind)) for name, kind in self.kinds.items()])

    def with_folders(self, schema: StructType, *, as_texts: bool = False) -> StructType:
        """Adds the partition columns in folder names to a schema, with their types or as strings."""
        from pyspark.sql.types import StructField, StructType

        folded = {name: STRING if as_texts else kind for name, kind in self.in_folders.items()}
        own = (StructField(name, spark_type(pa.field(name, arrow_type(kind)))) for name, kind in folded.items())
        return StructType([*schema, *own])


def each_once(schemas: Sequence[pa.Schema]) -> list[pa.Schema]:
    """Removes repeated references to the same schema object."""
    return [*{id(schema): schema for schema in schemas}.values()]


def _fields(source: Source, files: Sequence[SourceFile], recorded: Types, folded: Collection[str]) -> Fields:
    """Fields to read, by column and type. A column is spelled as in the definition, else as in the first file.

    Omits the columns in `folded`, and columns of a file whose names differ in case only. Raises `SourceError` if such a
    column is in use now, although it was not in use when the file was first read.

    folded: the partition columns in folder names
    """
    fields: dict[str, dict[str, pa.Field]] = {}
    in_folders = {*map(str.casefold, folded)}
    used = {source.in_files(name).casefold() for name in recorded}
    spelled = {own.casefold(): own for own in (*source.rename, *map(source.in_files, recorded))}
    schemas = zip(files, schemas_of(source.store, files), strict=True)
    for file, schema in {id(schema): (file, schema) for file, schema in schemas}.values():
        twice = names.same_but_for_case(schema.names)
        if alike := [name for name in twice if name.casefold() in used]:
            raise spelled_twice(f"{source.store}/{file.path}", alike)
        for file_field in schema:
            if file_field.name in twice:
                continue
            name, kind = spelled.setdefault(file_field.name.casefold(), file_field.name), kind_of(file_field.type)
            if name.casefold() in in_folders or kind in fields.get(name, {}):
                continue
            if name.casefold() in used or is_readable(file_field):
                fields.setdefault(name, {})[kind] = file_field.with_name(name)
    return fields


def _apart(kinds: Sequence[str]) -> list[list[str]]:
    """Groups the types of a column, so that the widest type of each group holds all types of the group.

    >>> _apart(["int", "string", "null", "bigint", "double"]), _apart(["null"])
    ([['int', 'bigint'], ['string'], ['double']], [['null']])
    """
    groups: list[list[str]] = []
    for kind in kinds:
        if kind == NULL:
            continue
        fitting = (group for group in groups if is_wider(kind, _widest(group)) or is_wider(_widest(group), kind))
        if (group := next(fitting, None)) is not None:
            group.append(kind)
        elif len(groups) < MOST_TYPES:
            groups.append([kind])
    return groups or [[NULL]]


def _widest(kinds: Sequence[str]) -> str:
    return reduce(lambda a, b: b if is_wider(b, a) else a, kinds)


def spark_type(field: pa.Field) -> DataType:
    """Spark's type for a field of a file."""
    from pyspark.sql.pandas.types import from_arrow_schema

    signed = pa.schema([field.with_type(_signed(field.type))])
    return from_arrow_schema(signed, prefer_timestamp_ntz=True)[0].dataType


def _signed(kind: pa.DataType) -> pa.DataType:
    """Replaces unsigned types by the signed types that Spark reads instead, also in nested types.

    >>> _signed(pa.list_(pa.struct([("a", pa.uint8())])))
    ListType(list<item: struct<a: int16>>)
    """
    return with_inner(kind, lambda inner: _UNSIGNED.get(inner, inner))


def _has_alike(kind: pa.DataType) -> bool:
    """Tests if a type contains a struct with fields whose names differ in case only.

    >>> _has_alike(pa.list_(pa.struct([("a", pa.int8()), ("A", pa.int8())])))
    True
    """
    fields = [kind.field(i) for i in range(kind.num_fields)]
    alike = names.same_but_for_case(field.name for field in fields) if pa.types.is_struct(kind) else []
    return bool(alike) or any(_has_alike(field.type) for field in fields)


def is_readable(field: pa.Field) -> bool:
    """Tests if every engine can read a field of a file."""
    from pyspark.errors import PySparkException

    if is_unread(field.type) or _has_alike(field.type):
        return False
    try:
        return spark_type(field) is not None
    except PySparkException:
        return False
