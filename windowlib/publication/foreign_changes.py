"""Changes that other programs made to a pipeline's tables since its newest batch, and how to undo or keep them.

A table's log names the author of each commit. Commits of other programs that change rows (`ForeignChange`) stop every
run until an operator decides. `restore` returns the table to the state that windowlib left. `adopt` keeps its current
state. Commits of an unfinished batch may lie between commits of other programs; `adopt` excludes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from windowlib.contract.tables import COMMIT_ORDER
from windowlib.definition.commands import THIS, WHY, to_paste
from windowlib.definition.plurals import counted
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files, log
from windowlib.delta.data_files import DataFile, missing, without
from windowlib.delta.tables import Table, Tables
from windowlib.ledger.prepare import APP_ID, Publication
from windowlib.model.errors import WindowError
from windowlib.publication.roll_forward import is_ours, restore_command
from windowlib.publication.start_versions import Versions, changes_since

MOST_ROWS_COMPARED = 2_000_000


class CannotUndo(WindowError):
    """windowlib can neither undo nor keep the change of another program."""


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """A table that other programs changed. `entries` are their commits, `since` all commits after `ours`.

    `newest` is the current version. `ours` is the version that windowlib made: by the newest batch, or by a prepared
    batch already committed to this table. `ours` is None if windowlib had not created the table.
    """

    table: Table
    newest: int
    ours: int | None
    entries: tuple[log.LogEntry, ...]
    since: tuple[log.LogEntry, ...]

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def in_words(self) -> list[str]:
        """Lines about the commits of other programs: version, operation and author."""
        return [
            f"{self.name}: version {entry.version}, {entry.operation}, by {entry.user or 'unknown'}"
            for entry in self.entries
        ]


@dataclass(frozen=True, slots=True)
class RowChange:
    """Number of rows added to and removed from a table. `exact` is False if only row counts could be compared."""

    table: str
    added: int
    removed: int
    exact: bool = True


def foreign_changes(tables: Tables, pinned: Versions, prepared: Publication | None) -> list[ChangedTable]:
    """Tables that other programs changed, in commit order. Raises `log.DamagedLog`."""
    changes = (_foreign(tables[name], pinned.get(name), prepared) for name in COMMIT_ORDER)
    return [change for change in changes if change is not None]


def _foreign(table: Table, pinned: int | None, prepared: Publication | None) -> ChangedTable | None:
    newest = table.version()
    if newest is None or newest == pinned:
        return None
    since = changes_since(table, pinned, newest)
    ours = pinned
    for entry in since:
        if prepared and entry.identity == prepared.identity and APP_ID in entry.transactions:
            ours = entry.version
    if ours != pinned:
        since = changes_since(table, ours, newest)
    theirs = tuple(entry for entry in since if not is_ours(entry) and (entry.changes_data or entry.changes_columns))
    return ChangedTable(table, newest, ours, theirs, tuple(since)) if theirs else None


def files_before(change: ChangedTable) -> list[DataFile]:
    """Files of a table before the change. Raises `CannotUndo` if its files or columns cannot be restored."""
    for entry in change.entries:
        if entry.beyond_files:
            raise CannotUndo(
                f"version {entry.version} of table {change.name} ({entry.operation}) changed its {entry.beyond_files},"
                f" which windowlib cannot undo. {restore_command(change.table, entry.version - 1)}"
            )
    files = change.table.files(change.ours)
    check_files_exist(change.table, files, f"no way back to version {change.ours} of table {change.name}")
    return files


def files_kept(change: ChangedTable, pinned: int | None) -> list[DataFile]:
    """Files of a table with the changes of other programs, but without the changes of an unfinished batch.

    Raises `CannotUndo` if these changes cannot be separated, or if windowlib could not continue the table.
    """
    by_path = {f.path: f for version in (pinned, change.newest) for f in change.table.files(version)}
    live = {f.path for f in change.table.files(pinned)}
    for entry in changes_since(change.table, pinned, change.newest):
        if entry.beyond_files:
            raise CannotUndo(
                f"version {entry.version} of table {change.name} ({entry.operation}) changed its {entry.beyond_files}:"
                " this change cannot be adopted, only restored"
            )
        if not is_ours(entry):
            if entry.removed - live:
                raise CannotUndo(
                    f"version {entry.version} of table {change.name} ({entry.operation}) rewrote rows of an unfinished"
                    f" batch: run `{to_paste('restore', THIS, *WHY)}` and `{to_paste('run', THIS)}`, then make the"
                    " change again"
                )
            live = (live - entry.removed) | entry.added
        elif entry.identity == delta_commits.RESTORED and not entry.is_empty:
            raise CannotUndo(
                f"table {change.name} was restored and changed again: run `{to_paste('restore', THIS, *WHY)}` first,"
                " then make the change again"
            )
    return [by_path[path] for path in sorted(live) if path in by_path]


def check_files_exist(table: Table, wanted: Iterable[DataFile], cannot: str) -> None:
    """Raises `CannotUndo` if one of `wanted` is deleted. `cannot` names the action that is now impossible."""
    if gone := missing(table.store, [file.path for file in wanted]):
        raise CannotUndo(
            f"{cannot}: {counted(len(gone), 'deleted file')} of table {table.name}, such as {gone[0]}."
            " VACUUM deletes files after delta.deletedFileRetentionDuration. Restore them from a backup of the"
            " warehouse"
        )


def rows_changed(
    table: Table, before: Sequence[DataFile], after: Sequence[DataFile], at_most: int = MOST_ROWS_COMPARED
) -> RowChange:
    """Rows added and removed between two sets of a table's files.

    Reads only files that differ. If these files hold more than `at_most` rows, or if a file is missing, compares only
    row counts.
    """
    name, gone, come = table.name, without(before, after), without(after, before)
    rows_gone, rows_come = (sum(f.rows for f in files) for files in (gone, come))
    there = not missing(table.store, [file.path for file in (*gone, *come)])
    if rows_gone + rows_come > at_most or not there:
        return RowChange(name, rows_come, rows_gone, exact=False)
    less, more = _rows(table, gone), _rows(table, come)
    return RowChange(name, (more - less).total(), (less - more).total())


def _rows(table: Table, files: Iterable[DataFile]) -> Counter[str]:
    """Number of occurrences of each row in `files`. Ignores columns of the files that the table does not have."""
    newest, counts = table.newest(), Counter[str]()
    names = {field.name for field in newest.schema().fields} if newest else set()
    for file in files:
        read = data_files.read_parquet(table.store, file)
        rows = data_files.rows_of(read.select([name for name in read.column_names if name in names]))
        counts.update(_text({**row, **file.partition}) for row in rows)
    return counts


def _text(row: Mapping[str, object]) -> str:
    return repr(sorted((name, value) for name, value in row.items() if value is not None))
