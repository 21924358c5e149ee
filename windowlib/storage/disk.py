"""A folder as storage: written with the calls of the operating system, and flushed to the disk.

A new object is written under a temporary name and flushed. Then its name is linked, which fails if the name exists, and
the folder is flushed. So no reader sees a part of an object, and one that was acknowledged survives a power cut. A
killed process may leave a temporary file, whose name begins with that of its object and ends in `.tmp`.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from windowlib.storage.store import ObjectInfo

AT_ONCE = 8  # parallel flushes: several take little longer than one
TEMPORARY = ".tmp"
A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Disk:
    """The folder `root`, which need not exist yet. It implements `windowlib.storage.store.Store`.

    >>> import tempfile
    >>> disk = Disk(Path(tempfile.mkdtemp()))
    >>> disk.create("a/1", b"first"), disk.create("a/1", b"second"), disk.get("a/1")
    (True, False, b'first')
    >>> [found.path for found in disk.list("a/")], disk.get("a/2")
    (['a/1'], None)
    """

    root: Path

    @property
    def url(self) -> str:
        """The path of the folder."""
        return str(self.root)

    def get(self, path: str) -> bytes | None:
        """Content of a file; None if it does not exist."""
        try:
            return (self.root / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """Bytes ``[start, end)`` of a file, fewer if it ends before. Raises FileNotFoundError."""
        with (self.root / path).open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def get_many(self, paths: Sequence[str]) -> list[bytes | None]:
        """Contents of several files."""
        return [self.get(path) for path in paths]

    def create(self, path: str, data: bytes) -> bool:
        """Writes a file unless one exists, and tests if it then holds `data`."""
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

    def put(self, path: str, data: bytes) -> None:
        """Writes a file, or replaces its content."""
        place = self.root / path
        temporary = _temporary(place)
        try:
            _write((temporary, data))
            temporary.replace(place)
        finally:
            temporary.unlink(missing_ok=True)
        self._flush_folders([path])

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """Files whose path begins with `prefix` and is greater than `after`, sorted by path."""
        folder = prefix.rpartition("/")[0]
        paths = [path for path in _files(self.root, folder) if path.startswith(prefix) and path > after]
        for path in sorted(paths, key=os.fsencode):
            with suppress(FileNotFoundError):  # deleted meanwhile
                about = os.stat(self.root / path)
                tag = f"{about.st_ino:x}-{about.st_mtime_ns:x}-{about.st_size:x}"
                yield ObjectInfo(path, about.st_size, about.st_mtime_ns, tag)

    def copy_many(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Gives each file (from, to) a second name: a hard link, or a copy where the disk has none."""
        for source, target in pairs:
            place = self.root / target
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            try:
                os.link(self.root / source, place)
            except FileNotFoundError:
                raise
            except OSError:
                shutil.copyfile(self.root / source, place)

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files. A missing one is no error. Folders stay."""
        for path in paths:
            (self.root / path).unlink(missing_ok=True)

    def options(self) -> dict[str, str]:
        """No settings: engines and delta-rs open the path."""
        return {}

    def sync(self, paths: Iterable[str]) -> None:
        """Flushes files, and the folders between them and the root. Raises FileNotFoundError if one is missing."""
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
    """Writes and flushes a new file; makes its folder if it is missing."""
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
    """Results of `step` for each item, in order; several flushes at once if there are many."""
    chosen = list(items)
    if len(chosen) < AT_ONCE:
        return [step(item) for item in chosen]
    with ThreadPoolExecutor(AT_ONCE, "windowlib-disk") as pool:
        return list(pool.map(step, chosen))


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


def _up_to(root: Path, file: Path) -> Iterator[Path]:
    for folder in file.parents:
        yield folder
        if folder == root:
            return
