"""Commits of Delta tables, by compare-and-set.

A *commit* adds and removes files by name. It succeeds only if the table is still at the version that it expects. A
writer whose version is no longer the newest gets `Conflict` and changes nothing. Spark or pyarrow writes the Parquet
files into the table's folder first (`windowlib.delta.data_files`). Readers see them only after a commit names them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from deltalake import Schema

from windowlib.definition.plurals import counted
from windowlib.delta import log, log_writing
from windowlib.delta.data_files import DataFile, missing, without
from windowlib.delta.log_writing import RefusedCommit
from windowlib.delta.table_change import FileChange, logged
from windowlib.delta.tables import Table, from_backup
from windowlib.model.errors import WindowError

T = TypeVar("T")
RESTORED = "restored"  # identity of commits that undo changes without a commit row


class Conflict(Exception):
    """Another writer committed first: nothing of this commit was applied."""


class LostFiles(WindowError):
    """A file that a version of a table names is missing or differs from the file as written."""


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
    """Creates an empty table at version 0. Raises `Conflict` if another run has just created it."""
    created = log_writing.creation(table.name, schema, partition_by, now_ms())
    if not table.store.create(log.path_of(0), created):
        raise Conflict(f"{table.store} was created by another run")
    table.note_commit(0, created)
    return 0


def now_ms() -> int:
    """Time of a log entry, for people who read it: nothing is decided by it."""
    return time.time_ns() // 1_000_000


def sync_version(table: Table, version: int) -> int:
    """Syncs the log entry of a version to the disk and returns the version.

    An entry that is deleted because the log was shortened is no error.
    """
    try:
        table.store.sync(log.written_by(table.store, version))
    except FileNotFoundError:
        if version >= log.oldest_version(table.store):
            raise
    table.synced_version = version
    return version


def sync_commits(table: Table, after: int | None, up_to: int) -> None:
    """Syncs all files of the commits ``(after, up_to]`` to the disk; `after` None means since the table was created.

    Call it before a commit on top of other writers' commits: a later entry must not outlive an earlier one.
    """
    entries = log.entries(table.store, 0 if after is None else after, up_to)
    table.store.sync(log.files_of(table.store, entries))


def commit(
    table: Table,
    expected: int,
    *,
    add: Iterable[DataFile] = (),
    remove: Iterable[DataFile] = (),
    identity: str | None = None,
    of_rows: bool = True,
) -> int:
    """Adds and removes files in one commit on version `expected`. Returns the new version, synced to the disk.

    `of_rows` is as in `FileChange`; `identity` is kept in the log's metadata. Raises `Conflict` if the table is no
    longer at `expected`, and `RefusedCommit` if the commit fails for another reason.
    """
    change = FileChange(tuple(map(logged, add)), tuple(map(logged, remove)), of_rows)
    return commit_logged(table, expected, change, identity)


def commit_logged(
    table: Table,
    expected: int,
    change: FileChange,
    identity: str | None = None,
    transaction: tuple[str, int] | None = None,
) -> int:
    """Commits files as the log describes them; `transaction` is (application id, batch id), which the log keeps.

    The entry is on the disk when this returns. The files that the entry names must already exist. Raises as `commit`,
    and `RefusedCommit`.
    """
    with cut_is_conflict():
        before = table.description(expected)
    log_writing.check_can_write(before, table.name)
    entry = log_writing.entry(before, change, identity, transaction, now_ms())
    created = table.store.create(log.path_of(expected + 1), entry)
    if not created:
        raise Conflict(f"{table.name} is no longer at version {expected}")
    with cut_is_conflict():  # after a cut the new entry has the number of a deleted one: no reader sees it
        checkpoint = log.check_not_cut(table.store, expected)
    table.note_commit(expected + 1, entry, checkpoint)
    return expected + 1


@contextmanager
def cut_is_conflict() -> Iterator[None]:
    """Raises `Conflict` if the log was shortened past a version: other writers have committed long after it."""
    try:
        yield
    except log.CutLog as error:
        raise Conflict(str(error)) from error


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
    columns = None if at is None else table.schema(at)
    if not add and not remove and columns in (None, table.schema(expected)):
        return expected
    sync_commits(table, at, expected)
    return commit_logged(table, expected, FileChange(add, remove, of_rows, columns), RESTORED)


def check_can_restore(table: Table, expected: int, at: int | None) -> None:
    """Raises `LostFiles` if a file that `restore` needs is deleted."""
    back = [file.path for file in without(table.files(at), table.files(expected))]
    if gone := missing(table.store, back):
        raise LostFiles(
            f"table {table.name} cannot be restored to version {at}: {counted(len(gone), 'deleted file')}, such"
            f" as {gone[0]}, perhaps by a compaction and VACUUM of another program. Nothing was changed."
            f" {from_backup(table.store)}"
        )
