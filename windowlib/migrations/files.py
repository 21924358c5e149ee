"""From the tables that were built under a new definition to what one commit of each table does.

Their files get into the tables' folders by hard links, as they are; where rows name the batch that wrote them, they are
written again with the ids that those batches have from now on: they follow the newest batch of the pipeline.
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
KEEP = (WATERMARKS.name, RUN_METRICS.name, DQ_RESULTS.name)  # their rows of earlier batches stay
OF_BATCHES = ("batch_id", "readmitted_by", "contents_from")  # columns that name a batch


@dataclass(frozen=True, slots=True)
class PipelineSnapshot:
    """A pipeline's tables, and the version at which a batch begins on each."""

    tables: Tables
    versions: Mapping[str, int]

    def files(self, name: str) -> list[DataFile]:
        return self.tables[name].files(self.versions.get(name))

    def schema(self, name: str) -> Schema | None:
        version = self.versions.get(name)
        return None if version is None else self.tables[name].schema(version)


def moved(of: PipelineSnapshot, name: str, into: Tables, attempt: str, after_batch: int) -> list[DataFile]:
    """The files of a table in another pipeline's folder of that table; its batch 1 becomes `after_batch` + 1."""
    found = []
    for number, file in enumerate(of.files(name)):
        other, called = into[name].folder, f"{attempt}-{number}-{Path(file.path).name}"
        other.mkdir(parents=True, exist_ok=True)
        path = of.tables[name].folder / file.path
        if {*pq.read_schema(path).names} & {*OF_BATCHES}:
            target = publish.target(other, called, file.partition)
            _renumber(path, other / target, after_batch)
            found.append(data_files.data_file(other, target, file.partition))
        else:
            found.append(publish.link(file, of.tables[name].folder, other, called, file.partition))
    return found


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
    """A table whose files of now all go; `schema` is that of the rows that come, if there are any.

    Where its columns stay, so do files that come as they are.
    """
    start, known = here.versions.get(name), here.schema(name)
    live = here.files(name)
    differs = known is not None and schema is not None and publish.fields(known) != publish.fields(schema)
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
    """A table that keeps its files, and its columns; `schema` is that of the rows that come."""
    start, known = here.versions.get(name), here.schema(name)
    if known is not None and schema is not None:
        schema = publish.with_all_columns(known, schema)
    differs = known is not None and schema is not None and publish.fields(known) != publish.fields(schema)
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
    """What changed in `results`, moved into `result_changes`; `results` are the columns that rows of it may have."""
    add = []
    for path, partition in staging.written(FEED):
        day = day_of(partition[PARTITION])
        kinds = {"change": partition["change"], "cause": CAUSE, "window_day": day}
        add.append(staging.move(path, RESULT_CHANGES.name, kinds))
    schema: Schema | None = None
    for one in results:
        changes = publish.changes_schema(one)
        schema = changes if schema is None else publish.with_all_columns(schema, changes)
    return appended(RESULT_CHANGES.name, here, [file for file in add if file.rows], schema)
