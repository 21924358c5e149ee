"""What must be on the disk before the next thing may be written.

A file that was written is in the machine's memory; after a power cut it may be empty, or gone. Here a file, and the
folders that name it, are made to last. The order in which a run does so is its promise: data files, then the prepare
file and its row, then the log entries, then the commit row (`windowlib.tables.prepare`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

AT_ONCE = 8  # a disk answers several flushes together in little more time than one


def sync(files: Iterable[Path], root: Path) -> None:
    """Makes files, and every folder between them and `root`, last. Raises OSError where the disk cannot."""
    chosen = sorted(set(files))
    folders = {folder for file in chosen for folder in _up_to(root, file)}
    if len(chosen) < AT_ONCE:
        for file in chosen:
            _flush(file)
    else:
        with ThreadPoolExecutor(AT_ONCE, "windowlib-sync") as pool:
            list(pool.map(_flush, chosen))
    for folder in sorted(folders, key=lambda one: -len(one.parts)):
        _flush(folder)


def _up_to(root: Path, file: Path) -> Iterable[Path]:
    for folder in file.parents:
        yield folder
        if folder == root:
            return


def _flush(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
