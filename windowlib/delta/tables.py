"""Delta tables as lists of Parquet files, at a version: those of a pipeline, as one attempt has them open.

Parquet files are written by Spark or pyarrow into the table's folder (`windowlib.delta.data_files`); until a commit
names them (`windowlib.delta.commits`) no reader sees them.

Opening a table lists its log and reads it (8 ms); an open one asks only for its next commit (3 ms), and only where the
log has one. A run looks at its dozen tables some fifty times, so it opens each of them once and passes them on. An open
table belongs to one thread at a time.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from windowlib.delta import data_files, disk
from windowlib.delta.data_files import DataFile
from windowlib.delta.indexed_columns import looked_for
from windowlib.delta.log import (
    DamagedLog,
    check,
    check_can_open,
    check_entries,
    check_later,
    entry,
    file_of,
    last_checkpoint,
)
from windowlib.model.errors import reason_of


@dataclass(slots=True)
class Table:
    """The Delta table in a folder, whether or not there is one yet; opened when it is first asked for.

    What is asked of a version is that version's, whatever was committed since; `None` is that of no table.
    """

    folder: Path
    listed: dict[int, list[DataFile]] = field(default_factory=dict)  # the files of a version, which never change
    lasting: int | None = None  # the newest version that was made to last here
    _open: DeltaTable | None = None
    _first_commit: tuple[int, int] | None = None  # of the open table

    def newest(self) -> DeltaTable | None:
        """The table at its newest version, None where there is no table. Valid until it is asked for again."""
        first_commit = self._identity()
        if self._open is None or self._first_commit != first_commit or self._is_cleaned_up(first_commit):
            if first_commit is None and not self._has_log():
                self._check_may_be_read()
                return None
            check_entries(self.folder)
            with explained(self.folder):
                self._open, self._first_commit, self.listed = DeltaTable(str(self.folder)), first_commit, {}
        elif file_of(self.folder, self._open.version() + 1).exists():
            check_later(self.folder, self._open.version())
            with explained(self.folder):
                self._open.update_incremental()
        return self._open

    def at(self, version: int) -> DeltaTable:
        """The table at `version`. Valid until the newest is asked for. Raises `log.DamagedLog` if that is lost, and
        `log.CutLog` if the log was shortened past it.
        """
        table = self.newest()
        if table is None:
            said = f"table {self.folder.name} does not exist: version {version} is needed"
            raise DamagedLog(f"{said}. {from_backup(self.folder)}")
        if table.version() == version:
            return table
        with explained(self.folder, version):
            return DeltaTable(str(self.folder), version=version)

    def version(self) -> int | None:
        """The newest version, or None where there is no table."""
        newest = self.newest()
        return None if newest is None else newest.version()

    def columns(self, version: int) -> list[dict[str, Any]]:
        """The columns of a version, and those that it is partitioned by. What comments say of them is left out."""
        found = self.at(version)
        fields: list[dict[str, Any]] = json.loads(found.schema().to_json())["fields"]
        for one in fields:
            one["metadata"] = {name: value for name, value in one["metadata"].items() if name != "comment"}
        return [*fields, {"partitioned by": found.metadata().partition_columns}]

    def files(self, version: int | None) -> list[DataFile]:
        """The files of a version."""
        if version is None:
            return []
        table = self.at(version)
        if version not in self.listed:
            self.listed = {version: self._described(table, _listed(table))}
        return self.listed[version]

    def files_where(self, version: int | None, chosen: Callable[[pa.Table], pa.ChunkedArray]) -> list[DataFile]:
        """The files of a version that `chosen` takes, of a table with a row for each; the others become no objects.

        A row has `path` and what the log says: partition values as `partition.NAME`, statistics as `min.NAME`,
        `max.NAME`.
        """
        if version is None:
            return []
        table = self.at(version)
        listed = _listed(table)
        return self._described(table, listed.filter(chosen(listed)))

    def newest_batch(self, version: int | None) -> int | None:
        """The newest batch that has rows in a version, by the statistics of its files; None without any."""
        return max((file.high["batch_id"] for file in self.files(version)), default=None)

    def row_count(self, version: int | None) -> int:
        """The number of rows of a version, by its files' statistics; of ten thousand files no more is looked at.

        A file of another program that the log says nothing of is counted by its footer.
        """
        if version is None:
            return 0
        table = self.at(version)
        if version in self.listed:
            return sum(file.rows for file in self.listed[version])
        actions = pa.RecordBatchReader.from_stream(table.get_add_actions()).read_all()
        known = zip(actions["path"].to_pylist(), actions["num_records"].to_pylist(), strict=True)
        return sum(pq.read_metadata(self.folder / path).num_rows if rows is None else rows for path, rows in known)

    def rows(self, chosen: Iterable[DataFile], schema: pa.Schema | None) -> Iterator[dict[str, Any]]:
        """The rows of some files of a small table as dictionaries; a column that a file lacks is null."""
        for file in chosen:
            yield from data_files.rows_of(data_files.read_parquet(self.folder / file.path, schema))

    def _identity(self) -> tuple[int, int] | None:
        """What distinguishes a table from one made in its place: its first commit; None once that is cleaned up."""
        try:
            first = file_of(self.folder, 0).stat()
        except OSError:
            return None
        return first.st_ino, first.st_mtime_ns

    def _is_cleaned_up(self, first_commit: tuple[int, int] | None) -> bool:
        """Whether the log has gone on so far that the entry of the open version is deleted."""
        assert self._open is not None, "a table is open"
        return first_commit is None and not file_of(self.folder, self._open.version()).exists()

    def _has_log(self) -> bool:
        if last_checkpoint(self.folder) is not None:
            return True
        return (self.folder / "_delta_log").is_dir() and DeltaTable.is_deltatable(str(self.folder))

    def _check_may_be_read(self) -> None:
        """Raises PermissionError where it is a right that is missing, and no table."""
        if denied := disk.first_unreadable(self.folder / "_delta_log"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(denied))

    def _described(self, table: DeltaTable, actions: pa.Table) -> list[DataFile]:
        def values(prefix: str) -> list[dict[str, Any]]:
            names = [name for name in actions.column_names if name.startswith(prefix)]
            short = [name.removeprefix(prefix) for name in names]
            return data_files.rows_of(actions.select(names).rename_columns(short)) or [{}] * actions.num_rows

        def known(prefix: str) -> list[dict[str, Any]]:
            return [{name: value for name, value in row.items() if value is not None} for row in values(prefix)]

        described = (actions[name].to_pylist() for name in ("path", "size_bytes", "num_records"))
        about = zip(*described, values("partition."), known("min."), known("max."), known("null_count."), strict=True)
        needed = looked_for(self.folder.name, table.schema())
        all_known = {f"min.{name}" for name in needed} <= {*actions.column_names}
        return [self._whole(DataFile(*file), all_known) for file in about]

    def _whole(self, file: DataFile, all_known: bool) -> DataFile:
        """A file with its statistics: its footer's, where another program wrote it and left the log without them, or
        not `all_known` columns by which it is looked for are among those that the log gives statistics of.
        """
        if file.rows is not None and (not file.rows or (file.low and all_known)):
            return file
        return data_files.data_file(self.folder, file.path, file.partition)


def _listed(table: DeltaTable) -> pa.Table:
    return pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables in a pipeline's folder by name, each opened once."""

    root: Path
    _tables: dict[str, Table] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Table:
        if name not in self._tables:
            self._tables[name] = Table(self.root / name)
        return self._tables[name]


@contextmanager
def explained(folder: Path, version: int | None = None) -> Iterator[None]:
    """Where the block cannot read a table's log (up to `version`): raises `log.DamagedLog`, for the entry to blame if
    one is, or `log.CutLog`. What the storage fails at is raised as it is.
    """
    try:
        yield
    except DeltaError as error:
        check(folder)
        if version is not None:
            check_can_open(folder, version)
            entry(folder, version)
        if disk.numbers_in(error):
            raise
        raise DamagedLog(
            f"table {folder.name} cannot be opened ({reason_of(error)}): its log is damaged, or another program has"
            f" made it what this version of windowlib cannot read. {from_backup(folder)}"
        ) from error


def from_backup(folder: Path) -> str:
    """The way back for a table that nothing here can make whole again."""
    return f"Restore {folder} from a backup of the warehouse"
