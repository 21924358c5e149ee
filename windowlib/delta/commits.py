"""Commits of Delta tables, by compare-and-set.

A *commit* adds and removes files by name. It succeeds only if the table is still at the version that it expects. A
writer whose version is no longer the newest gets `Conflict` and changes nothing. Spark or pyarrow writes the Parquet
files into the table's folder first (`windowlib.delta.data_files`). Readers see them only after a commit names them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from windowlib.delta import disk, log
from windowlib.delta import indexed_columns as indexed
from windowlib.delta.data_files import DataFile, without
from windowlib.delta.log import ACTIONS, IDENTITY
from windowlib.delta.table_change import FileChange, logged
from windowlib.delta.tables import Table, from_backup
from windowlib.model.errors import WindowError

# VACUUM of other programs must keep old versions this long, so that runs can be rolled back and inspected. A process
# that opens a table reads the entries after its last checkpoint, about 0.2 ms each. Only maintenance shortens logs,
# because it knows the versions to keep.
CONFIGURATION = {
    "delta.deletedFileRetentionDuration": "interval 30 days",
    "delta.logRetentionDuration": "interval 365 days",
    "delta.checkpointInterval": "10",
    "delta.enableExpiredLogCleanup": "false",
}
T = TypeVar("T")
RESTORED = "restored"  # identity of commits that undo changes without a commit row


class Conflict(Exception):
    """Another writer committed first: nothing of this commit was applied."""


class LostFiles(WindowError):
    """A file that a version of a table names is missing or differs from the file as written."""


class RefusedCommit(WindowError):
    """A commit failed although no other writer was faster: because of the table's settings or the disk."""


def again_on_conflict(step: Callable[[], T], at_most: int = 1_000) -> T:
    """Runs `step`, again after each `Conflict`, and returns its result; `step` reads the table each time.

    Raises `RefusedCommit` after `at_most` attempts.
    """
    for _ in range(at_most):
        with suppress(Conflict):
            return step()
    raise RefusedCommit(
        f"no commit succeeded in {at_most:,} attempts: other writers were faster each time. Find the program that"
        " writes to this table in a loop, stop it, and run again"
    )


def create(table: Table, schema: Schema, partition_by: Sequence[str] = ()) -> int:
    """Creates an empty table at version 0; raises `Conflict` if another run has just created it."""
    table.folder.mkdir(parents=True, exist_ok=True)
    try:
        settings = configuration(table.folder.name, schema)
        DeltaTable.create(
            str(table.folder), schema, mode="error", partition_by=list(partition_by), configuration=settings
        )
    except DeltaError as error:
        if table.version() is not None:
            raise Conflict(f"{table.folder} was created by another run") from error
        raise
    return sync_version(table, 0)


def configuration(table: str, schema: Schema) -> dict[str, str]:
    """The settings of a new table with this name and these columns."""
    return {**CONFIGURATION, **indexed.properties(table, schema)}


def sync_version(table: Table, version: int) -> int:
    """Syncs the log entry of a version to the disk and returns the version.

    The first call for a table also syncs the folder above it, because the process that created the table may have died
    before. An entry that is deleted because the log was shortened is no error.
    """
    root = table.folder.parent if table.synced_version is None else table.folder
    try:
        disk.sync(log.written_by(table.folder, version), root)
    except FileNotFoundError:
        if version >= log.oldest_version(table.folder):
            raise
    table.synced_version = version
    return version


def sync_commits(table: Table, after: int | None, up_to: int) -> None:
    """Syncs all files of the commits ``(after, up_to]`` to the disk; `after` None means since the table was created.

    Call it before a commit on top of other writers' commits: a later entry must not outlive an earlier one.
    """
    entries = log.entries(table.folder, 0 if after is None else after, up_to)
    disk.sync(log.files_of(table.folder, entries), table.folder)


def commit(
    table: Table,
    expected: int,
    *,
    add: Iterable[DataFile] = (),
    remove: Iterable[DataFile] = (),
    identity: str | None = None,
    of_rows: bool = True,
) -> int:
    """Adds and removes files in one commit on version `expected`; returns the new version, synced to the disk.

    `of_rows` is as in `FileChange`; `identity` is kept in the log's metadata. Raises `Conflict` if the table is no
    longer at `expected`, and `RefusedCommit` if the commit fails for another reason.
    """
    change = FileChange(tuple(map(logged, add)), tuple(map(logged, remove)), of_rows)
    return sync_version(table, commit_logged(table, expected, change, identity))


def commit_logged(
    table: Table,
    expected: int,
    change: FileChange,
    identity: str | None = None,
    transaction: tuple[str, int] | None = None,
) -> int:
    """Commits files as the log describes them, without a sync; `transaction` is (application id, batch id).

    The log keeps the transaction. If columns change while some files stay, a first commit without the transaction
    changes the columns. It changes no row, and the next attempt continues from it. A batch syncs the entries of all
    its tables together.
    """
    with cut_is_conflict():
        log.check_can_open(table.folder, expected)
        before = table.at(expected)
    partition_by = before.metadata().partition_columns
    columns = None if change.columns == before.schema() else change.columns
    stay = {f.path for f in table.files(expected)} - {f.path for f in change.remove} if columns else ()
    if stay and change.remove:  # one commit of delta-rs cannot change columns and remove some files
        columns_first = FileChange(of_rows=change.of_rows, columns=change.columns)
        expected = commit_logged(table, expected, columns_first, identity)
        return commit_logged(table, expected, replace(change, columns=None), identity, transaction)
    try:
        before.create_write_transaction(
            _actions(change, with_removals=columns is None),
            mode="overwrite" if columns else "append",
            schema=columns or before.schema(),
            partition_by=partition_by or None,
            partition_filters=[(partition_by[0], "in", [])] if stay else None,  # an overwrite of nothing
            commit_properties=_properties(identity, transaction, len(change.add) + len(change.remove)),
        )
    except DeltaError as error:
        _check_not_cut(table, expected)
        if isinstance(error, CommitFailedError):
            raise _commit_failure(table, expected, error) from error
        raise
    _check_not_cut(table, expected)  # after a cut the new entry has the number of a deleted one: no reader sees it
    return expected + 1


def _actions(change: FileChange, *, with_removals: bool) -> list[AddAction | RemoveAction]:
    """The actions of a commit. A commit that changes columns is an overwrite, which needs no removals."""
    now_ms = time.time_ns() // 1_000_000  # only for the files' modification times in the log
    added = [
        AddAction(f.path, f.size_bytes, dict(f.partition), now_ms, change.is_data_change(f), f.statistics)
        for f in change.add
    ]
    if not with_removals:
        return [*added]
    removed = [
        RemoveAction(f.path, change.is_data_change(f), now_ms, f.size_bytes, dict(f.partition)) for f in change.remove
    ]
    return [*added, *removed]


@contextmanager
def cut_is_conflict() -> Iterator[None]:
    """Raises `Conflict` if the log was shortened past a version: other writers have committed long after it."""
    try:
        yield
    except log.CutLog as error:
        raise Conflict(str(error)) from error


def _check_not_cut(table: Table, expected: int) -> None:
    with cut_is_conflict():
        log.check_can_open(table.folder, expected)


def _commit_failure(table: Table, expected: int, error: DeltaError) -> Exception:
    """The reason why a commit on version `expected` failed: another commit, or the table itself."""
    if table.version() != expected:
        return Conflict(f"{table.folder.name} is no longer at version {expected}")
    return RefusedCommit(
        f"table {table.folder} refuses a commit: {error}. Another program has changed the table's settings, or the disk"
        " cannot be written. Undo that and run again"
    )


def _properties(
    identity: str | None, transaction: tuple[str, int] | None = None, files_named: int = 0
) -> CommitProperties:
    named = {ACTIONS: str(files_named + bool(transaction)), **({IDENTITY: identity} if identity else {})}
    return CommitProperties(
        max_commit_retries=0,
        app_transactions=[Transaction(*transaction)] if transaction else None,
        custom_metadata=named,
    )


def restore(table: Table, expected: int | None, at: int | None, *, of_rows: bool = True) -> int | None:
    """Restores the files and columns of version `at` by a new commit on version `expected`, if they differ.

    `at` None means an empty table. Returns the newest version afterwards. Raises `Conflict` if the table is no longer
    at `expected`, and `LostFiles` if a file to restore is deleted.
    """
    if expected is None:
        return None
    check_can_restore(table, expected, at)
    have, want = table.files(expected), table.files(at)
    add, remove = (list(map(logged, files)) for files in (without(want, have), without(have, want)))
    columns = None if at is None else table.at(at).schema()
    if not add and not remove and columns in (None, table.at(expected).schema()):
        return expected
    sync_commits(table, at, expected)
    return sync_version(table, commit_logged(table, expected, FileChange(add, remove, of_rows, columns), RESTORED))


def check_can_restore(table: Table, expected: int, at: int | None) -> None:
    """Raises `LostFiles` if a file that `restore` needs is deleted."""
    back = (file.path for file in without(table.files(at), table.files(expected)))
    if gone := sorted(path for path in back if not (table.folder / path).exists()):
        raise LostFiles(
            f"table {table.folder.name} cannot be restored to version {at}: {gone[0]} is deleted ({len(gone)} such"
            " files), for example by a compaction and VACUUM of another program. Nothing was changed."
            f" {from_backup(table.folder)}"
        )
