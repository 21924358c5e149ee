"""Version of each table when a batch begins. At that version the table holds the rows of the newest commit row.

A table may have moved on since that row. Commits of an abandoned batch of this pipeline are undone, in a separate
commit. Commits that change no row, such as a compaction, are adopted: the batch builds on them. Any other change is a
deliberate change by another program. Then no table is changed and the run stops (`ForeignChange`).

All versions are read first. Then the caller checks that it still holds the pipeline. Then tables are restored, by
compare-and-set from the versions that were read. A run that slept while another run took over therefore restores
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from windowlib.contract.tables import COMMIT_ORDER
from windowlib.delta import commits as delta_commits
from windowlib.delta import log
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
    create_table,
    is_ours,
)
from windowlib.storage.at_once import at_once

Versions = Mapping[str, int]
GIVE_UP_TRIES = 50  # enough, because a run that rolls forward commits each table once
COUNTED = {"results": "results_rows_after", "open_windows": "windows_open"}  # table → figure with its row count


@dataclass(frozen=True, slots=True)
class _NewestVersion:
    """A table's newest version, the commits since the newest batch, and True if the table must be restored."""

    newest: int | None
    since: Sequence[log.LogEntry] = ()
    restore: bool = False


def standing(tables: Tables, pinned: Versions, still_ours: Callable[[], None]) -> dict[str, int]:
    """Restores tables to their rows at `pinned`, if needed. Returns the version of each existing table.

    `still_ours` raises `Superseded` if another run has taken the pipeline over. It is called if a table has moved.
    Raises `ForeignChange`, `delta_commits.LostFiles`, `log.DamagedLog`, and `Conflict` if another program commits to a
    table meanwhile.
    """
    tables_now = _newest_of(tables, pinned, COMMIT_ORDER)
    if any(table_now.since for table_now in tables_now.values()):
        still_ours()
    for name, table_now in tables_now.items():  # their writers may have died before they synced them
        tables[name].store.sync(log.files_of(tables[name].store, table_now.since))
    versions = {
        name: delta_commits.restore(tables[name], table_now.newest, pinned.get(name))
        if table_now.restore
        else table_now.newest
        for name, table_now in tables_now.items()
    }
    return {name: version for name, version in versions.items() if version is not None}


def check_counts(tables: Tables, versions: Versions, commit: Commit) -> None:
    """Raises `LostRows` unless the tables at `versions` hold as many rows as the newest batch `commit` counted."""
    for name, figure in COUNTED.items():
        rows = tables[name].row_count(versions.get(name))
        if (left := commit.counts.get(figure, rows)) != rows:
            raise LostRows(
                f"table {name} holds {rows} rows at version {versions.get(name)}, but batch {commit.batch_id}"
                f" recorded {left}. Its log was damaged, or another program lost rows, for example in a compaction."
                f" {from_backup(tables[name].store)}"
            )


def fence(tables: Tables, pinned: Versions) -> None:
    """Adds an empty commit to every table, so that nothing prepared on earlier versions can be committed.

    `pinned` are the versions of the newest batch.
    """

    def moved_on(table: Table, after: int | None) -> None:
        if (version := table.version()) is not None:
            delta_commits.sync_commits(table, after, version)
            delta_commits.commit(table, version, identity=RESTORED)

    def fenced(name: str) -> None:  # an older run that still commits to one table fails at the others
        delta_commits.again_on_conflict(partial(moved_on, tables[name], pinned.get(name)))

    at_once(fenced, COMMIT_ORDER)


def check_own(tables: Tables, pinned: Versions) -> None:
    """Raises `ForeignChange` if another program has changed a table since `pinned`. Changes no table."""
    _newest_of(tables, pinned, COMMIT_ORDER)


def give_up(tables: Tables, pinned: Versions, publication: Publication | None, still_ours: Callable[[], None]) -> None:
    """Restores every table to its rows at `pinned`, and adds a commit even to an unchanged table.

    A run that still rolls the abandoned publication forward therefore fails at its next commit. For the same reason, a
    missing table is created empty, unless the `publication` is unknown (None). As in `standing`, all versions are read
    before `still_ours` is called, so a command that slept while another run took over abandons nothing. Raises
    `ForeignChange` and `delta_commits.LostFiles` before any table is changed.
    """
    left: dict[str, TableChange | None] = dict.fromkeys(COMMIT_ORDER)
    if publication:
        left = {change.name: change for change in publication.changes}

    def step() -> None:
        tables_now = _newest_of(tables, pinned, left)
        still_ours()
        for name, table_now in tables_now.items():
            _give_up(tables[name], left[name], table_now, pinned.get(name))
            del left[name]

    delta_commits.again_on_conflict(step, GIVE_UP_TRIES)  # repeats if the other run commits one more table


def _give_up(table: Table, change: TableChange | None, table_now: _NewestVersion, pinned: int | None) -> None:
    newest = table_now.newest
    if newest is None:
        if change is None or change.schema is None:
            return  # the publication would not have created the table
        newest = create_table(table, change)
    table.store.sync(log.files_of(table.store, table_now.since))
    if not table_now.restore or delta_commits.restore(table, newest, pinned) == newest:
        delta_commits.commit(table, newest, identity=RESTORED)


def _newest_of(tables: Tables, pinned: Versions, names: Iterable[str]) -> dict[str, _NewestVersion]:
    """The newest version of each table, read from all tables at once."""
    chosen = list(names)
    return dict(zip(chosen, at_once(lambda name: _newest(tables[name], pinned.get(name)), chosen), strict=True))


def _newest(table: Table, pinned: int | None) -> _NewestVersion:
    newest = table.version()
    if newest is not None:
        table.description(newest)  # raises for an empty entry, which readers of the table accept silently
    if newest == pinned:
        return _NewestVersion(newest)
    if newest is None:
        raise log.DamagedLog(
            f"table {table.name} does not exist: the newest run left it at version {pinned}. {from_backup(table.store)}"
        )
    check_can_write(table.description(newest), table.name)
    since = list(log.entries(table.store, 0 if pinned is None else pinned, newest))
    changed = changed_since(table, pinned, since)
    check_adoptable(table, (entry for entry in changed if not is_ours(entry)))
    restore = any(map(is_ours, changed))
    if restore:
        delta_commits.check_can_restore(table, newest, pinned)
    elif pinned is not None and changed:
        check_same_count(table, pinned, newest)
    return _NewestVersion(newest, since, restore)


def changes_since(table: Table, pinned: int | None, newest: int) -> list[log.LogEntry]:
    """Commits after `pinned`, up to `newest`, that changed the table and were not undone.

    `pinned` is None if the newest batch has no version of the table.
    """
    return changed_since(table, pinned, list(log.entries(table.store, 0 if pinned is None else pinned, newest)))
