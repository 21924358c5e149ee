"""Table changes of a switch: the files of the new tables, placed in the folders of the old tables.

Files without batch ids are hard-linked. Files with a column of batch ids are written again, because their batches get
new ids after the newest batch of the pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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

CAUSE = "migrate"
KEEP = (WATERMARKS.name, RUN_METRICS.name, DQ_RESULTS.name)  # tables that keep their rows of earlier batches
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


def moved(source: PipelineSnapshot, name: str, into: Tables, attempt: str, after_batch: int) -> list[DataFile]:
    """Links or copies the files of a table into the same table of `into`. Batch 1 becomes `after_batch` + 1."""
    files = []
    for number, file in enumerate(source.files(name)):
        other, called = into[name].folder, f"{attempt}-{number}-{Path(file.path).name}"
        other.mkdir(parents=True, exist_ok=True)
        path = source.tables[name].folder / file.path
        if {*pq.read_schema(path).names} & {*OF_BATCHES}:
            target = publish.target(other, called, file.partition)
            _renumber(path, other / target, after_batch)
            files.append(data_files.data_file(other, target, file.partition))
        else:
            files.append(publish.link(file, source.tables[name].folder, other, called, file.partition))
    return files


def _renumber(path: Path, target: Path, after_batch: int) -> None:
    source = pq.ParquetFile(path)
    with pq.ParquetWriter(target, source.schema_arrow, **data_files.bulk_write_options(source.schema_arrow)) as writer:
        for group in range(source.num_row_groups):
            rows = source.read_row_group(group)
            for name in {*rows.column_names} & {*OF_BATCHES}:
                index = rows.column_names.index(name)
                later = pc.add(rows[name], pa.scalar(after_batch, rows.schema.field(index).type))
                rows = rows.set_column(index, rows.schema.field(index), later)
            writer.write_table(rows)


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
    """Moves the staged changes into the folder of `result_changes`.

    `results` has the schemas of the old and new table `results`.
    """
    add = []
    for path, partition in staging.written(FEED):
        day = day_of(partition[PARTITION])
        kinds = {"change": partition["change"], "cause": CAUSE, "window_day": day}
        add.append(staging.move(path, RESULT_CHANGES.name, kinds))
    schema: Schema | None = None
    for result_schema in results:
        changes = publish.changes_schema(result_schema)
        schema = changes if schema is None else publish.with_all_columns(schema, changes)
    return appended(RESULT_CHANGES.name, here, [file for file in add if file.rows], schema)
