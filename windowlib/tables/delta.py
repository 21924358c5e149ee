"""Delta tables as lists of Parquet files, at a version.

Parquet files are written by Spark or pyarrow into the table's folder (`windowlib.tables.data_files`); until a commit
names them (`windowlib.tables.delta_commits`) no reader sees them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from windowlib.tables import data_files
from windowlib.tables.data_files import DataFile
from windowlib.tables.opened import Table


def version(table: Table) -> int | None:
    """The newest version, or None where there is no table."""
    newest = table.newest()
    return None if newest is None else newest.version()


def columns(table: Table, at: int | None = None) -> list[dict[str, Any]]:
    """The columns of a table that exists, at a version or (None) the newest, and those that it is partitioned by.

    What is said of them in comments is left out.
    """
    found = table.newest() if at is None else table.at(at)
    assert found is not None, "the table exists"
    fields: list[dict[str, Any]] = json.loads(found.schema().to_json())["fields"]
    for one in fields:
        one["metadata"] = {name: value for name, value in one["metadata"].items() if name != "comment"}
    return [*fields, {"partitioned by": found.metadata().partition_columns}]


def files(table: Table, at: int | None) -> list[DataFile]:
    """The files of version `at`; none for a table that does not exist (`at` is None)."""
    if at is None:
        return []
    pinned = table.at(at)
    if at not in table.listed:
        table.listed = {at: _described(table.folder, _listed(pinned))}
    found: list[DataFile] = table.listed[at]
    return found


def files_where(table: Table, at: int | None, chosen: Callable[[pa.Table], pa.ChunkedArray]) -> list[DataFile]:
    """The files of version `at` that `chosen` takes, of a table with a row for each; the others become no objects.

    A row has `path` and what the log says: partition values as `partition.NAME`, statistics as `min.NAME`, `max.NAME`.
    """
    if at is None:
        return []
    listed = _listed(table.at(at))
    return _described(table.folder, listed.filter(chosen(listed)))


def _listed(table: DeltaTable) -> pa.Table:
    return pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()


def newest_batch(table: Table, at: int | None) -> int | None:
    """The newest batch that has rows in version `at`, by the statistics of its files; None without any."""
    return max((file.high["batch_id"] for file in files(table, at)), default=None)


def row_count(table: Table, at: int | None) -> int:
    """The number of rows of version `at`, by its files' statistics; of ten thousand files no more is looked at.

    A file of another program that the log says nothing of is counted by its footer.
    """
    if at is None:
        return 0
    pinned = table.at(at)
    if at in table.listed:
        return sum(file.rows for file in table.listed[at])
    actions = pa.RecordBatchReader.from_stream(pinned.get_add_actions()).read_all()
    known = zip(actions["path"].to_pylist(), actions["num_records"].to_pylist(), strict=True)
    return sum(pq.read_metadata(table.folder / path).num_rows if rows is None else rows for path, rows in known)


def _described(folder: Path, actions: pa.Table) -> list[DataFile]:
    def rows(prefix: str) -> list[dict[str, Any]]:
        names = [name for name in actions.column_names if name.startswith(prefix)]
        short = [name.removeprefix(prefix) for name in names]
        return data_files.rows_of(actions.select(names).rename_columns(short)) or [{}] * actions.num_rows

    def known(prefix: str) -> list[dict[str, Any]]:
        return [{name: value for name, value in row.items() if value is not None} for row in rows(prefix)]

    described = (actions[name].to_pylist() for name in ("path", "size_bytes", "num_records"))
    about = zip(*described, rows("partition."), known("min."), known("max."), known("null_count."), strict=True)
    return [_whole(folder, DataFile(*file)) for file in about]


def _whole(folder: Path, file: DataFile) -> DataFile:
    """A file with its statistics: its footer's, where another program wrote it and left the log without them."""
    if file.rows is not None and (file.low or not file.rows):
        return file
    return data_files.data_file(folder, file.path, file.partition)
