"""A folder as storage: written with the calls of the operating system, and flushed to the disk.

A new object is written under a temporary name and flushed. Then its name is linked, which fails if the name exists, and
the folder is flushed. So no reader sees a part of an object, and an acknowledged object survives a power failure. A
killed process may leave a temporary file. Its name begins with the object's name and ends in `.tmp`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from windowlib.storage.at_once import at_once

AT_ONCE = 8  # parallel flushes: several take little longer than one
TEMPORARY = ".tmp"


@dataclass(frozen=True, slots=True)
class Disk:
    """The folder `root`, which need not exist yet. It implements `windowlib.storage.store.Store`.

    >>> import tempfile
    >>> disk = Disk(Path(tempfile.mkdtemp()))
    >>> disk.create("a/1", b"first"), disk.create("a/1", b"second"), (disk.root / "a/1").read_bytes()
    (True, False, b'first')
    """

    root: Path

    def create(self, path: str, data: bytes) -> bool:
        """Writes a file unless it exists. Tests if the file then holds `data`."""
        place = self.root / path
        temporary = place.with_name(f"{place.name}.{secrets.token_hex(6)}{TEMPORARY}")
        is_new = not place.parent.is_dir()
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as stream:
                stream.write(data)
            flush(temporary)
            created = _link(temporary, place)
        finally:
            temporary.unlink(missing_ok=True)
        for folder in _up_to(self.root if is_new else place.parent, place):
            flush(folder)
        return created

    def sync(self, paths: Iterable[str]) -> None:
        """Flushes files, and the folders between them and the root. Raises FileNotFoundError if a file is missing."""
        chosen = sorted({self.root / path for path in paths})
        if len(chosen) < AT_ONCE:
            for file in chosen:
                flush(file)
        else:
            at_once(flush, chosen, AT_ONCE)
        folders = {folder for file in chosen for folder in _up_to(self.root, file)}
        for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
            flush(folder)


def flush(path: Path) -> None:
    """Flushes a file or a folder to the disk. Raises OSError if that fails."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _link(file: Path, place: Path) -> bool:
    """Gives a file a second name; False if the name exists."""
    try:
        os.link(file, place)
    except FileExistsError:
        return False
    return True


def _up_to(root: Path, file: Path) -> Iterator[Path]:
    """The folders from a file's own folder up to `root`, the deepest first."""
    for folder in file.parents:
        yield folder
        if folder == root:
            return
