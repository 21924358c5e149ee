"""Rows of Parquet files, read by Arrow with file and row number, for an engine that does not number rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.model.errors import WindowError, is_of_storage, reason_of
from windowlib.plans import names
from windowlib.storage.at_once import at_once
from windowlib.storage.object_file import ObjectFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

BATCH_ROWS = 1 << 16
NOTHING: Mapping[str, Any] = MappingProxyType({})
MAY_HOLD_TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_dictionary,
    pa.types.is_nested,
)


class UnreadableRows(WindowError):
    """Rows of a Parquet file cannot be read, although its footer can."""

    def __init__(self, path: str, error: Exception) -> None:
        self.why = reason_of(error)
        super().__init__(f"{path} cannot be read ({self.why})")


def rows_of_files(
    spark: SparkSession,
    files: Sequence[ObjectFile],
    schema: StructType,
    renamed: Mapping[str, Mapping[str, str | None]] = NOTHING,
    values: Mapping[str, Mapping[str, Any]] = NOTHING,
) -> DataFrame:
    """Rows of Parquet files: `schema`, SOURCE_FILE (the address), SOURCE_ROW (from 0 in its file).

    Columns that a file lacks are null.

    renamed: by address, columns of a file in lower case, with the column of `schema` that takes their values; None if
             the column is not read
    values:  by address, columns that have the same value in all rows of a file
    """
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    pieces = [piece for of_file in at_once(_pieces, files) for piece in of_file]
    origin = (StructField(names.SOURCE_FILE, StringType()), StructField(names.SOURCE_ROW, LongType()))
    output = StructType([*schema, *origin])
    scan = FileScan(tuple(pieces), to_arrow_schema(output, timezone="UTC"), dict(renamed), dict(values))
    return spark.range(0, len(pieces), 1, max(len(pieces), 1)).mapInArrow(scan, output)


def parquet_file(file: ObjectFile, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Opens a file to read its rows. Reads its footer unless it is given.

    96-bit timestamps are read as microseconds. As nanoseconds, pyarrow's default, times before 1677 or after 2262 would
    be wrong.
    """
    return pq.ParquetFile(file, metadata=footer, coerce_int96_timestamp_unit="us")


def rows_read(path: str, file: pq.ParquetFile, **chosen: Any) -> Iterator[pa.RecordBatch]:
    """Yields the rows of an opened file in batches, or only the rows and columns that `chosen` selects.

    Raises `UnreadableRows` if the file is damaged. Errors of the storage pass through. Arrow's own error does not name
    the file.
    """
    try:
        for batch in file.iter_batches(BATCH_ROWS, **chosen):
            _check_texts(path, batch)
            yield batch
    except (OSError, pa.ArrowException) as error:
        if is_of_storage(error):
            raise
        raise UnreadableRows(path, error) from error


def _check_texts(path: str, batch: pa.RecordBatch) -> None:
    """Raises `UnreadableRows` for strings that are not UTF-8.

    Arrow does not check strings when it reads them, and later readers would fail.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if any(is_kind(column.type) for is_kind in MAY_HOLD_TEXTS):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                raise UnreadableRows(path, ValueError(f"column {name!r} has a string that is not UTF-8")) from error


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Row group of a file, and the number in the file of the row group's first row."""

    file: ObjectFile
    number: int
    first_row: int


def _pieces(file: ObjectFile) -> list[RowGroup]:
    footer = pq.read_metadata(file)
    rows = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
    firsts = itertools.accumulate(rows, initial=0)
    return [RowGroup(file, number, first) for number, first in zip(range(len(rows)), firsts, strict=False)]


@dataclass(frozen=True, slots=True)
class FileScan:
    """Reads the row groups `pieces[number]` for each number in the input, as batches of `schema`."""

    pieces: tuple[RowGroup, ...]
    schema: pa.Schema
    renamed: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in itertools.chain.from_iterable(batch.column(0).to_pylist() for batch in batches):
            yield from self._read(self.pieces[number])

    def _read(self, piece: RowGroup) -> Iterator[pa.RecordBatch]:
        place = replace(piece.file)  # another scan may read the same row group at the same time
        file, file_values = parquet_file(place), self.values.get(place.address, NOTHING)
        schema_names = {*map(str.casefold, self.schema.names)}  # Spark ignores the case of names, too
        read_as = {name: self._read_as(place.address, name.casefold()) for name in file.schema_arrow.names}
        wanted = [name for name, column in read_as.items() if column in schema_names]
        row = piece.first_row
        for read in rows_read(place.address, file, row_groups=[piece.number], columns=wanted):
            batch = read.rename_columns([read_as[name] or name for name in read.schema.names])
            rows = batch.num_rows
            origin = {
                names.SOURCE_FILE: pa.repeat(pa.scalar(place.address), rows),
                names.SOURCE_ROW: pa.array(range(row, row + rows), pa.int64()),
            }
            yield pa.RecordBatch.from_arrays(
                [_column(field, batch, {**file_values, **origin}) for field in self.schema], schema=self.schema
            )
            row += rows

    def _read_as(self, address: str, name: str) -> str | None:
        column: str | None = self.renamed.get(address, NOTHING).get(name, name)
        return column.casefold() if column else None


def _column(field: pa.Field, batch: pa.RecordBatch, others: Mapping[str, Any]) -> pa.Array:
    if field.name in others:
        value = others[field.name]
        return value if isinstance(value, pa.Array) else pa.repeat(pa.scalar(value, field.type), batch.num_rows)
    if field.name.casefold() not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    return _one_nan(_as(field.type, batch.column(field.name.casefold())))


def _as(wanted: pa.DataType, column: pa.Array) -> pa.Array:
    """Casts a column to the wanted type. Timestamps in nanoseconds are floored to microseconds."""
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = _in_micros(column)
    return column.cast(wanted)


def _in_micros(nanos: pa.Array) -> pa.Array:
    """Floors timestamps in nanoseconds to microseconds. Correct also for the least value, which Arrow cannot floor.

    >>> _in_micros(pa.array([-(2**63), -1, 1_999], pa.timestamp("ns"))).cast(pa.int64()).to_pylist()
    [-9223372036854776, -1, 1]
    """
    counted = nanos.cast(pa.int64())
    whole = pc.divide(counted, 1_000)
    below = pc.less(counted, pc.multiply(whole, 1_000))
    return pc.subtract(whole, below.cast(pa.int64())).cast(pa.timestamp("us", nanos.type.tz))


def _one_nan(column: pa.Array) -> pa.Array:
    """Replaces all NaNs by the same bit pattern. Sail compares NaNs by their bits, and sorts half of them first."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(math.nan, column.type), column)
