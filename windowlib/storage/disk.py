"""A folder as storage: written with the calls of the operating system, and flushed to the disk.

A new object is written under a temporary name and flushed. Then its name is linked, which fails if the name exists, and
the folder is flushed. So no reader sees a part of an object, and an acknowledged object survives a power failure. A
killed process may leave a temporary file. Its name begins with the object's name and ends in `.tmp`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

AT_ONCE = 8  # parallel flushes: several take little longer than one
TEMPORARY = ".tmp"
A = TypeVar("A")
B = TypeVar("B")


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
        return self.create_many({path: data})[0]

    def create_many(self, items: Mapping[str, bytes]) -> list[bool]:
        """Writes several files as `create` does. All contents are flushed at once, and then named in order."""
        places = [self.root / path for path in items]
        temporary = [_temporary(place) for place in places]
        try:
            _at_once(_write, list(zip(temporary, items.values(), strict=True)))
            created = [_link(file, place) for file, place in zip(temporary, places, strict=True)]
        finally:
            for file in temporary:
                file.unlink(missing_ok=True)
        self._flush_folders(items)
        return created

    def sync(self, paths: Iterable[str]) -> None:
        """Flushes files, and the folders between them and the root. Raises FileNotFoundError if a file is missing."""
        chosen = sorted(set(paths))
        _at_once(flush, [self.root / path for path in chosen])
        self._flush_folders(chosen)

    def _flush_folders(self, paths: Iterable[str]) -> None:
        """Flushes the folders between files and the root, the deepest first."""
        folders = {folder for path in paths for folder in _up_to(self.root, self.root / path)}
        for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
            flush(folder)


def flush(path: Path) -> None:
    """Flushes a file or a folder to the disk. Raises OSError if that fails."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _temporary(place: Path) -> Path:
    return place.with_name(f"{place.name}.{secrets.token_hex(6)}{TEMPORARY}")


def _write(item: tuple[Path, bytes]) -> None:
    """Writes and flushes a new file. Makes its folder if it is missing."""
    file, data = item
    try:
        stream = file.open("xb")
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True)
        stream = file.open("xb")
    with stream:
        stream.write(data)
    flush(file)


def _link(file: Path, place: Path) -> bool:
    """Gives a file a second name; False if the name exists."""
    try:
        os.link(file, place)
    except FileExistsError:
        return False
    return True


def _at_once(step: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """Calls `step` for each item, and returns the results in order. Runs the calls in parallel if there are many."""
    chosen = list(items)
    if len(chosen) < AT_ONCE:
        return [step(item) for item in chosen]
    with ThreadPoolExecutor(AT_ONCE, "windowlib-disk") as pool:
        return list(pool.map(step, chosen))


def _up_to(root: Path, file: Path) -> Iterator[Path]:
    for folder in file.parents:
        yield folder
        if folder == root:
            return
