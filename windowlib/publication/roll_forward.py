"""Rolls a prepared publication forward: every table is judged first, then committed.

============  ==========================================================================================================
`AT_START`    at its start version: commit
`DONE`        it holds this publication's commit, known by its identity
`MOVED_ON`    moved by commits that changed no row, all files to remove still in it: commit on top
`COMPACTED`   a file to remove was compacted away: the compaction is undone, if the old files exist
============  ==========================================================================================================

Anything else is a change by another program (`ForeignChange`), and nothing is touched. Every commit is a
compare-and-set, so of several that roll one publication forward each finds the others' commits, and accepts them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from deltalake import Schema

from windowlib.definition.commands import THIS, WHY, to_paste
from windowlib.delta import commits as delta_commits
from windowlib.delta import disk, log
from windowlib.delta.log_writing import check_can_write
from windowlib.delta.table_change import FileChange
from windowlib.delta.tables import Table, Tables
from windowlib.ledger.prepare import APP_ID, Publication, TableChange, Unreadable
from windowlib.model.errors import WindowError


class ForeignChange(WindowError):
    """A table was changed by another program than windowlib since the newest run."""


class LostRows(WindowError):
    """A table does not hold as many rows as the newest batch left there."""


class PublicationState(Enum):
    """Where a table stands with regard to a publication."""

    AT_START = "at its start version"
    DONE = "published"
    MOVED_ON = "moved on without a change of rows"
    COMPACTED = "compacted"


@dataclass(frozen=True, slots=True)
class TablePublication:
    """One table: where it stands, and the version of its commit (`DONE`) or at which that was seen."""

    change: TableChange
    standing: PublicationState
    version: int | None


def judge(tables: Tables, publication: Publication) -> list[TablePublication]:
    """Where every table stands. Touches none of them. Raises `ForeignChange`, `LostRows`, `log.DamagedLog`."""
    return [_judge(tables[one.name], one, publication.identity) for one in publication.changes]


def _judge(table: Table, change: TableChange, identity: str) -> TablePublication:
    newest, folder = table.version(), table.folder
    if newest is None or newest == change.start:
        _check_there(folder, change)
        if newest != change.start:
            raise ForeignChange(f"table {folder.name} no longer exists: it was at version {change.start}")
        return TablePublication(change, PublicationState.AT_START, newest)
    since = list(log.entries(folder, -1 if change.start is None else change.start, newest))
    if change.start is None:
        since = since[1:]  # its creation: by this publication or by another that rolls it forward
    ours = [one for one in since if one.identity == identity]
    if done := [one.version for one in ours if APP_ID in one.transactions]:
        return TablePublication(change, PublicationState.DONE, done[-1])
    _check_there(folder, change)
    check_can_write(table.description(newest), table.folder.name)
    changed = changed_since(table, change.start, since)
    others = [one for one in changed if one not in ours]
    _check_not_given_up(folder, others)
    check_adoptable(folder, others)
    if changed and not ours and change.start is not None:
        check_same_count(table, change.start, newest)
    live = frozenset(file.path for file in table.files(newest))
    lost = frozenset(one.path for one in change.remove) - live
    if not lost:
        standing = PublicationState.AT_START if not since else PublicationState.MOVED_ON
        return TablePublication(change, standing, newest)
    old = frozenset(file.path for file in table.files(change.start)) - live  # all of which must come back
    if missing := sorted(path for path in old if not (folder / path).exists()):
        raise ForeignChange(
            f"table {folder.name} was compacted while a batch was waiting to be published, and {missing[0]} is deleted"
            f" ({len(missing)} such files): `{to_paste('abandon', THIS, *WHY)}` drops the batch, and the"
            " next run computes it again"
        )
    return TablePublication(change, PublicationState.COMPACTED, newest)


def _check_there(folder: Path, change: TableChange) -> None:
    """Raises `Unreadable` where a file to be published is deleted: no log names it yet, so VACUUM may."""
    within = str(folder)  # of ten thousand files, paths as objects would take longer than the disk's answers
    if gone := [one.path for one in change.add if not os.path.exists(os.path.join(within, one.path))]:
        raise Unreadable(
            f"{folder / gone[0]}, which the prepared batch would publish, is deleted ({len(gone)} such files):"
            " VACUUM with a short retention does that. Restore it from a backup, or drop the batch with"
            f" `{to_paste('abandon', THIS, *WHY)}`, and the next run computes it again"
        )


def is_ours(entry: log.LogEntry) -> bool:
    """Whether windowlib made a commit."""
    return entry.identity is not None or APP_ID in entry.transactions


def _check_not_given_up(folder: Path, since: Iterable[log.LogEntry]) -> None:
    """Raises `ForeignChange` where windowlib itself has changed rows, as when another command gave a batch up."""
    if taken_back := [one.version for one in since if one.changes_data and is_ours(one)]:
        raise ForeignChange(
            f"table {folder.name} was changed by windowlib itself, version {taken_back[-1]}, since the waiting batch"
            " was prepared: another run or command has taken a batch back meanwhile. Nothing was touched."
            f" `{to_paste('abandon', THIS, *WHY)}` drops the batch, and the next run computes it again"
        )


def changed_since(table: Table, start: int | None, since: Sequence[log.LogEntry]) -> list[log.LogEntry]:
    """Those of the commits `since` version `start` that were not taken back, of the table's files or of its columns.

    A change of its settings, or one of columns that was taken back, changes no columns here.
    """
    if any(one.changes_columns for one in since) and table.columns(start or 0) == table.columns(since[-1].version):
        since = [replace(one, changes_columns=False) for one in since]
    return _not_taken_back((file.path for file in table.files(start)), since)


_Files = frozenset[tuple[str, int | None]]  # paths, and which version gave a file its deletion vector


def _not_taken_back(paths: Iterable[str], since: Iterable[log.LogEntry]) -> list[log.LogEntry]:
    """Those of some commits after which the table never held exactly the files again that it held before them.

    `paths` are its files before the first. What was changed and taken back counts no more, whether it came to these
    files or to those of a commit since; of changes of columns only the caller knows whether they were.
    """
    live, kept = (
        _Files((path, None) for path in paths),
        list[tuple[_Files, log.LogEntry]](),
    )  # with the files before each
    for one in since:
        kept.append((live, one))
        live = _Files(file for file in live if file[0] not in one.removed)
        live |= {(path, one.version if path in one.vectors else None) for path in one.added}
        back = next((at for at, (before, _) in enumerate(kept) if before == live), len(kept))
        kept[back:] = [(live, that) for _, that in kept[back:] if that.changes_columns]
    return [one for _, one in kept]


def check_adoptable(folder: Path, since: Iterable[log.LogEntry]) -> None:
    """Raises `ForeignChange` unless the commits changed no row and no column."""
    for one in since:
        if one.changes_data or one.changes_columns:
            way_back = (
                f"Its {one.beyond_files} changed. {takes_back(folder, one.version - 1)}"
                if one.beyond_files
                else f"`{to_paste('restore', THIS, *WHY)}` takes that back, `{to_paste('adopt', THIS, *WHY)}` keeps it;"
                " with --dry-run in the place of the reason each shows what it would do"
            )
            raise ForeignChange(
                f"table {folder.name} was changed by another program: version {one.version}, {one.operation}, by"
                f" {one.user or 'unknown'}. Nothing was touched. {way_back}"
            )


def check_same_count(table: Table, pinned: int, newest: int) -> None:
    """Raises `LostRows` where another program's commits, which say that they change no row, lose some or add some."""
    before, after = (table.row_count(version) for version in (pinned, newest))
    if before != after:
        raise LostRows(
            f"table {table.folder.name} holds {after} rows at version {newest}, but {before} at version {pinned}, as"
            " the newest batch left it: a commit of another program says that it changes no row, and does. Nothing was"
            f" touched. {takes_back(table.folder, pinned)}"
        )


def takes_back(folder: Path, version: int) -> str:
    """How another program brings a table back to a version."""
    return f"Spark can take that back: RESTORE TABLE delta.`{folder}` TO VERSION AS OF {version}"


# -- rolling forward --------------------------------------------------------------------------------------------------


def roll_forward(tables: Tables, publication: Publication, judged: Sequence[TablePublication]) -> dict[str, int]:
    """Commits what is not committed yet, table by table, and returns the version of every table.

    `judged` is the result of `judge` just before. A commit that another run of the same publication made meanwhile
    counts as ours. All log entries since the start versions are on the disk when this returns. Raises
    `delta_commits.Conflict` if any other writer moved a table, and `ForeignChange`.
    """
    versions, own = dict[str, int](), dict[str, int]()
    for table in judged:
        name, change = table.change.name, table.change
        if table.standing is PublicationState.DONE or not (change.add or change.remove or change.columns):
            version = table.version
        else:
            version, is_own = _publish(tables[name], table, publication)
            own |= {name: version} if is_own else {}
        if version is not None:
            versions[name] = version
    disk.sync(_entries(tables, publication, versions, own), tables.root)
    return versions


def _entries(
    tables: Tables, publication: Publication, versions: Mapping[str, int], own: Mapping[str, int]
) -> Iterator[Path]:
    """Log files that other writers added since the publication was computed. Those of `own` versions are synced."""
    for change in publication.changes:
        after, up_to = -1 if change.start is None else change.start, versions.get(change.name, -1)
        for version in range(after + 1, up_to + 1):
            if version != own.get(change.name):
                yield from log.written_by(tables[change.name].folder, version)


def _publish(table: Table, judged: TablePublication, publication: Publication) -> tuple[int, bool]:
    """Commits the changes of a table; returns its version, and if this process made the commit."""
    change = judged.change
    try:
        version = _ready(table, judged)
        transaction = (APP_ID, publication.batch_id)
        columns = Schema.from_json(change.columns) if change.columns else None
        moved = FileChange(change.add, change.remove, publication.of_rows, columns, frozenset(change.quiet))
        return delta_commits.commit_logged(table, version, moved, publication.identity, transaction), True
    except delta_commits.Conflict:
        again = _judge(table, change, publication.identity)
        if again.standing is PublicationState.DONE and again.version is not None:
            return again.version, False
        raise


def created(table: Table, change: TableChange) -> int:
    """The version of the empty table that this makes. Raises `delta_commits.Conflict`."""
    assert change.schema is not None, "a table to create has a schema"
    return delta_commits.create(table, Schema.from_json(change.schema), change.partition_by)


def _ready(table: Table, judged: TablePublication) -> int:
    """The version to commit on: the table exists, and holds the files that are to be removed."""
    change, version = judged.change, judged.version
    if version is None:
        version = created(table, change)
    if judged.standing in (PublicationState.MOVED_ON, PublicationState.COMPACTED):
        delta_commits.sync_commits(table, change.start, version)
    if judged.standing is PublicationState.COMPACTED:
        assert change.start is not None, "only what existed can have been compacted"
        restored = delta_commits.restore(table, version, change.start, of_rows=False)
        assert restored is not None, "the table exists"
        version = restored
    return version
