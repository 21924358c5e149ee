"""Folders of a disk: those above a file, and empty ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from windowlib.storage.store import UNFINISHED


def is_empty(folder: Path) -> bool:
    """Tests if a folder holds no finished file."""
    with os.scandir(folder) as entries:
        return all(entry.name.endswith(UNFINISHED) for entry in entries)


def has_files(folder: Path) -> bool:
    """Tests if a finished file lies below a folder."""
    return any(not name.endswith(UNFINISHED) for _, _, names in os.walk(folder) for name in names)


def remove_empty(folder: Path, root: Path) -> None:
    """Removes a folder if it is empty, then the folders above it up to `root`, which stays."""
    with suppress(OSError):  # not empty, removed by another process, or not to be removed by this user
        for place in takewhile(lambda place: place != root, (folder, *folder.parents)):
            place.rmdir()


def up_to_mount(file: Path) -> Iterator[Path]:
    """The folders above a file, the deepest first, up to the mount point.

    Stops below a folder that this process may not write to, because nothing in it is new.
    """
    for folder in file.absolute().parents:
        if not os.access(folder, os.R_OK | os.W_OK):
            return
        yield folder
        if folder.is_mount():
            return


def up_to(root: Path, file: Path) -> Iterator[Path]:
    """The folders from a file's own folder up to `root`, the deepest first."""
    for folder in file.parents:
        yield folder
        if folder == root:
            return
