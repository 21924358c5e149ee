"""Files of a table's log on a disk."""

from __future__ import annotations

from pathlib import Path

from windowlib.delta import log


def file_of(folder: Path, version: int) -> Path:
    """The entry of a version of the table in a folder."""
    return folder / log.path_of(version)
