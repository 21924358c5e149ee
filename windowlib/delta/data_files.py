"""The Parquet files of small tables: described for a commit to name, written, read as rows.

The statistics of a file are read from its footer (`windowlib.delta.footers`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.delta.footers import bounds_of

ROWS_PER_GROUP = 1_024  # of small tables: who needs the newest rows reads one group


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file of a table: `path` is relative to its folder.

    `low`, `high` and `nulls` hold a column's smallest and largest value and how many are null, where that is known.
    Spark skips no file by a column whose nulls are not known.
    """

    path: str
    size_bytes: int
    rows: int
    partition: Mapping[str, Any] = field(default_factory=dict)
    low: Mapping[str, Any] = field(default_factory=dict)
    high: Mapping[str, Any] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)


def without(files: Iterable[DataFile], others: Iterable[DataFile]) -> list[DataFile]:
    """The files that are not among others, by their path."""
    paths = {file.path for file in others}
    return [file for file in files if file.path not in paths]


def write(folder: Path, data: pa.Table) -> DataFile:
    """A table of rows as one file of an unpartitioned table, for a commit to name."""
    name = f"{uuid.uuid4()}.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, folder / name, row_group_size=ROWS_PER_GROUP)
    return data_file(folder, name)


def of_many_rows(schema: pa.Schema) -> dict[str, Any]:
    """The options with which pyarrow writes a file of many rows, of half the size that it has by default.

    Whole numbers and times are kept as differences, other columns in a dictionary as far as that goes.

    >>> schema = pa.schema([("user", pa.string()), ("at", pa.timestamp("us", "UTC")), ("events", pa.int64())])
    >>> options = of_many_rows(schema)
    >>> options["use_dictionary"], [*options["column_encoding"]]
    (['user'], ['at', 'events'])
    """
    differences = [
        field.name
        for field in schema
        if pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type) or pa.types.is_date(field.type)
    ]
    return {
        "compression": "zstd",
        "use_dictionary": [name for name in schema.names if name not in differences],
        "column_encoding": dict.fromkeys(differences, "DELTA_BINARY_PACKED"),
    }


def read_parquet(path: Path, schema: pa.Schema | None = None) -> pa.Table:
    """One file with exactly the columns of `schema`; a column the file lacks is null."""
    file = pq.ParquetFile(path)
    if schema is None:
        return file.read()
    return shaped(file.read(columns=columns_of(file, schema)), schema)


def columns_of(file: pq.ParquetFile, schema: pa.Schema) -> list[str]:
    """The columns of `schema` that a file has."""
    have = {*file.schema_arrow.names}  # pyarrow converts the whole schema each time it is asked
    return [name for name in schema.names if name in have]


def shaped(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with exactly the columns of `schema`; a column that they lack is null."""
    have = dict(zip(table.column_names, table.columns, strict=True))  # to look one up by name costs as much as a cast
    columns = [
        pa.nulls(table.num_rows, f.type) if (column := have.get(f.name)) is None else _of_type(column, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _of_type(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == wanted else column.cast(wanted)


def having(table: pa.Table, column: str, takes: Callable[[Any], bool]) -> pa.Table:
    """The rows of a small table in whose column `takes` a value; without pyarrow's functions, which import pandas."""
    wanted = [number for number, value in enumerate(table[column].to_pylist()) if takes(value)]
    if len(wanted) == table.num_rows:
        return table
    return pa.concat_tables(table.slice(number, 1) for number in wanted) if wanted else table.slice(0, 0)


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as dictionaries, as `to_pylist` gives them, without pandas; a time that no calendar has as a text.

    >>> rows_of(pa.table({"at": pa.array([0, None], pa.timestamp("us", "UTC"))}))
    [{'at': datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)}, {'at': None}]
    >>> rows_of(pa.table({"at": pa.array([2**62], pa.timestamp("us"))}))
    [{'at': '1970-01-01 and 4,611,686,018,427,387,904 us'}]
    >>> rows_of(pa.table({"was": pa.array([{"at": 2**62}, None], pa.struct({"at": pa.timestamp("s", "UTC")}))}))
    [{'was': {'at': '1970-01-01 and 4,611,686,018,427,387,904 s'}}, {'was': None}]
    """
    columns = [values_of(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def values_of(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """A column's values, as `rows_of` has them, those inside of lists, maps and structs too.

    >>> values_of(pa.array([[2**31 - 1], None], pa.list_(pa.date32())))
    [['1970-01-01 and 2,147,483,647 days'], None]
    >>> values_of(pa.array([[("a", 2**62)]], pa.map_(pa.string(), pa.timestamp("us"))))
    [[('a', '1970-01-01 and 4,611,686,018,427,387,904 us')]]
    """
    kind = column.type
    if pa.types.is_struct(kind):
        fields = zip(*map(values_of, column.flatten()), strict=True) if kind.num_fields else iter([()] * len(column))
        known = zip(column.is_valid().to_pylist(), fields, strict=True)
        return [dict(zip(kind.names, values, strict=True)) if there else None for there, values in known]
    try:
        if not (pa.types.is_timestamp(kind) and kind.tz == "UTC"):
            return [*column.to_pylist()]
        in_utc = column.cast(pa.timestamp(kind.unit)).to_pylist()  # else pyarrow would import pandas: half a second
        return [time and time.replace(tzinfo=UTC) for time in in_utc]
    except (OverflowError, ValueError):  # a time before the year 1, or after 9999
        if len(column) > 1:
            return [value for one in range(len(column)) for value in values_of(column.slice(one, 1))]
        return [_beyond_calendars(column[0])]


def _beyond_calendars(value: pa.Scalar) -> Any:
    """A value that is, or has inside, a time that Python's calendar lacks: such a time as a text."""
    kind = value.type
    if pa.types.is_map(kind):
        return [*zip(*map(values_of, value.values.flatten()), strict=True)]
    if isinstance(value, pa.ListScalar | pa.LargeListScalar | pa.FixedSizeListScalar):
        return values_of(value.values)
    if pa.types.is_dictionary(kind):
        return _beyond_calendars(value.value)
    if pa.types.is_date32(kind):
        return f"1970-01-01 and {value.cast(pa.int32()).as_py():,} days"
    unit = kind.unit if pa.types.is_timestamp(kind) else "ms"
    return f"1970-01-01 and {value.cast(pa.int64()).as_py():,} {unit}"


def data_file(folder: Path, path: str, partition: Mapping[str, Any] | None = None) -> DataFile:
    """Describes a Parquet file that lies in a table's folder, with the statistics of its footer."""
    footer = pq.ParquetFile(folder / path).metadata
    size_bytes = (folder / path).stat().st_size
    return DataFile(path, size_bytes, footer.num_rows, dict(partition or {}), *bounds_of(footer))
