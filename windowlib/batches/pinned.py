"""Tables that a batch builds on, each at its version in the newest commit, with their rows as Spark DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import Schema

from windowlib.delta.data_files import DataFile
from windowlib.delta.statistics import overlapping
from windowlib.delta.tables import Tables
from windowlib.engines.choice import dialect_of
from windowlib.model.rerun import TimeRange
from windowlib.publication import publish
from windowlib.publication.damage import check_exist
from windowlib.storage.at_once import at_once
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

TIMES = {"results": ("window_start", "window_end"), "late_events": ("event_time", "event_time")}


@dataclass(frozen=True, slots=True)
class Pinned:
    """The `opened` tables at `versions`; a table without a version does not exist yet.

    wider: schemas of the tables that the batch adds columns to; existing rows have null in the new columns
    given: by table, the files that the engine was given to read (`check_given`)
    """

    opened: Tables
    versions: Mapping[str, int]
    spark: SparkSession
    wider: Mapping[str, Schema] = field(default_factory=dict)
    given: dict[str, list[DataFile]] = field(default_factory=dict)

    def files(self, table: str) -> list[DataFile]:
        """Files of a table."""
        return self.opened[table].files(self.versions.get(table))

    def files_in(self, table: str, span: TimeRange) -> list[DataFile]:
        """Files of `results` or `late_events` that may hold a window or an event that overlaps or touches the span."""
        return overlapping(self.files(table), *TIMES[table], span)

    def files_of_days(self, table: str, days: Collection[date]) -> list[DataFile]:
        """Files of `results` with one of these window days."""
        wanted = pa.array(sorted(days), pa.date32())
        return self.files_where(table, lambda files: pc.is_in(files["partition.window_day"], wanted))

    def files_where(self, table: str, chosen: Callable[[pa.Table], pa.ChunkedArray]) -> list[DataFile]:
        """Files of a table for which `chosen` is true; see `Table.files_where`."""
        return self.opened[table].files_where(self.versions.get(table), chosen)

    def rows(self, table: str, files: Sequence[DataFile] | None = None) -> DataFrame | None:
        """Rows of the given files of a table, or of all its files if `files` is None. Returns None if there are no
        files.
        """
        chosen = self.files(table) if files is None else files
        if not chosen:
            return None
        schema = self._schema(table)
        return self.spark.read.schema(schema).parquet(*self._paths(table, chosen))

    def rows_with_file(self, table: str, files: Sequence[DataFile]) -> DataFrame | None:
        """Rows of the given files of a table, with column FILE: path or URI of the row's file. None without files."""
        if not files:
            return None
        schema = self._schema(table)
        return dialect_of(self.spark).rows_with_file(self.spark, self._paths(table, files), schema)

    def check_given(self) -> None:
        """Raises `LostFiles` if a file was deleted while the engine read it.

        A file never changes under its name. So a file that exists before and after the work has been read whole. Only
        engines that read a missing file as no rows need this check.
        """
        if self.given and dialect_of(self.spark).skips_missing_files:
            at_once(lambda table: check_exist(self.opened, table, self.given[table]), self.given)

    def store(self, table: str) -> Store:
        """Storage of a table. Paths of its files are relative to it."""
        return self.opened[table].store

    def has(self, table: str) -> bool:
        """Tests if a table exists."""
        return self.versions.get(table) is not None

    def schema(self, table: str) -> Schema:
        """Schema of an existing table, with the columns that the batch adds."""
        return self.wider.get(table) or self.opened[table].schema(self.versions[table])

    def count(self, table: str) -> int:
        """Number of rows of a table, from the statistics of its files."""
        return self.opened[table].row_count(self.versions.get(table))

    def _schema(self, table: str) -> StructType:
        partition_by = self.opened[table].description(self.versions[table]).partition_by
        return publish.spark_schema(self.schema(table), partition_by)

    def _paths(self, table: str, files: Sequence[DataFile]) -> list[str]:
        check_exist(self.opened, table, files)
        self.given.setdefault(table, []).extend(files)
        return [f"{self.store(table).url}/{file.path}" for file in files]
