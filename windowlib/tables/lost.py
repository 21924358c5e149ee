"""Data files that a table's log names and that are gone: deleted by VACUUM with a short retention, or by hand.

Delta's log does not know that a file is gone, and an engine may pass over it in silence (Sail does), so its rows would
be missing from everything that is computed from them. Files are looked for before an engine is given their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windowlib.definition.commands import THIS, WHY, to_paste
from windowlib.definition.instants import iso_instant
from windowlib.tables import delta, log
from windowlib.tables.delta_commits import LostFiles
from windowlib.tables.ledger_history import committed_before
from windowlib.tables.meaning import TABLES
from windowlib.tables.opened import Table, Tables
from windowlib.tables.prepare import APP_ID

if TYPE_CHECKING:
    from windowlib.tables.data_files import DataFile


@contextmanager
def losses_named(tables: Tables) -> Iterator[None]:
    """Raises `LostFiles` where the block does not find a file that a table names."""
    try:
        yield
    except FileNotFoundError as error:
        try:
            check_all(tables)
        except LostFiles as lost:
            raise lost from error
        raise


def check_all(tables: Tables) -> None:
    """Raises `LostFiles` for the first table whose newest version names a file that is gone."""
    for name in TABLES:
        check_there(tables[name], delta.files(tables[name], delta.version(tables[name])))


def check_there(table: Table, files: Iterable[DataFile]) -> None:
    """Raises `LostFiles` unless all of some files of a table are there."""
    if gone := sorted(file.path for file in files if not (table.folder / file.path).exists()):
        raise LostFiles(_sentence(table, gone))


def _sentence(table: Table, gone: list[str]) -> str:
    newest = delta.version(table)
    assert newest is not None, "a table that names files exists"
    entries = list(_newest_first(table, newest))
    vacuum = next((one for one in entries if one.operation.startswith("VACUUM")), None)
    added = next((one for one in reversed(entries) if gone[0] in one.added), None)
    by = "no VACUUM is in its log, so another program deleted it"
    if vacuum:
        at = f" at {iso_instant(vacuum.at_ms)}" if vacuum.at_ms is not None else ""
        by = f"its log has a VACUUM, version {vacuum.version}, by {vacuum.user or 'unknown'}{at}"
    since = f", added by version {added.version}," if added else ""
    return (
        f"a file of table {table.folder.name} is gone: {gone[0]}{since} is named by version {newest} ({len(gone)} such"
        f" {'file' if len(gone) == 1 else 'files'}; {by}). Nothing was touched. Restore it to {table.folder} from a"
        f" backup of the warehouse{_without_backup(table, added)}"
    )


def _without_backup(table: Table, added: log.Entry | None) -> str:
    """How to continue without a backup, where the file was added by a batch that others came before."""
    batch_id = added.transactions.get(APP_ID) if added else None
    try:
        before = None if batch_id is None else committed_before(Tables(table.folder.parent), batch_id)
    except FileNotFoundError:  # files of the ledger are gone, too
        before = None
    if before is None:
        return ""
    return (
        f"; or go back to a batch before {batch_id}, which wrote it, with"
        f" `{to_paste('rollback', THIS, '--to-batch', str(before), *WHY)}`: the next run reads again what came"
        " since"
    )


def _newest_first(table: Table, newest: int) -> Iterator[log.Entry]:
    """The entries of a table's log, as far as they are there."""
    for version in range(newest, -1, -1):
        if not log.file_of(table.folder, version).exists():
            return
        yield log.entry(table.folder, version)
