"""Delta tables that this process has opened, brought up to date instead of being opened again.

Opening a table lists its log and reads it (8 ms); bringing an opened one up to date asks for the next commit (3 ms), so
that is done only where there is one. A run looks at its dozen tables fifty times.
"""

from __future__ import annotations

import threading
from pathlib import Path

from deltalake import DeltaTable

_opened = threading.local()  # an opened table is for one thread: another must not move it on meanwhile


def newest(folder: Path) -> DeltaTable | None:
    """The table at its newest version, None where there is no table. Valid until the thread asks again."""
    born = _born(folder)
    if born is None:
        return DeltaTable(str(folder)) if _is_table(folder) else None  # the beginning of its log was cleaned up
    known: dict[Path, tuple[tuple[int, int], DeltaTable]] = _opened.__dict__.setdefault("tables", {})
    if folder in known and known[folder][0] == born:
        table = known[folder][1]
        if _commit(folder, table.version() + 1).exists():
            table.update_incremental()
        return table
    table = DeltaTable(str(folder))
    known[folder] = (born, table)
    return table


def at(folder: Path, version: int) -> DeltaTable:
    """The table at `version`. Valid until the thread asks for the newest."""
    table = newest(folder)
    return table if table is not None and table.version() == version else DeltaTable(str(folder), version=version)


def _born(folder: Path) -> tuple[int, int] | None:
    """What tells a table from another one that was made in its place: its first commit."""
    try:
        first = _commit(folder, 0).stat()
    except OSError:
        return None
    return first.st_ino, first.st_mtime_ns


def _commit(folder: Path, version: int) -> Path:
    return folder / "_delta_log" / f"{version:020}.json"


def _is_table(folder: Path) -> bool:
    return (folder / "_delta_log").is_dir() and DeltaTable.is_deltatable(str(folder))
