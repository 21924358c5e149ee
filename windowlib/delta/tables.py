"""Delta tables as lists of Parquet files at a version, opened once per attempt.

Spark or pyarrow writes Parquet files into the table's folder (`windowlib.delta.data_files`). Readers see them only
after a commit names them (`windowlib.delta.commits`).

A run accesses its dozen tables about fifty times, so it reads the state of each table once and passes it on. The state
comes from the newest checkpoint and the entries after it (`windowlib.delta.table_state`), or from delta-rs, which takes
ten times as long. Only one thread at a time may use an open table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from windowlib.delta import data_files
from windowlib.delta.data_files import DataFile
from windowlib.delta.indexed_columns import looked_for
from windowlib.delta.log import DamagedLog, check_can_open, entry, has, name_of, path_of, way_back
from windowlib.delta.log_checks import check, check_entries
from windowlib.delta.table_state import AT_MOST, Description, TableState, carried, describe, log_entries, read
from windowlib.model.errors import reason_of
from windowlib.storage import refusals
from windowlib.storage.answers import answers_named
from windowlib.storage.store import Store


@dataclass(slots=True)
class Table:
    """The Delta table in a folder, opened at the first access. The table need not exist yet.

    Methods with a version answer for that version, independent of later commits. Version `None` means no table.
    delta-rs opens the table only if `read` cannot read it.
    """

    store: Store
    synced_version: int | None = None  # the last version that this process has synced to the disk
    checkpoint: int | None = None  # version of the newest known checkpoint
    _newest: int | None = None  # newest known version, which may be ahead of `_open`
    _own: bytes | None = None  # entry of that version; another table or a shortened log has another entry
    _open: DeltaTable | None = None
    _state: TableState | None = None  # at the version that was last asked for, which never changes
    _entries: dict[int, bytes] = field(default_factory=dict)  # entries up to the newest that `_state` does not hold yet

    @property
    def name(self) -> str:
        """Name of the table: the last part of its address."""
        return name_of(self.store)

    def newest(self) -> DeltaTable | None:
        """The table at its newest version for delta-rs; None if there is no table. Valid until the next call."""
        if (newest := self.version()) is None:
            return None
        with explained(self.store):
            if self._open is None or not has(self.store, self._open.version()):
                self._open = opened(self.store)  # its next entries may be deleted, too
            elif self._open.version() < newest:
                answers_named(self.store.url, self._open.update_incremental)
        return self._open

    def at(self, version: int) -> DeltaTable:
        """The table at `version` for delta-rs, valid until the next call of `newest`.

        Raises `log.DamagedLog` if the version is lost, and `log.CutLog` if the log was shortened past it.
        """
        table = self.newest()
        if table is None:
            missing = f"table {self.name} does not exist: version {version} is needed"
            raise DamagedLog(f"{missing}. {from_backup(self.store)}")
        if table.version() == version:
            return table
        with explained(self.store, version):
            return opened(self.store, version)

    def version(self) -> int | None:
        """The newest version; None if there is no table."""
        if self._newest is not None:
            own, later = self.store.get_many([path_of(self._newest), path_of(self._newest + 1)])
            if own is not None and own == self._own:
                return self._moved_on(later)
        self._newest = self._own = self._open = self._state = None
        self._entries = {}
        if (found := check_entries(self.store)) is None:
            return None
        newest, self.checkpoint = found
        first = -1 if self.checkpoint is None else self.checkpoint
        versions = range(min(newest, max(first + 1, newest - AT_MOST + 1)), newest + 2)
        contents = self.store.get_many([path_of(version) for version in versions])
        read = {version: content for version, content in zip(versions, contents, strict=True) if content is not None}
        later = read.pop(newest + 1, None)
        self._newest, self._own, self._entries = newest, read.get(newest), read
        return self._moved_on(later)

    def _moved_on(self, later: bytes | None) -> int | None:
        """The newest version, if the entry after the newest known version is `later`. None stands for no entry."""
        while later is not None and self._newest is not None:
            version = self._newest + 1
            if not later:
                raise DamagedLog(f"{self.store.url}/{path_of(version)} is empty: {way_back(self.store, version)}")
            self._note(version, later)
            later = self.store.get(path_of(version + 1))
        return self._newest

    def _note(self, version: int, entry: bytes) -> None:
        """Notes the newest version and its entry."""
        self._newest, self._own, self._entries[version] = version, entry, entry

    def note_commit(self, version: int, entry: bytes, checkpoint: int | None = None) -> None:
        """Notes an own commit, whose entry is on the disk, and the version of the newest checkpoint."""
        self._note(version, entry)
        self.synced_version, self.checkpoint = version, checkpoint

    def description(self, version: int) -> Description:
        """Columns and settings of a version."""
        return self._look(version, with_files=False).description

    def _look(self, version: int, *, with_files: bool) -> TableState:
        """The state of a version. With `with_files`, has its files unless delta-rs must read them."""
        state = self._known(version)
        if state is None or (with_files and state.files is None):
            if self._newest is None or self._state is not None or version > self._newest:
                self.version()  # this drops the state of a log that was shortened
                state = self._known(version)
            if self._newest is not None and version <= self._newest:
                state = state or self._carried(version, read_more=True)
                if state is None or (with_files and state.files is None):
                    state = self._read(version) or state
        self._state = state or TableState(version, describe(self.at(version)))
        self._entries = {number: entry for number, entry in self._entries.items() if number > version}
        return self._state

    def _known(self, version: int) -> TableState | None:
        """The state of a version as far as it is known without a request; None if it is not."""
        if self._state is None or self._state.version >= version:
            return self._state if self._state and self._state.version == version else None
        return self._carried(version, read_more=False)

    def _read(self, version: int) -> TableState | None:
        """The state of a version, read without delta-rs; None if delta-rs must read it."""
        state = read(self.store, version, self.checkpoint, self._entries)
        if state is None or state.files is None:
            return state
        have = {name for file in state.files for name in (*file.low, *file.nulls)}
        has_needed = {*looked_for(self.name, state.description.schema)} <= have
        return replace(state, files=[self._with_statistics(file, has_needed) for file in state.files])

    def _carried(self, version: int, *, read_more: bool) -> TableState | None:
        """The state of a version, carried over from the last state; None if that is impossible.

        Without `read_more`, uses only entries that were read already.
        """
        if self._state is None:
            return None
        older, newer = sorted((self._state.version, version))
        versions = range(older + 1, newer + 1)
        if len(versions) > AT_MOST or not (read_more or {*versions} <= self._entries.keys()):
            return None
        if (entries := log_entries(self.store, versions, self._entries)) is None:
            return None
        state = carried(self._state, version, entries)
        if state is None or state.files is None:
            return state
        return replace(state, files=[self._with_statistics(file, has_needed=True) for file in state.files])

    def schema(self, version: int) -> Schema:
        """The columns of a version."""
        return self.description(version).schema

    def columns(self, version: int) -> list[dict[str, Any]]:
        """The columns of a version without their comments, and its partition columns."""
        description = self.description(version)
        columns = [
            {**column, "metadata": {name: value for name, value in column["metadata"].items() if name != "comment"}}
            for column in description.columns
        ]
        return [*columns, {"partitioned by": [*description.partition_by]}]

    def files(self, version: int | None) -> list[DataFile]:
        """The files of a version."""
        if version is None:
            return []
        state = self._look(version, with_files=True)
        if state.files is not None:
            return state.files
        table = self.at(version)
        files = self._described(table, _listed(table))
        self._state = replace(state, files=files)
        return files

    def files_where(self, version: int | None, chosen: Callable[[pa.Table], pa.ChunkedArray]) -> list[DataFile]:
        """Files of a version that `chosen` selects. If delta-rs reads the table, creates no objects for other files.

        `chosen` gets a table with a row per file: `path`, partition values as `partition.NAME`, and statistics as
        `min.NAME` and `max.NAME`. It returns a boolean per row.
        """
        if version is None:
            return []
        if (files := self._look(version, with_files=False).files) is not None:
            are_chosen = chosen(data_files.listed(files)).to_pylist() if files else []
            return [file for file, is_chosen in zip(files, are_chosen, strict=True) if is_chosen]
        table = self.at(version)
        listed = _listed(table)
        return self._described(table, listed.filter(chosen(listed)))

    def newest_batch(self, version: int | None) -> int | None:
        """The newest batch with rows in a version, by the statistics of its files; None if it has no files."""
        return max((file.high["batch_id"] for file in self.files(version)), default=None)

    def row_count(self, version: int | None) -> int:
        """The number of rows of a version, from the row counts in the log.

        A file of another program without a row count in the log is counted by its footer.
        """
        if version is None:
            return 0
        if (files := self._look(version, with_files=True).files) is not None:
            return sum(file.rows for file in files)
        table = self.at(version)
        actions = pa.RecordBatchReader.from_stream(table.get_add_actions()).read_all()
        counts = zip(*(actions[name].to_pylist() for name in ("path", "size_bytes", "num_records")), strict=True)
        return sum(data_files.data_file(self.store, *file).rows if rows is None else rows for *file, rows in counts)

    def rows(self, chosen: Iterable[DataFile], schema: pa.Schema | None) -> Iterator[dict[str, Any]]:
        """The rows of some files of a small table as dictionaries. Columns that a file lacks are null."""
        for file in chosen:
            yield from data_files.rows_of(data_files.read_parquet(self.store, file, schema))

    def _described(self, table: DeltaTable, actions: pa.Table) -> list[DataFile]:
        needed = looked_for(self.name, table.schema())
        has_needed = {f"min.{name}" for name in needed} <= {*actions.column_names}
        return [self._with_statistics(file, has_needed) for file in data_files.unlisted(actions)]

    def _with_statistics(self, file: DataFile, has_needed: bool) -> DataFile:
        """A file with its statistics from the log, or from its footer if the log lacks them.

        The log lacks them if another program wrote the file. `has_needed` is false if the log has no statistics of a
        column that is used to choose files.
        """
        if file.rows is not None and (not file.rows or (file.low and has_needed)):
            return file
        return data_files.data_file(self.store, file.path, file.size_bytes, file.partition)


def _listed(table: DeltaTable) -> pa.Table:
    return pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a pipeline by name, each opened once."""

    store: Store
    _tables: dict[str, Table] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Table:
        if name not in self._tables:
            self._tables[name] = Table(self.store.below(name))
        return self._tables[name]


def opened(store: Store, version: int | None = None) -> DeltaTable:
    """The table in a store as delta-rs reads it, at its newest version by default."""
    options = store.options() or None
    return answers_named(store.url, lambda: DeltaTable(store.url, version=version, storage_options=options))


@contextmanager
def explained(store: Store, version: int | None = None) -> Iterator[None]:
    """Explains an error of the block, which reads a table's log (up to `version`).

    Raises `log.DamagedLog`, for the damaged entry if there is one, or `log.CutLog`. System errors pass unchanged.
    """
    try:
        yield
    except DeltaError as error:
        check(store)
        if version is not None:
            check_can_open(store, version)
            entry(store, version)
        if refusals.numbers_in(error):
            raise
        raise DamagedLog(
            f"table {name_of(store)} cannot be opened ({reason_of(error)}): its log is damaged, or another program has"
            f" given it a form that this version of windowlib cannot read. {from_backup(store)}"
        ) from error


def from_backup(store: Store) -> str:
    """Advice for a table that windowlib cannot repair."""
    return f"Restore {store} from a backup of the warehouse"
