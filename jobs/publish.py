"""From files that Spark wrote to files that tables hold.

Spark writes everything a batch makes into a staging folder of the attempt, split by partition columns. Here those
files are moved into the folders of their tables, under names that no other attempt uses, and described for a commit.
Until the commit nobody sees them.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import Schema

from jobs import delta, opened
from jobs.delta import DataFile
from jobs.tables import TABLES
from windowlib.errors import StateMismatch

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

EPOCH_DAY = date(1970, 1, 1)


@dataclass(slots=True)
class Changes:
    """What one batch will commit to one table; `schema` is for a table that may not exist yet."""

    add: list[DataFile] = field(default_factory=list)
    remove: list[DataFile] = field(default_factory=list)
    rows: Sequence[Mapping[str, Any]] | None = None
    schema: Schema | None = None

    @property
    def rows_added(self) -> int:
        return sum(file.rows for file in self.add)


def staging_folder(root: Path) -> Path:
    """Where the attempts of a pipeline's batches write before their files are moved into tables."""
    return root / "_staging"


def staged(folder: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """The Parquet files below `folder` with the partition values of their path."""
    for path in sorted(folder.rglob("*.parquet")):
        parts = path.relative_to(folder).parts[:-1]
        yield path, dict(part.split("=", 1) for part in parts if "=" in part)


def move(path: Path, table: Path, name: str, partition: Mapping[str, Any]) -> DataFile:
    """Moves one staged file into its table's folder and describes it."""
    target = _target(table, name, partition)
    os.replace(path, table / target)
    return delta.data_file(table, target, partition)


def link(file: DataFile, table: Path, other: Path, name: str, partition: Mapping[str, Any]) -> DataFile:
    """Gives a file of `table` to the table `other` too: a hard link where the disk can, else a copy.

    Columns that only `other` has must be partition columns there; those it lacks are not seen.
    """
    target = _target(other, name, partition)
    try:
        os.link(table / file.path, other / target)
    except OSError:
        shutil.copyfile(table / file.path, other / target)
    return replace(file, path=target, partition=dict(partition))


def _target(table: Path, name: str, partition: Mapping[str, Any]) -> str:
    folder = "/".join(f"{key}={value}" for key, value in partition.items())
    (table / folder).mkdir(parents=True, exist_ok=True)
    return f"{folder}/{name}" if folder else name


def day(slot: str) -> date:
    """The day that a staged file's slot stands for (days since 1970-01-01)."""
    return EPOCH_DAY + timedelta(days=int(slot))


def table_schema(schema: StructType, columns: list[str], partition: Mapping[str, str]) -> Schema:
    """A Delta schema: `columns` of a Spark schema, all nullable, then partition columns (name → Delta type)."""
    known = {f["name"]: f for f in json.loads(schema.json())["fields"]}
    fields = [{**known[name], "nullable": True, "metadata": {}} for name in columns]
    fields += [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in partition.items()]
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields}))


def changes_schema(results: Schema) -> Schema:
    """The schema of `result_changes`: that of `results`, with change and cause."""
    fields = json.loads(results.to_json())["fields"]
    fields += [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in ("change", "cause")]
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields}))


def spark_schema(folder: Path, version: int) -> StructType:
    """The columns of a table as Spark reads its files: without the partition columns."""
    from pyspark.sql.types import StructType

    table = opened.at(folder, version)
    partition = set(table.metadata().partition_columns)
    fields = json.loads(table.schema().to_json())["fields"]
    return StructType.fromJson({"type": "struct", "fields": [f for f in fields if f["name"] not in partition]})


def commit_table(
    root: Path, name: str, changes: Changes, expected: int | None, transaction: tuple[str, int]
) -> int | None:
    """Commits one table's changes on the version this attempt saw, creating the table first where there is none.

    Gives the new version; the one seen where nothing changes. Raises `Conflict` when another attempt was faster, and
    `StateMismatch` when the table has other columns than this batch.
    """
    folder = root / name
    nothing = not changes.add and not changes.remove and not changes.rows
    if nothing:
        return expected
    if expected is None:
        spec = TABLES[name]
        expected = delta.create(folder, changes.schema or spec.schema(), spec.partition_by)
    elif changes.schema is not None:
        _same_columns(folder, expected, changes.schema)
    if changes.rows is not None:
        return delta.append_rows(folder, expected, changes.rows, transaction)
    return delta.commit(folder, expected, add=changes.add, remove=changes.remove, transaction=transaction)


def _same_columns(folder: Path, version: int, schema: Schema) -> None:
    def columns(of: Schema) -> dict[str, str]:
        return {f["name"]: json.dumps(f["type"]) for f in json.loads(of.to_json())["fields"]}

    have, want = columns(opened.at(folder, version).schema()), columns(schema)
    if have != want:
        differing = sorted(name for name in have.keys() | want.keys() if have.get(name) != want.get(name))
        raise StateMismatch(
            f"table {folder.name} has other columns than this batch: "
            + "; ".join(f"{n} is {have.get(n, 'absent')}, now {want.get(n, 'absent')}" for n in differing)
        )
