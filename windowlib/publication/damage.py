"""Checks for missing and damaged data files that a table's log names.

VACUUM with a short retention, or a person, deletes files that are then missing. A damaged file was cut or overwritten.

Delta's log does not know that a file is missing, and an engine may skip the file silently (Sail does). Every result
would then lack its rows. Therefore files are checked before an engine gets their names. An engine fails on a damaged
file, but may not name the file. Then file sizes are compared with the log, and files are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.contract.tables import TABLES
from windowlib.definition.commands import THIS, WHY, to_paste
from windowlib.definition.instants import iso_instant
from windowlib.delta import log
from windowlib.delta.commits import LostFiles
from windowlib.delta.data_files import missing
from windowlib.delta.tables import Table, Tables
from windowlib.ledger.history import committed_before
from windowlib.ledger.prepare import APP_ID
from windowlib.model.errors import WindowError, is_of_storage, reason_of
from windowlib.storage.object_file import opened
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from windowlib.delta.data_files import DataFile


ROWS_OF_BYTES = 1 << 28  # total size of the files whose rows are read after a failure: takes a second or two


@contextmanager
def losses_named(tables: Tables, *mistaken: type[WindowError]) -> Iterator[None]:
    """Raises `LostFiles` if the block fails and a file that a table names is missing or damaged.

    Errors of windowlib already state their cause, so only the classes in `mistaken` are replaced.
    """
    try:
        yield
    except Exception as error:
        may_be = not isinstance(error, WindowError) or isinstance(error, mistaken)
        if may_be and (lost := loss_behind(error, tables)):
            raise lost from error
        raise


def loss_behind(error: Exception, tables: Tables) -> LostFiles | None:
    """Missing or damaged files that may have caused an error; None if there are none.

    Opens all files for an error of Arrow or of an engine, because such an error does not name the file. For other
    errors, opens only files that the error names.
    """
    by_arrow = isinstance(error, (pa.ArrowException, OSError)) and not is_of_storage(error)
    by_engine = not isinstance(error, WindowError) and "parquet" in str(error).lower()
    try:
        check_all(tables, InspectionDepth(by_arrow or by_engine, str(error)))
    except LostFiles as lost:
        return lost
    except Exception:  # for example an unreadable log: `error` explains more than this exception
        return None
    return None


@dataclass(slots=True)
class InspectionDepth:
    """Extent of the checks on a file.

    The check always compares sizes. With `footers` it also reads footers. It reads the rows of files that the error's
    `text` names and, with `footers`, the rows of other files up to a total of `left` bytes.
    """

    footers: bool = False
    text: str = ""
    left: int = ROWS_OF_BYTES

    def damage(self, store: Store, file: DataFile) -> str | None:
        """Reason why an existing file cannot be read; None if no damage was found."""
        size_bytes = store.sizes([file.path])[0] or 0
        if size_bytes != file.size_bytes:
            return f"it has {size_bytes:,} bytes, and had {file.size_bytes:,} when it was written"
        if file.path.rpartition("/")[2] in self.text:
            return _unreadable(store, file, rows=True)
        if not self.footers:
            return None
        self.left -= size_bytes
        return _unreadable(store, file, rows=self.left >= 0)


def check_all(tables: Tables, depth: InspectionDepth) -> None:
    """Checks all files that the newest versions of all tables name, by `check_exist` and `check_undamaged`."""
    for name in TABLES:
        files = tables[name].files(tables[name].version())
        check_exist(tables, name, files)
        check_undamaged(tables, name, files, depth)


def check_exist(tables: Tables, name: str, files: Iterable[DataFile]) -> None:
    """Raises `LostFiles` unless all `files` of a table exist."""
    if gone := missing(tables[name].store, [file.path for file in files]):
        raise LostFiles(_sentence(tables, name, gone, "gone"))


def check_undamaged(tables: Tables, name: str, files: Iterable[DataFile], depth: InspectionDepth) -> None:
    """Raises `LostFiles` if one of the `files` of a table, which all exist, is damaged."""
    damaged = {file.path: why for file in files if (why := depth.damage(tables[name].store, file))}
    if damaged:
        raise LostFiles(_sentence(tables, name, sorted(damaged), "damaged", damaged[min(damaged)]))


def _unreadable(store: Store, file: DataFile, *, rows: bool) -> str | None:
    """Reason why the footer of a file cannot be read. With `rows`, also reads the rows. None if the read succeeds."""
    part = "footer"
    try:
        parquet = pq.ParquetFile(opened(store, file.path, file.size_bytes))
        part = "rows"
        for _ in parquet.iter_batches() if rows else ():
            pass
    except (OSError, pa.ArrowException) as error:
        if is_of_storage(error):
            raise
        return f"its {part} cannot be read: {reason_of(error)}"
    return None


def _sentence(tables: Tables, name: str, files: list[str], how: str, why: str = "") -> str:
    """Message about missing or damaged files, with the repair. `how` is "gone" or "damaged". `why` describes the damage
    of the first file.
    """
    table = tables[name]
    newest = table.version()
    assert newest is not None, "a table that names files exists"
    entries = list(_newest_first(table, newest))
    vacuum = next((entry for entry in entries if entry.operation.startswith("VACUUM")), None)
    added = next((entry for entry in reversed(entries) if files[0] in entry.added), None)
    by = why or "no VACUUM is in its log, so another program deleted it"
    if vacuum and not why:
        at = f" at {iso_instant(vacuum.at_ms)}" if vacuum.at_ms is not None else ""
        by = f"its log has a VACUUM, version {vacuum.version}, by {vacuum.user or 'unknown'}{at}"
    since = f", added by version {added.version}" if added else ""
    such = f"{len(files)} such {'file' if len(files) == 1 else 'files'}"
    return (
        f"a file of table {table.name} is {how}: version {newest} names {files[0]}{since} ({such}; {by})."
        f" Nothing was changed. Restore it to {table.store} from a backup of the warehouse"
        f"{_without_backup(tables, added)}"
    )


def _without_backup(tables: Tables, added: log.LogEntry | None) -> str:
    """Repair without a backup: a rollback before the batch that added the file. Empty if no earlier batch exists."""
    batch_id = added.transactions.get(APP_ID) if added else None
    try:
        before = None if batch_id is None else committed_before(tables, batch_id)
    except (OSError, pa.ArrowException):  # files of the ledger are gone or damaged, too
        before = None
    if before is None:
        return ""
    return (
        f"; or go back to a batch before {batch_id}, which wrote it, with"
        f" `{to_paste('rollback', THIS, '--to-batch', str(before), *WHY)}`: the next run reads the later"
        " files again"
    )


def _newest_first(table: Table, newest: int) -> Iterator[log.LogEntry]:
    """Existing entries of a table's log, newest first."""
    for version in range(newest, -1, -1):
        if not log.has(table.store, version):
            return
        yield log.entry(table.store, version)
