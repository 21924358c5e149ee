"""The Delta tables of a pipeline as one attempt has them open.

Opening a table lists its log and reads it (8 ms); an open one asks only for its next commit (3 ms), and only where the
log has one. A run looks at its dozen tables some fifty times, so it opens each of them once and passes them
on. An open table belongs to one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from windowlib.tables.log import check, check_can_open, check_entries, check_later, entry, file_of, last_checkpoint


@dataclass(slots=True)
class Table:
    """The Delta table in a folder, whether or not there is one yet; opened when it is first asked for."""

    folder: Path
    listed: dict[int, Any] = field(default_factory=dict)  # what was read of a version, which never changes
    lasting: int | None = None  # the newest version that was made to last here
    _open: DeltaTable | None = None
    _first_commit: tuple[int, int] | None = None  # of the open table

    def newest(self) -> DeltaTable | None:
        """The table at its newest version, None where there is no table. Valid until it is asked for again."""
        first_commit = self._identity()
        if self._open is None or self._first_commit != first_commit or self._is_cleaned_up(first_commit):
            if first_commit is None and not self._has_log():
                return None
            check_entries(self.folder)
            with explained(self.folder):
                self._open, self._first_commit, self.listed = DeltaTable(str(self.folder)), first_commit, {}
        elif file_of(self.folder, self._open.version() + 1).exists():
            check_later(self.folder, self._open.version())
            with explained(self.folder):
                self._open.update_incremental()
        return self._open

    def at(self, version: int) -> DeltaTable:
        """The table at `version`. Valid until the newest is asked for. Raises `log.DamagedLog` if that is lost, and
        `log.CutLog` if the log was shortened past it.
        """
        table = self.newest()
        if table is not None and table.version() == version:
            return table
        with explained(self.folder, version):
            return DeltaTable(str(self.folder), version=version)

    def _identity(self) -> tuple[int, int] | None:
        """What distinguishes a table from one made in its place: its first commit; None once that is cleaned up."""
        try:
            first = file_of(self.folder, 0).stat()
        except OSError:
            return None
        return first.st_ino, first.st_mtime_ns

    def _is_cleaned_up(self, first_commit: tuple[int, int] | None) -> bool:
        """Whether the log has gone on so far that the entry of the open version is deleted."""
        assert self._open is not None, "a table is open"
        return first_commit is None and not file_of(self.folder, self._open.version()).exists()

    def _has_log(self) -> bool:
        if last_checkpoint(self.folder) is not None:
            return True
        return (self.folder / "_delta_log").is_dir() and DeltaTable.is_deltatable(str(self.folder))


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables in a pipeline's folder by name, each opened once."""

    root: Path
    _tables: dict[str, Table] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Table:
        if name not in self._tables:
            self._tables[name] = Table(self.root / name)
        return self._tables[name]


@contextmanager
def explained(folder: Path, version: int | None = None) -> Iterator[None]:
    """Where the block cannot read a table's log (up to `version`): raises `log.DamagedLog` for the entry to blame, or
    `log.CutLog`.
    """
    try:
        yield
    except DeltaError:
        check(folder)
        if version is not None:
            check_can_open(folder, version)
            entry(folder, version)
        raise
