"""Data files that a table's log names and that are gone, deleted by VACUUM with a short retention or by hand, or that
are not as they were written: cut, or overwritten.

Delta's log does not know that a file is gone, and an engine may pass over it in silence (Sail does), so its rows would
be missing from everything that is computed from them. Files are looked for before an engine is given their names. Of
one that is damaged it fails, and may not say of which: then sizes are compared with the log, and files are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.contract.tables import TABLES
from windowlib.definition.commands import THIS, WHY, to_paste
from windowlib.definition.instants import iso_instant
from windowlib.delta import log
from windowlib.delta.commits import LostFiles
from windowlib.delta.tables import Table, Tables
from windowlib.ledger.history import committed_before
from windowlib.ledger.prepare import APP_ID
from windowlib.model.errors import WindowError, is_of_storage, reason_of

if TYPE_CHECKING:
    from windowlib.delta.data_files import DataFile


ROWS_OF_BYTES = 1 << 28  # after a failure that may come from rows: a second or two


@contextmanager
def losses_named(tables: Tables, *mistaken: type[WindowError]) -> Iterator[None]:
    """Raises `LostFiles` where the block fails, and a file that a table names is gone or damaged.

    Not for an error that says itself what is wrong, but for those that may have been `mistaken` about it.
    """
    try:
        yield
    except Exception as error:
        may_be = not isinstance(error, WindowError) or isinstance(error, mistaken)
        if may_be and (lost := loss_behind(error, tables)):
            raise lost from error
        raise


def loss_behind(error: Exception, tables: Tables) -> LostFiles | None:
    """The files that are gone or damaged, from which an error may come; one of Arrow or an engine says not which.

    One of ours names the file: then no other is opened.
    """
    by_arrow = isinstance(error, (pa.ArrowException, OSError)) and not is_of_storage(error)
    by_engine = not isinstance(error, WindowError) and "parquet" in str(error).lower()
    try:
        check_all(tables, InspectionDepth(by_arrow or by_engine, str(error)))
    except LostFiles as lost:
        return lost
    except Exception:  # logs that cannot be read, for example: `error` says more than this one
        return None
    return None


@dataclass(slots=True)
class InspectionDepth:
    """How closely files are looked at: sizes, with `footers` these, too, and the rows of the files that an error names
    (`said`), and of others as long as they have no more bytes than are `left`.
    """

    footers: bool = False
    said: str = ""
    left: int = ROWS_OF_BYTES

    def damage(self, path: Path, file: DataFile) -> str | None:
        """Why a file, which is there, cannot be read; None where nothing was found."""
        if (size_bytes := path.stat().st_size) != file.size_bytes:
            return f"it has {size_bytes:,} bytes, and had {file.size_bytes:,} when it was written"
        if path.name in self.said:
            return _unreadable(path, rows=True)
        if not self.footers:
            return None
        self.left -= size_bytes
        return _unreadable(path, rows=self.left >= 0)


def check_all(tables: Tables, closely: InspectionDepth) -> None:
    """As `check_there` and `check_whole`, of all files that the newest versions of all tables name."""
    for name in TABLES:
        files = tables[name].files(tables[name].version())
        check_there(tables[name], files)
        check_whole(tables[name], files, closely)


def check_there(table: Table, files: Iterable[DataFile]) -> None:
    """Raises `LostFiles` unless all of some files of a table are there."""
    if gone := sorted(file.path for file in files if not (table.folder / file.path).exists()):
        raise LostFiles(_sentence(table, gone, "gone"))


def check_whole(table: Table, files: Iterable[DataFile], closely: InspectionDepth) -> None:
    """Raises `LostFiles` unless some files of a table, which are there, are as they were written."""
    damaged = {file.path: why for file in files if (why := closely.damage(table.folder / file.path, file))}
    if damaged:
        raise LostFiles(_sentence(table, sorted(damaged), "damaged", damaged[min(damaged)]))


def _unreadable(path: Path, *, rows: bool) -> str | None:
    """Why the footer of a file, or with `rows` anything of it, cannot be read."""
    part = "footer"
    try:
        file = pq.ParquetFile(path)
        part = "rows"
        for _ in file.iter_batches() if rows else ():
            pass
    except (OSError, pa.ArrowException) as error:
        if is_of_storage(error):
            raise
        return f"its {part} cannot be read: {reason_of(error)}"
    return None


def _sentence(table: Table, files: list[str], how: str, why: str = "") -> str:
    """That some files of a table are gone, or damaged (and of the first of them why), and what to do."""
    newest = table.version()
    assert newest is not None, "a table that names files exists"
    entries = list(_newest_first(table, newest))
    vacuum = next((one for one in entries if one.operation.startswith("VACUUM")), None)
    added = next((one for one in reversed(entries) if files[0] in one.added), None)
    by = why or "no VACUUM is in its log, so another program deleted it"
    if vacuum and not why:
        at = f" at {iso_instant(vacuum.at_ms)}" if vacuum.at_ms is not None else ""
        by = f"its log has a VACUUM, version {vacuum.version}, by {vacuum.user or 'unknown'}{at}"
    since = f", added by version {added.version}," if added else ""
    such = f"{len(files)} such {'file' if len(files) == 1 else 'files'}"
    return (
        f"a file of table {table.folder.name} is {how}: {files[0]}{since} is named by version {newest} ({such}; {by})."
        f" Nothing was touched. Restore it to {table.folder} from a backup of the warehouse"
        f"{_without_backup(table, added)}"
    )


def _without_backup(table: Table, added: log.LogEntry | None) -> str:
    """How to continue without a backup, where the file was added by a batch that others came before."""
    batch_id = added.transactions.get(APP_ID) if added else None
    try:
        before = None if batch_id is None else committed_before(Tables(table.folder.parent), batch_id)
    except (OSError, pa.ArrowException):  # files of the ledger are gone or damaged, too
        before = None
    if before is None:
        return ""
    return (
        f"; or go back to a batch before {batch_id}, which wrote it, with"
        f" `{to_paste('rollback', THIS, '--to-batch', str(before), *WHY)}`: the next run reads again what came"
        " since"
    )


def _newest_first(table: Table, newest: int) -> Iterator[log.LogEntry]:
    """The entries of a table's log, as far as they are there."""
    for version in range(newest, -1, -1):
        if not log.file_of(table.folder, version).exists():
            return
        yield log.entry(table.folder, version)
