"""What other programs did to a pipeline's tables since its newest batch, and how it is taken back or kept.

A table's log says who made which commit. Those of others that change rows (`ForeignChange`) stop every run until an
operator decides: `restore` brings the table back to what windowlib left there, `adopt` makes what it holds now the
table. Between them may lie commits of a batch that was never finished; those are never part of what is adopted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from windowlib.contract.tables import COMMIT_ORDER
from windowlib.definition.commands import THIS, WHY, to_paste
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files, log
from windowlib.delta.data_files import DataFile, without
from windowlib.delta.tables import Table, Tables
from windowlib.ledger.prepare import APP_ID, Publication
from windowlib.model.errors import WindowError
from windowlib.publication.roll_forward import is_ours, takes_back
from windowlib.publication.start_versions import Versions, changes_since

MOST_ROWS_COMPARED = 2_000_000


class CannotUndo(WindowError):
    """What another program did to a table cannot be taken back, or not be kept, by windowlib."""


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """A table that other programs changed: their commits, and what it holds at `newest`.

    `ours` is the version at which windowlib left it: that of the newest batch, or of a prepared one that was committed
    here already; None where it had left no table.
    """

    table: Table
    newest: int
    ours: int | None
    entries: tuple[log.LogEntry, ...]
    since: tuple[log.LogEntry, ...]

    @property
    def name(self) -> str:
        return self.table.folder.name

    @property
    def in_words(self) -> list[str]:
        """Who changed it, a line for each commit."""
        return [
            f"{self.name}: version {one.version}, {one.operation}, by {one.user or 'unknown'}" for one in self.entries
        ]


@dataclass(frozen=True, slots=True)
class RowChange:
    """How many rows of a table go and come; `exact` is false where only their numbers could be compared."""

    table: str
    added: int
    removed: int
    exact: bool = True


def foreign_changes(tables: Tables, pinned: Versions, prepared: Publication | None) -> list[ChangedTable]:
    """The tables that others changed, in commit order. Raises `log.DamagedLog`."""
    found = (_foreign(tables[name], pinned.get(name), prepared) for name in COMMIT_ORDER)
    return [one for one in found if one is not None]


def _foreign(table: Table, pinned: int | None, prepared: Publication | None) -> ChangedTable | None:
    newest = table.version()
    if newest is None or newest == pinned:
        return None
    since = changes_since(table, pinned, newest)
    ours = pinned
    for one in since:
        if prepared and one.identity == prepared.identity and APP_ID in one.transactions:
            ours = one.version
    if ours != pinned:
        since = changes_since(table, ours, newest)
    theirs = tuple(one for one in since if not is_ours(one) and (one.changes_data or one.changes_columns))
    return ChangedTable(table, newest, ours, theirs, tuple(since)) if theirs else None


def files_before(change: ChangedTable) -> list[DataFile]:
    """The files that windowlib left in a table. Raises `CannotUndo` where they, or its columns, cannot come back."""
    for one in change.entries:
        if one.beyond_files:
            raise CannotUndo(
                f"version {one.version} of table {change.name} ({one.operation}) changed its {one.beyond_files}, which"
                f" windowlib cannot take back. {takes_back(change.table.folder, one.version - 1)}"
            )
    wanted = change.table.files(change.ours)
    check_files_exist(change.table, wanted, f"no way back to version {change.ours} of table {change.name}")
    return wanted


def files_kept(change: ChangedTable, pinned: int | None) -> list[DataFile]:
    """The files that a table holds with the changes of others and without those of a batch that was not finished.

    Raises `CannotUndo` where the two cannot be separated, or the table could not be continued.
    """
    known = {f.path: f for version in (pinned, change.newest) for f in change.table.files(version)}
    live = {f.path for f in change.table.files(pinned)}
    for one in changes_since(change.table, pinned, change.newest):
        if one.beyond_files:
            raise CannotUndo(
                f"version {one.version} of table {change.name} ({one.operation}) changed its {one.beyond_files}: it"
                " cannot be adopted, only restored"
            )
        if not is_ours(one):
            if one.removed - live:
                raise CannotUndo(
                    f"version {one.version} of table {change.name} ({one.operation}) rewrote rows of a batch that is"
                    f" not finished: run `{to_paste('restore', THIS, *WHY)}` and"
                    f" `{to_paste('run', THIS)}`, then make the change again"
                )
            live = (live - one.removed) | one.added
        elif one.identity == delta_commits.RESTORED and not one.is_empty:
            raise CannotUndo(
                f"table {change.name} was restored and changed again: run `{to_paste('restore', THIS, *WHY)}` first,"
                " then make the change again"
            )
    return [known[path] for path in sorted(live) if path in known]


def check_files_exist(table: Table, wanted: Iterable[DataFile], so_that: str) -> None:
    """Raises `CannotUndo` where files are deleted; `so_that` says what is impossible then."""
    if gone := [f.path for f in wanted if not (table.folder / f.path).exists()]:
        raise CannotUndo(
            f"{so_that}: {gone[0]} is deleted ({len(gone)} such files), as VACUUM does once the table's"
            " delta.deletedFileRetentionDuration has passed. Restore the files from a backup of the warehouse"
        )


def rows_changed(
    table: Table, before: Sequence[DataFile], after: Sequence[DataFile], at_most: int = MOST_ROWS_COMPARED
) -> RowChange:
    """The rows that come and go between two sets of a table's files; only files that differ are read, of no more than
    `at_most` rows.
    """
    name, gone, come = table.folder.name, without(before, after), without(after, before)
    rows_gone, rows_come = (sum(f.rows for f in files) for files in (gone, come))
    there = all((table.folder / f.path).exists() for f in (*gone, *come))
    if rows_gone + rows_come > at_most or not there:
        return RowChange(name, rows_come, rows_gone, exact=False)
    less, more = _rows(table, gone), _rows(table, come)
    return RowChange(name, (more - less).total(), (less - more).total())


def _rows(table: Table, files: Iterable[DataFile]) -> Counter[str]:
    """How often each row is in some files, by the table's own columns: a file may hold more."""
    newest, found = table.newest(), Counter[str]()
    names = {one.name for one in newest.schema().fields} if newest else set()
    for file in files:
        read = data_files.read_parquet(table.folder / file.path)
        rows = data_files.rows_of(read.select([name for name in read.column_names if name in names]))
        found.update(_text({**row, **file.partition}) for row in rows)
    return found


def _text(row: Mapping[str, object]) -> str:
    return repr(sorted((name, value) for name, value in row.items() if value is not None))
