"""Table changes of a switch: the files of the new tables, placed in the folders of the old tables.

Files without batch ids are copied by the storage. Files with a column of batch ids are written again, because their
batches get new ids after the newest batch of the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import Schema

from windowlib.batches.staging import Staging
from windowlib.contract.result_tables import RESULT_CHANGES
from windowlib.contract.tables import DQ_RESULTS, RUN_METRICS, TABLES, WATERMARKS
from windowlib.delta import data_files
from windowlib.delta.data_files import DataFile
from windowlib.delta.table_change import logged
from windowlib.delta.tables import Tables
from windowlib.ledger.prepare import TableChange
from windowlib.migrations.difference import FEED
from windowlib.plans.partitions import PARTITION
from windowlib.plans.partitions import day as day_of
from windowlib.publication import publish
from windowlib.storage.at_once import THREADS, at_once
from windowlib.storage.object_file import opened
from windowlib.storage.store import Store

CAUSE = "migrate"
KEEP = (WATERMARKS.name, RUN_METRICS.name, DQ_RESULTS.name)  # tables that keep their rows of earlier batches
WRITTEN_AT_ONCE = 4  # files that are held in memory
OF_BATCHES = ("batch_id", "readmitted_by", "contents_from")  # columns of batch ids


@dataclass(frozen=True, slots=True)
class PipelineSnapshot:
    """A pipeline's tables, each at the version from which a batch starts."""

    tables: Tables
    versions: Mapping[str, int]

    def files(self, name: str) -> list[DataFile]:
        return self.tables[name].files(self.versions.get(name))

    def schema(self, name: str) -> Schema | None:
        version = self.versions.get(name)
        return None if version is None else self.tables[name].schema(version)


def copied(source: PipelineSnapshot, name: str, into: Tables, attempt: str, after_batch: int) -> list[DataFile]:
    """Copies the files of a table into the same table of `into`. Batch 1 becomes `after_batch` + 1."""
    schema, place = source.schema(name), into[name].store
    has_batches = schema is not None and bool({field.name for field in schema.fields} & {*OF_BATCHES})

    def placed(numbered: tuple[int, DataFile]) -> DataFile:
        number, file = numbered
        called = f"{attempt}-{number}-{file.path.rpartition('/')[2]}"
        target = publish.target(called, file.partition)
        if has_batches:
            groups = _renumbered(source.tables[name].store, file, after_batch)
            return data_files.write_groups(place, target, groups, file.partition)
        source.tables[name].store.copy(file.path, place, target)
        return replace(file, path=target)

    return at_once(placed, enumerate(source.files(name)), WRITTEN_AT_ONCE if has_batches else THREADS)


def _renumbered(store: Store, file: DataFile, after_batch: int) -> Iterator[pa.Table]:
    """The row groups of a file, with the batch ids after batch `after_batch`."""
    source = pq.ParquetFile(opened(store, file.path, file.size_bytes))
    for group in range(source.num_row_groups):
        rows = source.read_row_group(group)
        for name in {*rows.column_names} & {*OF_BATCHES}:
            index = rows.column_names.index(name)
            later = pc.add(rows[name], pa.scalar(after_batch, rows.schema.field(index).type))
            rows = rows.set_column(index, rows.schema.field(index), later)
        yield rows


def replaced(name: str, here: PipelineSnapshot, add: Sequence[DataFile], schema: Schema | None) -> TableChange:
    """Change that replaces all files of a table by `add`. Files that are both old and in `add` stay.

    `schema` is the schema of the new rows, or None if there are no new rows.
    """
    start, old_schema = here.versions.get(name), here.schema(name)
    live = here.files(name)
    differs = old_schema is not None and schema is not None and publish.fields(old_schema) != publish.fields(schema)
    return TableChange(
        name,
        start,
        schema.to_json() if start is None and schema is not None else None,
        tuple(TABLES[name].partition_by),
        tuple(map(logged, data_files.without(add, live))),
        tuple(map(logged, data_files.without(live, add))),
        schema.to_json() if differs and schema is not None else None,
    )


def appended(name: str, here: PipelineSnapshot, add: Sequence[DataFile], schema: Schema | None) -> TableChange:
    """Change that adds files to a table and keeps its files and columns. `schema` is the schema of the new rows."""
    start, old_schema = here.versions.get(name), here.schema(name)
    if old_schema is not None and schema is not None:
        schema = publish.with_all_columns(old_schema, schema)
    differs = old_schema is not None and schema is not None and publish.fields(old_schema) != publish.fields(schema)
    return TableChange(
        name,
        start,
        schema.to_json() if start is None and schema is not None and add else None,
        tuple(TABLES[name].partition_by),
        tuple(map(logged, add)),
        (),
        schema.to_json() if differs and schema is not None and add else None,
    )


def feed(staging: Staging, here: PipelineSnapshot, results: Sequence[Schema]) -> TableChange:
    """Copies the staged changes to `result_changes`.

    `results` has the schemas of the old and new table `results`.
    """
    add = []
    for file, partition in staging.written(FEED):
        day = day_of(partition[PARTITION])
        kinds = {"change": partition["change"], "cause": CAUSE, "window_day": day}
        add.append(staging.copy(file, RESULT_CHANGES.name, kinds))
    schema: Schema | None = None
    for result_schema in results:
        changes = publish.changes_schema(result_schema)
        schema = changes if schema is None else publish.with_all_columns(schema, changes)
    return appended(RESULT_CHANGES.name, here, [file for file in add if file.rows], schema)
