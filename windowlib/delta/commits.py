"""Commits of Delta tables, by compare-and-set.

A *commit* names files: it adds some, removes some, and succeeds only from the version it was prepared on. A
writer whose version is no longer the newest gets `Conflict` and has changed nothing. Parquet files are written before,
by Spark or pyarrow, into the table's folder (`windowlib.delta.data_files`); until a commit names them no reader sees
them.
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

# Old versions stay readable this long for other programs' VACUUM, so that runs can be taken back and looked at as they
# were. A process that opens a table reads the entries after its last checkpoint, some 0.2 ms each. Logs are shortened
# by maintenance alone, which knows which cuts are kept.
CONFIGURATION = {
    "delta.deletedFileRetentionDuration": "interval 30 days",
    "delta.logRetentionDuration": "interval 365 days",
    "delta.checkpointInterval": "10",
    "delta.enableExpiredLogCleanup": "false",
}
T = TypeVar("T")
RESTORED = "restored"  # the identity of commits that take back what no commit row names


class Conflict(Exception):
    """Another run committed first: nothing of this commit was applied."""


class LostFiles(WindowError):
    """A file that a version of a table names is gone, or is not as it was written."""


class RefusedCommit(WindowError):
    """The table does not take a commit, although no writer was faster: its settings or the disk are against it."""


def again_on_conflict(step: Callable[[], T], at_most: int = 1_000) -> T:
    """What `step` gives, which looks at the table each time: again after each `Conflict`, as another commit succeeded.

    Raises `RefusedCommit` after `at_most` times.
    """
    for _ in range(at_most):
        with suppress(Conflict):
            return step()
    raise RefusedCommit("others committed first again and again: is a program writing in a loop?")


def create(table: Table, schema: Schema, partition_by: Sequence[str] = ()) -> int:
    """Creates an empty table at version 0; `Conflict` if another run just did."""
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
    return lasting(table, 0)


def configuration(table: str, schema: Schema) -> dict[str, str]:
    """The settings of a new table of that name and with these columns."""
    return {**CONFIGURATION, **indexed.properties(table, schema)}


def lasting(table: Table, made: int) -> int:
    """The version that was made, once its entry is on the disk, or a later checkpoint, where the log was shortened.

    The first time the table's own name is made to last, too: the process that created it may have died before.
    """
    try:
        disk.sync(log.written_by(table.folder, made), table.folder.parent if table.lasting is None else table.folder)
    except FileNotFoundError:
        if made >= log.oldest_version(table.folder):
            raise
    table.lasting = made
    return made


def make_lasting(table: Table, after: int | None, up_to: int) -> None:
    """Makes all last that the commits of versions ``(after, up_to]`` wrote; `after` None: since the table was created.

    To be called before a commit on top of those of others: a later entry must not outlive an earlier one.
    """
    made = log.entries(table.folder, 0 if after is None else after, up_to)
    disk.sync(log.files_of(table.folder, made), table.folder)


def commit(
    table: Table,
    expected: int,
    *,
    add: Iterable[DataFile] = (),
    remove: Iterable[DataFile] = (),
    identity: str | None = None,
    of_rows: bool = True,
) -> int:
    """Adds and removes files in one commit on version `expected`, and gives the new version, which is on the disk.

    `of_rows` is as in `FileChange`; `identity` is kept in the log's metadata. Raises `Conflict` when the table has
    moved on since `expected`, and `RefusedCommit` when it has not.
    """
    change = FileChange(tuple(map(logged, add)), tuple(map(logged, remove)), of_rows)
    return lasting(table, commit_logged(table, expected, change, identity))


def commit_logged(
    table: Table,
    expected: int,
    change: FileChange,
    identity: str | None = None,
    transaction: tuple[str, int] | None = None,
) -> int:
    """As `commit`, of files as the log describes them; `transaction` is (application id, batch id), kept in the log.

    Columns that change while some files go and some stay do so in a commit before, without the transaction: no row
    changes by it, and the next attempt goes on from there. No entry is on the disk yet: a batch makes those of all its
    tables last together.
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
            raise _why(table, expected, error) from error
        raise
    _check_not_cut(table, expected)  # then the new entry lies where another had been, and no reader sees it
    return expected + 1


def _actions(change: FileChange, *, with_removals: bool) -> list[AddAction | RemoveAction]:
    """The entries of a commit. An overwrite, which changes the columns, removes files without any."""
    now_ms = time.time_ns() // 1_000_000  # a file's modification time in the log; nothing is decided by it
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
    """Raises `Conflict` where the log was shortened past a version: others have gone on from there long ago."""
    try:
        yield
    except log.CutLog as error:
        raise Conflict(str(error)) from error


def _check_not_cut(table: Table, expected: int) -> None:
    with cut_is_conflict():
        log.check_can_open(table.folder, expected)


def _why(table: Table, expected: int, error: DeltaError) -> Exception:
    """What a commit on version `expected` failed by: a commit of another, or what the table says."""
    if table.version() != expected:
        return Conflict(f"{table.folder.name} is no longer at version {expected}")
    return RefusedCommit(
        f"table {table.folder} refuses a commit: {error}. Its settings were changed by another program, or the disk"
        " refuses to be written to; undo that and run again"
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


def restore(table: Table, seen: int | None, at: int | None, *, of_rows: bool = True) -> int | None:
    """Brings the table's files, as of version `seen`, back to those of version `at` by a new commit, if they differ.

    `at` None stands for an empty table. Gives the version that then is the newest. Columns that have changed come
    back too. Raises `Conflict` when the table has moved on since `seen`, `LostFiles`.
    """
    if seen is None:
        return None
    check_can_restore(table, seen, at)
    have, want = table.files(seen), table.files(at)
    add, remove = (list(map(logged, files)) for files in (without(want, have), without(have, want)))
    columns = None if at is None else table.at(at).schema()
    if not add and not remove and columns in (None, table.at(seen).schema()):
        return seen
    make_lasting(table, at, seen)
    return lasting(table, commit_logged(table, seen, FileChange(add, remove, of_rows, columns), RESTORED))


def check_can_restore(table: Table, seen: int, at: int | None) -> None:
    """Raises `LostFiles` where a file that `restore` would bring back is deleted."""
    back = (file.path for file in without(table.files(at), table.files(seen)))
    if gone := sorted(path for path in back if not (table.folder / path).exists()):
        raise LostFiles(
            f"table {table.folder.name} cannot go back to what it held at version {at}, as it must: {gone[0]} is"
            f" deleted ({len(gone)} such files), as by a compaction and VACUUM of another program. Nothing was"
            f" touched. {from_backup(table.folder)}"
        )
