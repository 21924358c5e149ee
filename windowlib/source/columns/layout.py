"""What the columns of Parquet files are read as, where their types differ from file to file.

A column that the definition names is of the type that was recorded of it first
(`windowlib.source.columns.column_types`). One that it does not name is only shown, as JSON, in the rows that a batch
turns away. It is read as the widest of its types; those that this one does not hold are read as columns of their own
(`windowlib.plans.names.of_another_type`), each null in the rows of other files. JSON leaves nulls out, so a row shows
the value as its own file has it. What no engine reads is null, and so is what a column has beyond its first
`MOST_TYPES` such types.
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
    schema_of,
    with_inner,
)
from windowlib.source.columns.partition_values import kinds_of

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

Types = Mapping[str, str]
Fields = Mapping[str, Mapping[str, pa.Field]]
NANOS = "nanos"  # of a timestamp in nanoseconds, which Spark reads as a whole number
MOST_TYPES = 8
"""Of a column that is not named: where files are written of objects, each may have a struct of its own."""
_UNSIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20)}
"""What Spark reads numbers without a sign as."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of some files, by the files' names for them, in order of appearance.

    kinds:      what each is read as
    fields:     the field of a file for each type that it has
    in_folders: what columns are read as that stand in the names of folders
    places:     of a column that is not named, which of `kinds` each of its types is read as; other types are not read
    """

    kinds: Types
    fields: Fields
    in_folders: Types
    places: Mapping[str, Types] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source, files: Sequence[SourceFile], recorded: Types) -> Layout:
        """Of these files; `recorded` has the types of columns in use by the definition's names, as Arrow names them."""
        folded = kinds_of(source, files, recorded)
        fields = _fields(source, files, recorded, folded)
        in_use = {source.in_files(name).casefold(): kind for name, kind in recorded.items()}
        kinds: dict[str, str] = {}
        places: dict[str, Types] = {}
        for name, found in fields.items():
            if (known := in_use.get(name.casefold())) is not None:
                kinds[name] = kind_of(known)
                continue
            columns = {names.of_another_type(name, i) if i else name: one for i, one in enumerate(_apart([*found]))}
            kinds |= {column: _widest(one) for column, one in columns.items()}
            places[name] = {kind: column for column, one in columns.items() for kind in one if kind != NULL}
        return cls(kinds, fields, folded, places)

    def differing(self, schema: pa.Schema) -> dict[str, str]:
        """The columns that a file has in another type than they are read as, with that type; NULL: nothing is read."""
        own = {one.name.casefold(): one.type for one in schema}
        twice = {*map(str.casefold, names.same_but_for_case(schema.names))}
        found = {}
        for name, kind in self.kinds.items():
            column = names.plain(name)
            given = own.get(column.casefold())
            if column.casefold() in twice:
                found[name] = NULL
                continue
            if given is None and name == column:
                continue
            of_file = NULL if given is None else kind_of(given)
            if column in self.places and self.places[column].get(of_file) != name:
                found[name] = NULL
            elif in_nanos(given) or of_file == NULL or of_file != kind:
                found[name] = NANOS if in_nanos(given) else of_file
        return found

    def placed(self, schema: pa.Schema) -> dict[str, str | None]:
        """The columns of a file, in lower case, that are read as another than that of their name; None: not read."""
        found = self.differing(schema)
        taken = {names.plain(name): name for name in self.kinds if found.get(name) != NULL}
        return {name.casefold(): taken.get(name) for name in self.places if taken.get(name) != name}

    def type_of(self, name: str, kind: str) -> DataType:
        """Spark's type for what a column is in a file, or is read as."""
        known = self.fields[names.plain(name)].get(kind)
        if known is None or kind == NULL:
            known = pa.field(name, arrow_type("bigint" if kind == NANOS else kind))
        return spark_type(known)

    def schema(self, found: Types = MappingProxyType({})) -> StructType:
        """What to read of a file in which these columns are of these types; those of nulls are left out."""
        from pyspark.sql.types import StructField, StructType

        own = {name: found.get(name, kind) for name, kind in self.kinds.items() if found.get(name) != NULL}
        return StructType([StructField(names.plain(name), self.type_of(name, kind)) for name, kind in own.items()])

    def whole(self) -> StructType:
        """All columns, in the types that they are read as."""
        from pyspark.sql.types import StructField, StructType

        return StructType([StructField(name, self.type_of(name, kind)) for name, kind in self.kinds.items()])

    def with_folders(self, schema: StructType, *, as_texts: bool = False) -> StructType:
        """The same with the columns that stand in the names of folders, in their types or as texts."""
        from pyspark.sql.types import StructField, StructType

        folded = {name: STRING if as_texts else kind for name, kind in self.in_folders.items()}
        own = (StructField(name, spark_type(pa.field(name, arrow_type(kind)))) for name, kind in folded.items())
        return StructType([*schema, *own])


def each_once(schemas: Sequence[pa.Schema]) -> list[pa.Schema]:
    """Schemas of files without those that are the same object as another one."""
    return [*{id(one): one for one in schemas}.values()]


def _fields(source: Source, files: Sequence[SourceFile], recorded: Types, folded: Collection[str]) -> Fields:
    """The fields that are read, of each type, by the definition's spelling of their columns, or else the first one.

    Left out are those of `folded`, and those that a file has in two spellings. Raises `SourceError` where such a one
    is in use: it was not when the file was first read.
    """
    found: dict[str, dict[str, pa.Field]] = {}
    in_folders = {*map(str.casefold, folded)}
    paths = [source.path / file.path for file in files]
    used = {source.in_files(name).casefold() for name in recorded}
    spelled = {own.casefold(): own for own in (*source.rename, *map(source.in_files, recorded))}
    for path, schema in {id(of := schema_of(path)): (path, of) for path in paths}.values():
        twice = names.same_but_for_case(schema.names)
        if alike := [name for name in twice if name.casefold() in used]:
            raise spelled_twice(path, alike)
        for one in schema:
            if one.name in twice:
                continue
            name, kind = spelled.setdefault(one.name.casefold(), one.name), kind_of(one.type)
            if name.casefold() in in_folders or kind in found.get(name, {}):
                continue
            if name.casefold() in used or is_readable(one):
                found.setdefault(name, {})[kind] = one.with_name(name)
    return found


def _apart(kinds: Sequence[str]) -> list[list[str]]:
    """The types of a column, together where one of them holds all others.

    >>> _apart(["int", "string", "null", "bigint", "double"]), _apart(["null"])
    ([['int', 'bigint'], ['string'], ['double']], [['null']])
    """
    found: list[list[str]] = []
    for kind in kinds:
        if kind == NULL:
            continue
        fitting = (one for one in found if is_wider(kind, _widest(one)) or is_wider(_widest(one), kind))
        if (one := next(fitting, None)) is not None:
            one.append(kind)
        elif len(found) < MOST_TYPES:
            found.append([kind])
    return found or [[NULL]]


def _widest(kinds: Sequence[str]) -> str:
    return reduce(lambda a, b: b if is_wider(b, a) else a, kinds)


def spark_type(field: pa.Field) -> DataType:
    """Spark's type for a field of a file."""
    from pyspark.sql.pandas.types import from_arrow_schema

    signed = pa.schema([field.with_type(_signed(field.type))])
    return from_arrow_schema(signed, prefer_timestamp_ntz=True)[0].dataType


def _signed(kind: pa.DataType) -> pa.DataType:
    """
    >>> _signed(pa.list_(pa.struct([("a", pa.uint8())])))
    ListType(list<item: struct<a: int16>>)
    """
    return with_inner(kind, lambda one: _UNSIGNED.get(one, one))


def _has_alike(kind: pa.DataType) -> bool:
    """Tests if a type holds a struct with fields that differ in case only.

    >>> _has_alike(pa.list_(pa.struct([("a", pa.int8()), ("A", pa.int8())])))
    True
    """
    fields = [kind.field(i) for i in range(kind.num_fields)]
    alike = names.same_but_for_case(field.name for field in fields) if pa.types.is_struct(kind) else []
    return bool(alike) or any(_has_alike(field.type) for field in fields)


def is_readable(field: pa.Field) -> bool:
    """Whether a field of a file can be read by every engine."""
    from pyspark.errors import PySparkException

    if is_unread(field.type) or _has_alike(field.type):
        return False
    try:
        return spark_type(field) is not None
    except PySparkException:
        return False
