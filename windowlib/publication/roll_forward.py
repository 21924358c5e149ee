"""Roll-forward of a prepared publication: every table is judged first, then committed.

============  ==========================================================================================================
`AT_START`    at its start version: commit
`DONE`        the table already holds this publication's commit, known by its identity
`MOVED_ON`    later commits changed no row, and the table still holds all files to remove: commit on top
`COMPACTED`   a file to remove was compacted away: undo the compaction, if the old files exist
============  ==========================================================================================================

Any other state is a change by another program (`ForeignChange`), and no table is changed. Then all tables are committed
at once, each with its own chain of steps: creation, or the undoing of a compaction, comes first. Every commit is a
compare-and-set. If several processes roll the same publication forward, each process accepts the commits of the other
processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from deltalake import Schema

from windowlib.definition.commands import THIS, WHY, to_paste
from windowlib.definition.plurals import counted
from windowlib.delta import commits as delta_commits
from windowlib.delta import log
from windowlib.delta.data_files import missing
from windowlib.delta.log_writing import check_can_write
from windowlib.delta.table_change import FileChange
from windowlib.delta.tables import Table, Tables
from windowlib.ledger.prepare import APP_ID, Publication, TableChange, Unreadable
from windowlib.model.errors import WindowError
from windowlib.storage.at_once import at_once, both


class ForeignChange(WindowError):
    """Another program changed a table since the newest run."""


class LostRows(WindowError):
    """A table does not hold as many rows as the newest batch recorded."""


class PublicationState(Enum):
    """State of a table with regard to a publication."""

    AT_START = "at its start version"
    DONE = "published"
    MOVED_ON = "moved on without a change of rows"
    COMPACTED = "compacted"


@dataclass(frozen=True, slots=True)
class TablePublication:
    """Change of one table, and its state. `version` is the version of its commit (`DONE`), else the judged version."""

    change: TableChange
    state: PublicationState
    version: int | None


def judge(tables: Tables, publication: Publication) -> list[TablePublication]:
    """State of every table. Changes no table. Raises `ForeignChange`, `LostRows`, `log.DamagedLog`."""
    return at_once(lambda change: _judge(tables[change.name], change, publication.identity), publication.changes)


def _judge(table: Table, change: TableChange, identity: str) -> TablePublication:
    newest, gone = both(table.version, lambda: missing(table.store, [file.path for file in change.add]))
    if newest is None or newest == change.start:
        _check_there(table, gone)
        if newest != change.start:
            raise ForeignChange(f"table {table.name} no longer exists: it was at version {change.start}")
        return TablePublication(change, PublicationState.AT_START, newest)
    since = list(log.entries(table.store, -1 if change.start is None else change.start, newest))
    if change.start is None:
        since = since[1:]  # without the creation of the table, which belongs to the publication
    ours = [entry for entry in since if entry.identity == identity]
    if versions := [entry.version for entry in ours if APP_ID in entry.transactions]:
        return TablePublication(change, PublicationState.DONE, versions[-1])
    _check_there(table, gone)
    check_can_write(table.description(newest), table.name)
    changed = changed_since(table, change.start, since)
    others = [entry for entry in changed if entry not in ours]
    _check_not_given_up(table, others)
    check_adoptable(table, others)
    if changed and not ours and change.start is not None:
        check_same_count(table, change.start, newest)
    live = frozenset(file.path for file in table.files(newest))
    lost = frozenset(file.path for file in change.remove) - live
    if not lost:
        state = PublicationState.AT_START if not since else PublicationState.MOVED_ON
        return TablePublication(change, state, newest)
    old = frozenset(file.path for file in table.files(change.start)) - live  # all these files must be restored
    if deleted := missing(table.store, sorted(old)):
        raise ForeignChange(
            f"{counted(len(deleted), 'deleted file')} of table {table.name}, such as {deleted[0]}: another program"
            f" compacted the table while a batch waited. `{to_paste('abandon', THIS, *WHY)}` drops the batch, and"
            " the next run computes it again"
        )
    return TablePublication(change, PublicationState.COMPACTED, newest)


def _check_there(table: Table, gone: Sequence[str]) -> None:
    """Raises `Unreadable` if files to publish are `gone`. No log names them yet, so VACUUM may delete them."""
    if gone:
        raise Unreadable(
            f"{counted(len(gone), 'deleted file')} of the prepared batch, such as {table.store}/{gone[0]}. VACUUM with"
            " a short retention does that. Restore the files from a backup, or drop the batch with"
            f" `{to_paste('abandon', THIS, *WHY)}`: the next run computes it again"
        )


def is_ours(entry: log.LogEntry) -> bool:
    """Tests if windowlib made a commit."""
    return entry.identity is not None or APP_ID in entry.transactions


def _check_not_given_up(table: Table, since: Iterable[log.LogEntry]) -> None:
    """Raises `ForeignChange` if a commit of windowlib in `since` changed rows.

    That happens if another command abandons a batch.
    """
    if versions := [entry.version for entry in since if entry.changes_data and is_ours(entry)]:
        raise ForeignChange(
            f"windowlib itself changed table {table.name}, version {versions[-1]}, after the waiting batch was"
            " prepared: another run or command has undone a batch. This run changed nothing."
            f" `{to_paste('abandon', THIS, *WHY)}` drops the batch, and the next run computes it again"
        )


def changed_since(table: Table, start: int | None, since: Sequence[log.LogEntry]) -> list[log.LogEntry]:
    """Commits `since` version `start` that changed the table's files or columns and were not undone.

    Changes of columns count only if the columns now differ from the columns at `start`.
    """
    if any(entry.changes_columns for entry in since) and table.columns(start or 0) == table.columns(since[-1].version):
        since = [replace(entry, changes_columns=False) for entry in since]
    return _not_taken_back((file.path for file in table.files(start)), since)


_Files = frozenset[tuple[str, int | None]]  # path, and the version that gave the file its deletion vector


def _not_taken_back(paths: Iterable[str], since: Iterable[log.LogEntry]) -> list[log.LogEntry]:
    """Commits whose effect on the table's files was not undone later.

    `paths` are the table's files before the first commit. If a commit returns the table to exactly the files that it
    held earlier, all commits since then are dropped. Commits that change columns stay, because files do not show if a
    change of columns was undone.
    """
    live = _Files((path, None) for path in paths)
    kept = list[tuple[_Files, log.LogEntry]]()  # each commit with the files before it
    for entry in since:
        kept.append((live, entry))
        live = _Files(file for file in live if file[0] not in entry.removed)
        live |= {(path, entry.version if path in entry.vectors else None) for path in entry.added}
        back = next((at for at, (before, _) in enumerate(kept) if before == live), len(kept))
        kept[back:] = [(live, later) for _, later in kept[back:] if later.changes_columns]
    return [entry for _, entry in kept]


def check_adoptable(table: Table, since: Iterable[log.LogEntry]) -> None:
    """Raises `ForeignChange` if one of the commits changed rows or columns."""
    for entry in since:
        if entry.changes_data or entry.changes_columns:
            way_back = (
                f"Its {entry.beyond_files} changed. {restore_command(table, entry.version - 1)}"
                if entry.beyond_files
                else f"`{to_paste('restore', THIS, *WHY)}` undoes the change,"
                f" `{to_paste('adopt', THIS, *WHY)}` keeps it; --dry-run in place of --reason shows the effect"
            )
            raise ForeignChange(
                f"another program changed table {table.name}: version {entry.version}, {entry.operation}, by"
                f" {entry.user or 'unknown'}. windowlib changed nothing. {way_back}"
            )


def check_same_count(table: Table, pinned: int, newest: int) -> None:
    """Raises `LostRows` if two versions differ in row count, although the commits between claim to change no row."""
    before, after = (table.row_count(version) for version in (pinned, newest))
    if before != after:
        raise LostRows(
            f"table {table.name} holds {after} rows at version {newest}, but the newest batch recorded {before}"
            f" at version {pinned}. Another program changed rows, although its commit claims not to; windowlib changed"
            f" nothing. {restore_command(table, pinned)}"
        )


def restore_command(table: Table, version: int) -> str:
    """Sentence with the Spark statement that restores a table to a version."""
    return f"Spark can undo that: RESTORE TABLE delta.`{table.store}` TO VERSION AS OF {version}"


# -- rolling forward --------------------------------------------------------------------------------------------------


def roll_forward(tables: Tables, publication: Publication, judged: Sequence[TablePublication]) -> dict[str, int]:
    """Commits every table that is not committed yet, all tables at once. Returns the version of every table.

    If the process is killed, any part of the tables may be committed. `judged` is the result of `judge` directly
    before. A commit of the same publication by another run counts as ours. Before it returns, syncs all log entries
    since the start versions to the disk. Raises `ForeignChange`, and `delta_commits.Conflict` if another program
    commits to a table meanwhile.
    """
    names = [table_publication.change.name for table_publication in judged]
    published = at_once(lambda item: _publish(tables[item.change.name], item, publication), judged)
    versions = {name: version for name, (version, _) in zip(names, published, strict=True) if version is not None}
    own = {name: version for name, (version, is_own) in zip(names, published, strict=True) if is_own}
    for name, entries in _entries(tables, publication, versions, own).items():
        tables[name].store.sync(entries)
    return versions


def _entries(
    tables: Tables, publication: Publication, versions: Mapping[str, int], own: Mapping[str, int | None]
) -> dict[str, list[str]]:
    """Log files since the start versions, by table. Omits the `own` versions: this process has synced them already."""
    files = dict[str, list[str]]()
    for change in publication.changes:
        after, up_to = -1 if change.start is None else change.start, versions.get(change.name, -1)
        for version in range(after + 1, up_to + 1):
            if version != own.get(change.name):
                files.setdefault(change.name, []).extend(log.written_by(tables[change.name].store, version))
    return files


def _publish(table: Table, judged: TablePublication, publication: Publication) -> tuple[int | None, bool]:
    """Commits the changes of a table, if needed. Returns the version, and True if this process made the commit."""
    change = judged.change
    if judged.state is PublicationState.DONE or not (change.add or change.remove or change.columns):
        return judged.version, False
    try:
        version = _ready(table, judged)
        transaction = (APP_ID, publication.batch_id)
        columns = Schema.from_json(change.columns) if change.columns else None
        moved = FileChange(change.add, change.remove, publication.of_rows, columns, frozenset(change.quiet))
        return delta_commits.commit_logged(table, version, moved, publication.identity, transaction), True
    except delta_commits.Conflict:
        again = _judge(table, change, publication.identity)
        if again.state is PublicationState.DONE and again.version is not None:
            return again.version, False
        raise


def create_table(table: Table, change: TableChange) -> int:
    """Creates the empty table and returns its version. Raises `delta_commits.Conflict`."""
    assert change.schema is not None, "a table to create has a schema"
    return delta_commits.create(table, Schema.from_json(change.schema), change.partition_by)


def _ready(table: Table, judged: TablePublication) -> int:
    """Brings the table to a version that holds the files to remove. Returns that version."""
    change, version = judged.change, judged.version
    if version is None:
        version = create_table(table, change)
    if judged.state in (PublicationState.MOVED_ON, PublicationState.COMPACTED):
        delta_commits.sync_commits(table, change.start, version)
    if judged.state is PublicationState.COMPACTED:
        assert change.start is not None, "only what existed can have been compacted"
        restored = delta_commits.restore(table, version, change.start, of_rows=False)
        assert restored is not None, "the table exists"
        version = restored
    return version
