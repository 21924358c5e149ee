"""Sail: the plans in this process, without Java.

Sail is an engine in Rust that speaks Spark Connect, so the plans run on it as they are, over the same tables. What it
lacks is added here with functions over Arrow batches, which it calls in this very process: the origin of a row (its
file and its row number, Spark's `_metadata`), and counting on the way (Spark's `Observation`).
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.errors import WindowError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from windowlib.plans.engine import OverBatches

MARK = "spark.windowlib.engine"
BATCH_ROWS = 1 << 16
SETTINGS = {
    MARK: "sail",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
_server: Any = None  # one for the process; it ends with it


class SailUnavailable(WindowError):
    """Sail cannot be used here."""


def session() -> SparkSession:
    """A session on Sail in this process; raises SailUnavailable without the package, or beside a Spark session."""
    global _server
    os.environ.setdefault("RUST_LOG", "error")
    try:
        from pysail.spark import SparkConnectServer
    except ImportError as error:
        raise SailUnavailable(
            'engine = "sail" needs the package pysail: pip install "windowlib[spark,sail]", or use engine = "spark"'
        ) from error
    from pyspark.sql import SparkSession

    if SparkSession._instantiatedSession is not None:  # PySpark knows one kind of session in a process
        raise SailUnavailable("this process runs Spark already; use Sail in a process of its own")
    if _server is None:
        _server = SparkConnectServer(port=0)
        _server.start(background=True)
    _, port = _server.listening_address
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    return spark


def is_sail(spark: SparkSession) -> bool:
    """Whether a session is one of Sail's."""
    return spark.conf.get(MARK, "spark") == "sail"


# -- the origin of a row ------------------------------------------------------------------------------------------


def rows_of_files(spark: SparkSession, base: Path, paths: Sequence[str], schema: StructType) -> DataFrame:
    """The rows of Parquet files below `base`: `schema`, _source_file (the path), _source_row (from 0 in its file).

    Columns that stand in the folders' names are read from there; those that a file lacks are null.
    """
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    pieces = [piece for path in paths for piece in _pieces(path)]
    made = StructType([*schema, StructField("_source_file", StringType()), StructField("_source_row", LongType())])
    scan = FileScan(str(base), tuple(pieces), to_arrow_schema(made, timezone="UTC"))
    return spark.range(0, len(pieces), 1, max(len(pieces), 1)).mapInArrow(scan, made)


@dataclass(frozen=True, slots=True)
class Piece:
    """One row group of a file, and the number of its first row."""

    path: str
    row_group: int
    first_row: int


def _pieces(path: str) -> Iterator[Piece]:
    footer = pq.read_metadata(path)
    first = 0
    for number in range(footer.num_row_groups):
        yield Piece(path, number, first)
        first += footer.row_group(number).num_rows


@dataclass(frozen=True, slots=True)
class FileScan:
    """Reads the pieces whose numbers it is given, as batches of `schema`."""

    base: str
    pieces: tuple[Piece, ...]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in itertools.chain.from_iterable(batch.column(0).to_pylist() for batch in batches):
            yield from self._read(self.pieces[number])

    def _read(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        file = pq.ParquetFile(piece.path)
        in_name = _in_folders(Path(piece.path).relative_to(self.base))
        wanted = [name for name in self.schema.names if name in file.schema_arrow.names]
        row = piece.first_row
        for batch in file.iter_batches(BATCH_ROWS, row_groups=[piece.row_group], columns=wanted):
            rows = batch.num_rows
            origin = {
                "_source_file": pa.repeat(pa.scalar(piece.path), rows),
                "_source_row": pa.array(range(row, row + rows), pa.int64()),
            }
            yield pa.RecordBatch.from_arrays(
                [_column(field, batch, {**in_name, **origin}) for field in self.schema], schema=self.schema
            )
            row += rows


def _column(field: pa.Field, batch: pa.RecordBatch, others: Mapping[str, Any]) -> pa.Array:
    if field.name in others:
        value = others[field.name]
        return value if isinstance(value, pa.Array) else pa.repeat(pa.scalar(value).cast(field.type), batch.num_rows)
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    return batch.column(field.name).cast(field.type)


def _in_folders(path: Path) -> dict[str, str]:
    """The values in the names of folders such as `day=2026-03-02`."""
    return dict(part.split("=", 1) for part in path.parts[:-1] if "=" in part)


# -- what plans ask for -------------------------------------------------------------------------------------------


class SailEngine:
    """`windowlib.plans.engine.Engine` for Sail."""

    sums_wrap = True

    def counters(self) -> PassingCounters:
        """See `Engine`."""
        return PassingCounters()

    def with_values(self, rows: DataFrame, values: Mapping[str, int]) -> DataFrame:
        """See `Engine`. As literals: nothing is compiled, and a join with one row takes twice as long as all else."""
        from pyspark.sql import functions as F

        return rows.withColumns({name: F.lit(value).cast("long") for name, value in values.items()})

    def union(self, parts: Sequence[DataFrame]) -> DataFrame:
        """See `Engine`. Sail takes the types of the first part: it is told those of the columns that a part lacks."""
        from pyspark.sql import functions as F

        from windowlib.plans.admission import quoted

        types = {field.name: field.dataType for part in parts for field in part.schema}

        def whole(part: DataFrame) -> DataFrame:
            has = set(part.columns)
            nothing = {name: F.lit(None).cast(kind).alias(name) for name, kind in types.items() if name not in has}
            return part.select(*(nothing.get(name, quoted(name)) for name in types))

        return functools.reduce(lambda a, b: a.union(b), map(whole, parts))

    def concatenated(self, rows: DataFrame, arrays: str, by: Sequence[str]) -> tuple[DataFrame, str]:
        """See `Engine`."""
        return rows, f"flatten(collect_list({arrays}))"

    def together(self, parts: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
        """See `Engine`. Sail shuffles for each aggregation anew, so to gather rows would be one more."""
        return self.union(parts)

    def with_islands(self, intervals: DataFrame, keys: Sequence[str]) -> DataFrame:
        """See `Engine`. Sail evaluates window functions key by key, which costs four times what this does."""
        from pyspark.sql.types import LongType, StructField, StructType

        made = StructType([*intervals.schema, StructField("_island", LongType())])
        return self.map_sorted(intervals, keys, ["window_start_ms"], Islands(tuple(keys)), made)

    def map_sorted(
        self, rows: DataFrame, keys: Sequence[str], order: Sequence[str], function: OverBatches, schema: StructType
    ) -> DataFrame:
        """See `Engine`. Sail drops a sort that only a function needs, so the function is given what it sorts itself."""
        from windowlib.plans.admission import quoted

        together = rows.repartition(os.cpu_count() or 1, *map(quoted, keys)) if keys else rows.coalesce(1)
        return together.mapInArrow(Sorted((*keys, *order), function), schema)


@dataclass(frozen=True, slots=True)
class Sorted:
    """Calls `then` with the rows of a task in the order of some columns; holds all of them in memory."""

    by: tuple[str, ...]
    then: OverBatches

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not (given := [batch for batch in batches if batch.num_rows]):
            return
        rows = pa.Table.from_batches(given)
        in_order = rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in self.by]))
        yield from self.then(in_order.combine_chunks().to_batches(max_chunksize=BATCH_ROWS))


@dataclass(frozen=True, slots=True)
class Islands:
    """Numbers the islands of intervals that come sorted by key and start."""

    keys: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        previous: pa.RecordBatch | None = None  # the last row so far
        reach, island = 0, 0  # the greatest end of its key, and its island
        for batch in batches:
            if not batch.num_rows:
                continue
            starts, ends = (batch.column(f"window_{bound}_ms").to_numpy() for bound in ("start", "end"))
            new_key = self._new_keys(batch, previous)
            reached = _running_max(ends, new_key, reach)
            before = np.concatenate(([reach], reached[:-1]))
            islands = island + np.cumsum(new_key | (starts > before))
            previous, reach, island = batch.slice(batch.num_rows - 1), int(reached[-1]), int(islands[-1])
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, pa.array(islands)], schema=batch.schema.append(pa.field("_island", pa.int64()))
            )

    def _new_keys(self, batch: pa.RecordBatch, previous: pa.RecordBatch | None) -> np.ndarray:
        """Whether a row has another key than the one before it."""
        new = np.zeros(batch.num_rows, dtype=bool)
        new[0] = previous is None
        for key in self.keys:
            column = batch.column(key)
            new[1:] |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
            if previous is not None:
                new[0] |= column[0] != previous.column(key)[0]
        return new


def _running_max(ends: np.ndarray, new_key: np.ndarray, reach: int) -> np.ndarray:
    """The greatest end so far of each row's key; `reach` is that of the first row's key before.

    >>> _running_max(np.array([5, 3, 9, 2, 4]), np.array([False, False, False, True, False]), 4).tolist()
    [5, 5, 9, 2, 4]
    >>> _running_max(np.array([1, 2]), np.array([False, False]), 7).tolist()
    [7, 7]
    """
    own = ends if new_key[0] else np.concatenate(([max(int(ends[0]), reach)], ends[1:]))
    # By rank, so that each key can lie above all before it without leaving 64 bits.
    order = np.argsort(own, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(own))
    base = np.cumsum(new_key) * len(own)
    greatest: np.ndarray = own[order[np.maximum.accumulate(base + rank) - base]]
    return greatest


# -- counting on the way ------------------------------------------------------------------------------------------

_sums: dict[int, dict[str, int]] = {}  # by counters: written by the functions below, in this process
_numbers = itertools.count()
_adding = Lock()


class PassingCounters:
    """`windowlib.plans.counters.Counters` for Sail: a function that looks at each Arrow batch as it passes."""

    def __init__(self) -> None:
        self._number = next(_numbers)

    def over(self, rows: DataFrame, sums: Mapping[str, str]) -> DataFrame:
        """See `Counters`."""
        from pyspark.sql import functions as F

        _sums[self._number] = dict.fromkeys(sums, 0)
        summed = [F.expr(f"cast({sql} AS bigint)").alias(f"_sum_{name}") for name, sql in sums.items()]
        return rows.select("*", *summed).mapInArrow(_Pass(self._number, tuple(sums)), rows.schema)

    def values(self) -> dict[str, int]:
        """See `Counters`."""
        return _sums.pop(self._number)


@dataclass(frozen=True, slots=True)
class _Pass:
    """Adds up the last columns of each batch, and lets the others pass."""

    number: int
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            kept = batch.num_columns - len(self.names)
            found = [pc.sum(batch.column(kept + index)).as_py() or 0 for index in range(len(self.names))]
            with _adding:
                totals = _sums[self.number]
                for name, value in zip(self.names, found, strict=True):
                    totals[name] += value
            yield pa.RecordBatch.from_arrays(
                [batch.column(index) for index in range(kept)],
                schema=pa.schema([batch.schema.field(index) for index in range(kept)]),
            )
