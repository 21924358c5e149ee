"""A folder as storage: written with the calls of the operating system, and flushed to the disk.

A new object is written under a temporary name and flushed. Then its name is linked, which fails if the name exists, and
the folder is flushed. So no reader sees a part of an object, and an acknowledged object survives a power failure. A
killed process may leave a temporary file. Its name begins with the object's name and ends in `.tmp`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from windowlib.storage.at_once import at_once
from windowlib.storage.store import ObjectInfo

AT_ONCE = 8  # parallel flushes: several take little longer than one
TEMPORARY = ".tmp"


@dataclass(frozen=True, slots=True)
class Disk:
    """The folder `root`, which need not exist yet. It implements `windowlib.storage.store.Store`.

    >>> import tempfile
    >>> disk = Disk(Path(tempfile.mkdtemp()))
    >>> disk.create("a/1", b"first"), disk.create("a/1", b"second"), disk.get("a/1")
    (True, False, b'first')
    >>> [file.path for file in disk.list("a/")], disk.get("a/2"), disk.sizes(["a/1", "a/2"])
    (['a/1'], None, [5, None])
    """

    root: Path

    @property
    def url(self) -> str:
        """Path of the folder."""
        return str(self.root)

    def get(self, path: str) -> bytes | None:
        """Content of a file; None if it does not exist."""
        try:
            return Path(self._place(path)).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """Bytes ``[start, end)`` of a file; fewer if the file ends before. Raises FileNotFoundError."""
        with open(self._place(path), "rb") as file:
            file.seek(start)
            return file.read(end - start)

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """Sizes of several files in bytes. None for a missing file."""
        return [_size(self._place(path)) for path in paths]

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

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """Files whose path begins with `prefix` and is greater than `after`, sorted by path."""
        files = _files(self.root, prefix.rpartition("/")[0])
        for path in sorted((path for path in files if path.startswith(prefix) and path > after), key=os.fsencode):
            with suppress(FileNotFoundError):  # deleted meanwhile
                about = os.stat(self._place(path))
                yield ObjectInfo(path, about.st_size, about.st_mtime_ns)

    def options(self) -> dict[str, str]:
        """No settings: delta-rs opens the path."""
        return {}

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

    def _place(self, path: str) -> str:
        return os.path.join(self.root, path)  # with ten thousand files, `Path` objects would cost more than the disk


def flush(path: Path) -> None:
    """Flushes a file or a folder to the disk. Raises OSError if that fails."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _size(place: str) -> int | None:
    try:
        return os.stat(place).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


def _files(root: Path, folder: str) -> Iterator[str]:
    """Paths of the files below a folder, relative to the root; none if the folder does not exist."""
    try:
        with os.scandir(root / folder) as listing:
            entries = list(listing)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_dir():
            yield from _files(root, path)
        else:
            yield path


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
