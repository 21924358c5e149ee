"""Where every table of a pipeline stands when a batch begins: as the newest commit row names it.

A table may have moved on since that row. A batch of this pipeline that was given up is taken back, in a commit of its
own. Commits that change no row, such as a compaction, are adopted: the batch builds on them. Any other change was made
on purpose by another program: nothing is touched, and the run stops (`ForeignChange`).

All versions are read first; then the caller makes sure that it still holds the pipeline; then tables are taken back, by
compare-and-set from the versions that were read. So a run that slept through a takeover takes nothing back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from windowlib.contract.tables import COMMIT_ORDER
from windowlib.delta import commits as delta_commits
from windowlib.delta import disk, log
from windowlib.delta.commits import RESTORED
from windowlib.delta.log_writing import check_can_write
from windowlib.delta.tables import Table, Tables, from_backup
from windowlib.ledger.prepare import Publication, TableChange
from windowlib.ledger.rows import Commit
from windowlib.publication.roll_forward import (
    LostRows,
    changed_since,
    check_adoptable,
    check_same_count,
    created,
    is_ours,
)

Versions = Mapping[str, int]
GIVE_UP_TRIES = 50  # a run that rolls forward commits each table once
COUNTED = {"results": "results_rows_after", "open_windows": "windows_open"}  # by the figures of each batch


@dataclass(frozen=True, slots=True)
class _Seen:
    """A table at its newest version, what came to it since the newest run, and whether that must be taken back."""

    newest: int | None
    since: Sequence[log.LogEntry] = ()
    restore: bool = False


def standing(tables: Tables, pinned: Versions, still_ours: Callable[[], None]) -> dict[str, int]:
    """The version of each table that there is, holding the rows that it held at `pinned`.

    `still_ours` raises `Superseded` when another run has taken the pipeline over. Raises `ForeignChange`,
    `delta_commits.LostFiles`, `log.DamagedLog`, and `Conflict` when a table is moved meanwhile.
    """
    seen = {name: _seen(tables[name], pinned.get(name)) for name in COMMIT_ORDER}
    still_ours()
    built_on = ((tables[name].folder, one.since) for name, one in seen.items())  # perhaps not on the disk yet
    disk.sync((path for folder, since in built_on for path in log.files_of(folder, since)), tables.root)
    versions = {
        name: delta_commits.restore(tables[name], one.newest, pinned.get(name)) if one.restore else one.newest
        for name, one in seen.items()
    }
    return {name: version for name, version in versions.items() if version is not None}


def check_counts(tables: Tables, versions: Versions, commit: Commit) -> None:
    """Raises `LostRows` unless the tables hold, at these versions, as many rows as the newest batch has counted."""
    for name, figure in COUNTED.items():
        rows = tables[name].row_count(versions.get(name))
        if (left := commit.counts.get(figure, rows)) != rows:
            raise LostRows(
                f"table {name} holds {rows} rows at version {versions.get(name)}, but batch {commit.batch_id} left"
                f" {left}: its log was damaged, or another program has lost rows, such as a compaction."
                f" {from_backup(tables[name].folder)}"
            )


def fence(tables: Tables, pinned: Versions) -> None:
    """Moves every table on by an empty commit: what was prepared on the versions before can no longer be committed.

    `pinned` are the versions of the newest batch.
    """

    def moved_on(table: Table, after: int | None) -> None:
        if (version := table.version()) is not None:
            delta_commits.sync_commits(table, after, version)
            delta_commits.commit(table, version, identity=RESTORED)

    for name in COMMIT_ORDER:  # where the other attempt is faster once more, its next table is fenced, or this one then
        delta_commits.again_on_conflict(partial(moved_on, tables[name], pinned.get(name)))


def check_own(tables: Tables, pinned: Versions) -> None:
    """Raises `ForeignChange` where another program has changed a table since `pinned`; touches none."""
    for name in COMMIT_ORDER:
        _seen(tables[name], pinned.get(name))


def give_up(tables: Tables, pinned: Versions, publication: Publication | None, still_ours: Callable[[], None]) -> None:
    """Brings every table back to what it held at `pinned`, and moves each of them on by a commit in any case.

    So a run that still rolls forward what was given up fails at its next commit. A table that there is not yet is
    created empty, for the same reason; where it is not known any more what the `publication` was, it stays absent.
    All versions are read first, then `still_ours` is asked, as in `standing`: a command that slept through a takeover
    gives up nothing of others. Raises `ForeignChange`, `delta_commits.LostFiles` before any table is touched.
    """
    left: dict[str, TableChange | None] = dict.fromkeys(COMMIT_ORDER)
    if publication:
        left = {change.name: change for change in publication.changes}

    def step() -> None:
        seen = {name: _seen(tables[name], pinned.get(name)) for name in left}
        still_ours()
        for name, one in seen.items():
            _give_up(tables[name], left[name], one, pinned.get(name))
            del left[name]

    delta_commits.again_on_conflict(step, GIVE_UP_TRIES)  # that run was faster once more, or another has taken over


def _give_up(table: Table, change: TableChange | None, seen: _Seen, pinned: int | None) -> None:
    newest = seen.newest
    if newest is None:
        if change is None or change.schema is None:
            return  # nothing was to become of it
        newest = created(table, change)
    disk.sync(log.files_of(table.folder, seen.since), table.folder)
    if not seen.restore or delta_commits.restore(table, newest, pinned) == newest:
        delta_commits.commit(table, newest, identity=RESTORED)


def _seen(table: Table, pinned: int | None) -> _Seen:
    newest = table.version()
    if newest is not None:
        log.entry(table.folder, newest)  # an empty one is accepted in silence by every reader of the table
    if newest == pinned:
        return _Seen(newest)
    if newest is None:
        raise log.DamagedLog(
            f"table {table.folder.name} does not exist: the newest run left it at version {pinned}."
            f" {from_backup(table.folder)}"
        )
    check_can_write(table.description(newest), table.folder.name)
    since = list(log.entries(table.folder, 0 if pinned is None else pinned, newest))
    changed = changed_since(table, pinned, since)
    check_adoptable(table.folder, (one for one in changed if not is_ours(one)))
    restore = any(map(is_ours, changed))
    if restore:
        delta_commits.check_can_restore(table, newest, pinned)
    elif pinned is not None and changed:
        check_same_count(table, pinned, newest)
    return _Seen(newest, since, restore)


def changes_since(table: Table, pinned: int | None, newest: int) -> list[log.LogEntry]:
    """The commits since `pinned`, up to `newest`, that were not taken back; None: an empty table."""
    return changed_since(table, pinned, list(log.entries(table.folder, 0 if pinned is None else pinned, newest)))
