"""Tables of a pipeline as they were after one of its batches, read in part and without Spark.

A *cut* is a commit row of the ledger, which names the version of every table. Files are skipped if their statistics
rule out a match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from windowlib.definition.commands import to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant, nearest_utc
from windowlib.delta.data_files import DataFile, rows_of
from windowlib.delta.tables import Table
from windowlib.inspection.lineage.batch_runs import BatchRun, batches_of, history, of_this_definition
from windowlib.ledger.rerun_request import time_ms
from windowlib.ledger.retained_batches import check_kept
from windowlib.model.rerun import TimeRange
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from windowlib.publication.key import CannotLook, Key
from windowlib.storage.object_file import opened

KEYED_TABLES = ("results", "open_windows", "late_events")
EVER = TimeRange(MIN_TIMESTAMP_MS, MAX_TIMESTAMP_MS + 1)


class ReadFilter(TypedDict, total=False):
    """Filter of a read: `columns` to read, the `key` of the rows, and an expression that the rows fulfil (`where`)."""

    columns: Sequence[str] | None
    key: Key | None
    where: pc.Expression


@dataclass(frozen=True)
class Cut:
    """A pipeline's tables after `batch`. `batches` holds the batches behind these tables, by id (see `history`)."""

    definition: Definition
    batch: BatchRun
    batches: Mapping[int, BatchRun] = field(repr=False)
    _files: dict[str, list[DataFile]] = field(default_factory=dict, repr=False, compare=False)

    def files(self, table: str) -> list[DataFile]:
        """Files of a table; empty if it did not exist. Raises `CannotLook` if its version is no longer on disk."""
        if table not in self._files:
            try:
                self._files[table] = Table(self.definition.store.below(table)).files(self.batch.versions.get(table))
            except (DeltaError, FileNotFoundError) as error:
                raise self._gone(table) from error
        return self._files[table]

    def rows(
        self, table: str, files: Iterable[DataFile] | None = None, **only: Unpack[ReadFilter]
    ) -> Iterator[dict[str, Any]]:
        """Rows of a table or of given files, with partition columns. Selected columns that a file lacks are null."""
        lacking = dict.fromkeys(only.get("columns") or ())
        for file, rows in self.read(table, files, **only):
            for row in rows_of(rows):
                yield {**lacking, **row, **file.partition}

    def read(
        self, table: str, files: Iterable[DataFile] | None = None, **only: Unpack[ReadFilter]
    ) -> Iterator[tuple[DataFile, pa.Table]]:
        """Arrow tables with the selected rows, file by file, without partition columns."""
        from pyarrow import dataset  # imported here, because it imports pandas

        store, columns = self.definition.store.below(table), only.get("columns")
        key, where = only.get("key"), only.get("where")
        for file in self.files(table) if files is None else files:
            try:
                data = dataset.ParquetFileFormat().make_fragment(opened(store, file.path, file.size_bytes))
                schema = data.physical_schema
                if key is not None and not {*key.columns} <= {*schema.names}:
                    continue  # a file from before a migration, which had another key
                if key is not None and not key.may_be_in(file, schema):
                    continue
                chosen = pc.scalar(True) if where is None else where
                if key is not None:
                    chosen = chosen & key.where(schema)
                have = None if columns is None else [name for name in columns if name in schema.names]
                yield file, data.to_table(columns=have, filter=chosen)
            except FileNotFoundError as error:
                raise self._gone(table) from error

    def schema(self, table: str) -> pa.Schema | None:
        """Schema of a table's files; None without files."""
        for file in self.files(table):
            try:
                return pq.read_schema(opened(self.definition.store.below(table), file.path, file.size_bytes))
            except FileNotFoundError as error:
                raise self._gone(table) from error
        return None

    def keyed_schema(self) -> pa.Schema | None:
        """Schema of a table with the key columns; None before any such table has a row."""
        return next((schema for schema in map(self.schema, KEYED_TABLES) if schema is not None), None)

    def _gone(self, table: str) -> CannotLook:
        return CannotLook(
            f"{table} as it was after batch {self.batch.batch_id} is no longer on disk: its old files were cleaned up."
            " Ask for a newer batch"
        )


def cut(definition: Definition, as_of: int | None = None) -> Cut:
    """The tables as of batch `as_of`, or as of the newest batch.

    Raises `CannotLook` if the current definition has no such cut, and `CutExpired` if files of the cut are deleted.
    """
    every = batches_of(definition)
    batches = {run.batch_id: run for run in of_this_definition(every)}
    if not batches:
        first = to_paste("run", definition.file)
        raise CannotLook(f"no batch is committed in {definition.store} yet; run `{first}` first")
    wanted = max(batches) if as_of is None else as_of
    if wanted not in batches and any(run.batch_id == wanted for run in every):
        raise CannotLook(
            f"batch {wanted} was published under an earlier definition, before a migration. Batches of the current"
            f" definition are {_listed(sorted(batches))}"
        )
    if wanted not in batches:
        raise CannotLook(f"no batch {wanted} is committed; committed batches: {_listed(sorted(batches))}")
    if (whole := batches[wanted].part_of) is not None:
        raise CannotLook(
            f"batch {wanted} built only a part of the tables of the migration, batch {whole}: ask for batch {whole}"
        )
    check_kept(definition.store, wanted, f"the tables cannot be read as batch {wanted} left them")
    return Cut(definition, batches[wanted], history(batches, wanted))


def asked_range(from_text: str | None, to_text: str | None, time_zone: str | None = None) -> TimeRange:
    """Range between two times, by default in `time_zone`. A time of None sets no bound.

    Raises as `time_ms` does, and `CannotLook` for an empty range.

    >>> asked_range("2026-03-03T00:00Z", None).from_ms, asked_range(None, None) == EVER
    (1772496000000, True)
    """
    from_ms = EVER.from_ms if from_text is None else time_ms("from", from_text, time_zone)
    to_ms = EVER.to_ms if to_text is None else time_ms("to", to_text, time_zone)
    if to_ms <= EVER.from_ms or from_ms >= EVER.to_ms:
        bound = f"to {instant(to_ms)}" if to_ms <= EVER.from_ms else f"from {instant(from_ms)}"
        ever = f"{instant(EVER.from_ms)} to {instant(EVER.to_ms)}"
        raise CannotLook(f"{bound} leaves no possible event time: event times are from {ever}")
    if from_ms >= to_ms:
        raise CannotLook(
            f"from {instant(from_ms)} is not before to {instant(to_ms)}; the range is from (inclusive) to (exclusive)"
        )
    return TimeRange(from_ms, to_ms)


def within(column: str, span: TimeRange) -> pc.Expression:
    """Expression that selects the rows whose TIMESTAMP in `column` lies inside the span."""
    return (pc.field(column) >= pa.scalar(nearest_utc(span.from_ms))) & (
        pc.field(column) < pa.scalar(nearest_utc(span.to_ms))
    )


def _listed(numbers: Sequence[int]) -> str:
    """Lists ascending numbers in words, with consecutive numbers as a range.

    >>> _listed([1, 2, 3, 5]), _listed([7])
    ('1 to 3, 5', '7')
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
