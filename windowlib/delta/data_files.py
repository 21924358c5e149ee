"""Parquet files of small tables: written, read as rows, and described for a commit.

The statistics of a file come from its footer (`windowlib.delta.footers`).
"""

from __future__ import annotations

import errno
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.delta.footers import bounds_of
from windowlib.storage.object_file import opened
from windowlib.storage.store import Store

WHOLE_BYTES = 1 << 18  # a file up to this size is read by one request
KEPT = 64  # such files whose contents the process keeps for the next reader
ROWS_PER_GROUP = 1_024  # small, so that a reader of the newest rows reads a single group
_CONTENTS = dict[str, bytes]()  # by address
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table; `path` is relative to the table's folder.

    `low`, `high` and `nulls` hold the smallest value, the largest value and the number of nulls of each column, if
    known. Spark skips files only by columns whose number of nulls is known.
    """

    path: str
    size_bytes: int
    rows: int
    partition: Mapping[str, Any] = field(default_factory=dict)
    low: Mapping[str, Any] = field(default_factory=dict)
    high: Mapping[str, Any] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)


def without(files: Iterable[DataFile], others: Iterable[DataFile]) -> list[DataFile]:
    """Files whose paths do not occur in `others`."""
    paths = {file.path for file in others}
    return [file for file in files if file.path not in paths]


def missing(store: Store, paths: Sequence[str]) -> list[str]:
    """Paths of files that do not exist, sorted."""
    return sorted(path for path, size in zip(paths, store.sizes(paths), strict=True) if size is None)


def new_file(data: pa.Table) -> tuple[DataFile, bytes]:
    """A new file of an unpartitioned table with these rows, and its content. Nothing is written."""
    buffer = pa.BufferOutputStream()
    pq.write_table(data, buffer, row_group_size=ROWS_PER_GROUP)
    content = buffer.getvalue().to_pybytes()
    footer = pq.read_metadata(pa.BufferReader(content))
    return DataFile(f"{uuid.uuid4()}.parquet", len(content), footer.num_rows, {}, *bounds_of(footer)), content


def write(store: Store, data: pa.Table) -> DataFile:
    """Writes rows as a new file of an unpartitioned table, for a later commit. Does not sync the file."""
    file, content = new_file(data)
    put(store, file.path, content)
    return file


def next_to(file: DataFile, name: str) -> str:
    """Path of another file in the partition of a file.

    >>> next_to(DataFile("day=2026-03-02/1.parquet", 1, 1), "2.parquet"), next_to(DataFile("1.parquet", 1, 1), "2")
    ('day=2026-03-02/2.parquet', '2')
    """
    folder, slash, _ = file.path.rpartition("/")
    return f"{folder}{slash}{name}"


def bulk_write_options(schema: pa.Schema) -> dict[str, Any]:
    """Options of pyarrow for a file of many rows, which makes it half as large as by default.

    Whole numbers and times are stored as differences, other columns by dictionary.

    >>> schema = pa.schema([("user", pa.string()), ("at", pa.timestamp("us", "UTC")), ("events", pa.int64())])
    >>> options = bulk_write_options(schema)
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


def write_groups(
    store: Store,
    path: str,
    groups: Iterable[pa.Table],
    partition: Mapping[str, Any] | None = None,
    rows_per_group: int | None = None,
) -> DataFile:
    """Writes at least one table of rows as a file of a table with many rows, for a later commit. Describes the file.

    Each table begins a row group. Commits nothing.
    """
    buffer, writer = pa.BufferOutputStream(), None
    for rows in groups:
        writer = writer or pq.ParquetWriter(buffer, rows.schema, **bulk_write_options(rows.schema))
        writer.write_table(rows, rows_per_group)
    assert writer is not None, "a file has rows"
    writer.close()
    content = buffer.getvalue()
    store.put(path, content.to_pybytes())
    footer = pq.read_metadata(pa.BufferReader(content))
    return DataFile(path, content.size, footer.num_rows, dict(partition or {}), *bounds_of(footer))


def parquet_file(store: Store, path: str, size_bytes: int) -> pq.ParquetFile:
    """Opens a Parquet file. Reads a small file whole. Raises FileNotFoundError."""
    if size_bytes <= WHOLE_BYTES:
        return pq.ParquetFile(pa.BufferReader(_content(store, path)))
    return pq.ParquetFile(opened(store, path, size_bytes))


def put(store: Store, path: str, content: bytes) -> None:
    """Stores the content of a new file, and keeps it for the next reader if it is small."""
    store.put(path, content)
    _keep(f"{store.url}/{path}", content)


def _content(store: Store, path: str) -> bytes:
    """Content of a small file, which never changes."""
    address = f"{store.url}/{path}"
    if (kept := _CONTENTS.get(address)) is not None:
        return kept
    if (content := store.get(path)) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), address)
    _keep(address, content)
    return content


def fetch(store: Store, files: Sequence[DataFile]) -> None:
    """Reads small files at once, for the readers that follow. Ignores missing files."""
    wanted = [file.path for file in files if file.size_bytes <= WHOLE_BYTES]
    unread = [path for path in wanted if f"{store.url}/{path}" not in _CONTENTS]
    for path, content in zip(unread, store.get_many(unread), strict=True):
        if content is not None:
            _keep(f"{store.url}/{path}", content)


def _keep(address: str, content: bytes) -> None:
    if len(content) <= WHOLE_BYTES:
        with _LOCK:
            _CONTENTS[address] = content
            while len(_CONTENTS) > KEPT:
                del _CONTENTS[next(iter(_CONTENTS))]  # the oldest


def read_parquet(store: Store, file: DataFile, schema: pa.Schema | None = None) -> pa.Table:
    """Reads a file with exactly the columns of `schema`. Columns that the file lacks are null."""
    parquet = parquet_file(store, file.path, file.size_bytes)
    if schema is None:
        return parquet.read()
    return shaped(parquet.read(columns=columns_of(parquet, schema)), schema)


def columns_of(file: pq.ParquetFile, schema: pa.Schema) -> list[str]:
    """The columns of `schema` that a file has."""
    have = {*file.schema_arrow.names}  # read once: pyarrow converts the whole schema at each access
    return [name for name in schema.names if name in have]


def shaped(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with exactly the columns of `schema`. Columns that they lack are null."""
    have = dict(zip(table.column_names, table.columns, strict=True))  # pyarrow's look-up by name is as slow as a cast
    columns = [
        pa.nulls(table.num_rows, f.type) if (column := have.get(f.name)) is None else _of_type(column, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _of_type(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == wanted else column.cast(wanted)


def having(table: pa.Table, column: str, takes: Callable[[Any], bool]) -> pa.Table:
    """The rows whose value of a column satisfies `takes`. Avoids pyarrow's functions, which import pandas."""
    wanted = [number for number, value in enumerate(table[column].to_pylist()) if takes(value)]
    if len(wanted) == table.num_rows:
        return table
    return pa.concat_tables(table.slice(number, 1) for number in wanted) if wanted else table.slice(0, 0)


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as dictionaries, like `to_pylist` without pandas. A time outside Python's calendar becomes a string.

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
    """A column's values in the form of `rows_of`, also inside lists, maps and structs.

    >>> values_of(pa.array([[2**31 - 1], None], pa.list_(pa.date32())))
    [['1970-01-01 and 2,147,483,647 days'], None]
    >>> values_of(pa.array([[("a", 2**62)]], pa.map_(pa.string(), pa.timestamp("us"))))
    [[('a', '1970-01-01 and 4,611,686,018,427,387,904 us')]]
    """
    kind = column.type
    if pa.types.is_struct(kind):
        fields = zip(*map(values_of, column.flatten()), strict=True) if kind.num_fields else iter([()] * len(column))
        structs = zip(column.is_valid().to_pylist(), fields, strict=True)
        return [dict(zip(kind.names, values, strict=True)) if valid else None for valid, values in structs]
    try:
        if not (pa.types.is_timestamp(kind) and kind.tz == "UTC"):
            return [*column.to_pylist()]
        in_utc = column.cast(pa.timestamp(kind.unit)).to_pylist()  # with a zone pyarrow imports pandas: half a second
        return [time and time.replace(tzinfo=UTC) for time in in_utc]
    except (OverflowError, ValueError):  # a time before the year 1, or after 9999
        if len(column) > 1:
            return [value for row in range(len(column)) for value in values_of(column.slice(row, 1))]
        return [_beyond_calendars(column[0])]


def _beyond_calendars(value: pa.Scalar) -> Any:
    """Converts a value that is or contains a time outside Python's calendar. Returns such a time as a string."""
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


def data_file(store: Store, path: str, size_bytes: int, partition: Mapping[str, Any] | None = None) -> DataFile:
    """Describes a Parquet file of a table, with the statistics of its footer."""
    footer = parquet_file(store, path, size_bytes).metadata
    return DataFile(path, size_bytes, footer.num_rows, dict(partition or {}), *bounds_of(footer))


def unlisted(actions: pa.Table) -> list[DataFile]:
    """The files in delta-rs's list of a table's files, with the statistics in the log."""

    def values(prefix: str) -> list[dict[str, Any]]:
        names = [name for name in actions.column_names if name.startswith(prefix)]
        short = [name.removeprefix(prefix) for name in names]
        return rows_of(actions.select(names).rename_columns(short)) or [{}] * actions.num_rows

    def not_null(prefix: str) -> list[dict[str, Any]]:
        return [{name: value for name, value in row.items() if value is not None} for row in values(prefix)]

    columns = [actions[name].to_pylist() for name in ("path", "size_bytes", "num_records")]
    statistics = (not_null(prefix) for prefix in ("min.", "max.", "null_count."))
    return [DataFile(*file) for file in zip(*columns, values("partition."), *statistics, strict=True)]


def listed(files: Sequence[DataFile]) -> pa.Table:
    """A row for each file, as `windowlib.delta.tables.Table.files_where` describes it.

    >>> listed([DataFile("a", 9, 1, {"day": 3}, {"n": 5}, {"n": 7}), DataFile("b", 9, 0, {"day": 4})]).to_pydict()
    {'path': ['a', 'b'], 'partition.day': [3, 4], 'min.n': [5, None], 'max.n': [7, None]}
    """
    facts = (("partition", "partition"), ("min", "low"), ("max", "high"))
    rows = [
        {f"{prefix}.{name}": value for prefix, fact in facts for name, value in getattr(file, fact).items()}
        for file in files
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({"path": [file.path for file in files], **{n: [row.get(n) for row in rows] for n in names}})
