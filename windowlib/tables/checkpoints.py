"""A table's log kept short: a checkpoint repeats all entries before it, so that readers need not open those.

Entries before the newest checkpoint that is not after the oldest kept version are deleted: every kept version can still
be opened. Checkpoints are on the disk before an entry goes, and entries go from the oldest on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from deltalake import DeltaTable

from windowlib.tables import delta, disk, log
from windowlib.tables.opened import Table

ENTRIES = 10  # so many entries after a checkpoint are worth another one


def checkpoint(table: Table, oldest: int, worth: int = ENTRIES) -> None:
    """Writes a checkpoint of version `oldest` and of the newest, where the last before each is `worth` entries back.

    None of a version past which another maintenance, that has taken this one over, has shortened the log meanwhile.
    """
    newest = delta.version(table)
    assert newest is not None, "a table with an oldest kept version exists"
    for version in sorted({oldest, newest}):
        worthwhile = version - (_last_checkpoint(table.folder, version) or 0) >= worth
        if worthwhile and can_open(table.folder, version):
            DeltaTable(str(table.folder), version=version).create_checkpoint()
            disk.sync(log.written_by(table.folder, version), table.folder)


def can_open(folder: Path, version: int) -> bool:
    """Whether the log still says what the table held at a version."""
    return version >= log.oldest_version(folder)


def superfluous(folder: Path, oldest: int, worth: int = ENTRIES) -> list[Path]:
    """The files of a log that no version from `oldest` on needs, oldest first."""
    last = _last_checkpoint(folder, oldest) or 0
    first = oldest if oldest - last >= worth else last  # where `checkpoint` writes one before they go
    return sorted(path for version, path in _numbered(folder) if version < first)


def delete(files: list[Path]) -> None:
    """Deletes entries, oldest first."""
    for path in files:
        path.unlink(missing_ok=True)


def _last_checkpoint(folder: Path, up_to: int) -> int | None:
    """The newest checkpoint that is not after a version."""
    return max((n for n, path in _numbered(folder) if n <= up_to and ".checkpoint." in path.name), default=None)


def _numbered(folder: Path) -> Iterator[tuple[int, Path]]:
    """The files of a log by their version."""
    for path in (folder / "_delta_log").iterdir():
        number = path.name.partition(".")[0]
        if number.isdigit():
            yield int(number), path
