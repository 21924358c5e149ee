"""A folder as storage: written with the calls of the operating system, and flushed to the disk.

A new object is written under a temporary name and flushed. Then its name is linked, which fails if the name exists, and
the folder is flushed. So no reader sees a part of an object, and an acknowledged object survives a power failure. A
killed process may leave a temporary file. Its name begins with the object's name and ends in UNFINISHED.

A deletion also removes the folders that it empties. Another process may be about to write into such a folder. A write
therefore creates its folder again and repeats its first step. A folder with a temporary file is not empty.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from windowlib.storage import disk_scan
from windowlib.storage.at_once import at_once
from windowlib.storage.disk_folders import has_files, is_empty, remove_empty, up_to, up_to_mount
from windowlib.storage.store import UNFINISHED, ObjectInfo, Store

if TYPE_CHECKING:
    from pyarrow import fs

T = TypeVar("T")
TRIES = 10  # attempts to write into a folder that other processes remove meanwhile, or to remove one
AT_ONCE = 8  # parallel flushes: several take little longer than one


@dataclass(frozen=True, slots=True)
class Disk:
    """The folder `root`, which need not exist yet. It implements `windowlib.storage.store.Store`.

    `top` is the folder up to which `sync` flushes: that of the store from which `below` made this one.

    >>> import tempfile
    >>> disk = Disk(Path(tempfile.mkdtemp()))
    >>> disk.create("a/1", b"first"), disk.create("a/1", b"second"), disk.get("a/1")
    (True, False, b'first')
    >>> [file.path for file in disk.list("a/")], disk.get("a/2"), disk.sizes(["a/1", "a/2"])
    (['a/1'], None, [5, None])
    """

    root: Path
    top: Path | None = field(default=None, compare=False)

    @property
    def url(self) -> str:
        """Path of the folder."""
        return str(self.root)

    def __str__(self) -> str:
        return self.url

    def below(self, folder: str) -> Disk:
        """The files in a folder below this one."""
        return Disk(self.root / folder, self.top or self.root)

    def get(self, path: str) -> bytes | None:
        """Content of a file; None if it does not exist."""
        try:
            return Path(self._place(path)).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def get_many(self, paths: Sequence[str]) -> list[bytes | None]:
        """Contents of several files. None for a missing file."""
        return [self.get(path) for path in paths]

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """Bytes ``[start, end)`` of a file; fewer if the file ends before. Raises FileNotFoundError."""
        with open(self._place(path), "rb") as file:
            file.seek(start)
            return file.read(end - start)

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """Sizes of several files in bytes. None for a missing file."""
        return [None if info is None else info.size_bytes for info in self.infos(paths)]

    def infos(self, paths: Sequence[str]) -> list[ObjectInfo | None]:
        """Descriptions of several files. None for a missing file, and for a folder or pipe."""
        return [_info(self._place(path), path) for path in paths]

    def create(self, path: str, data: bytes) -> bool:
        """Writes a file unless it exists. Tests if the file then holds `data`."""
        return self._write(self.root / path, data, _link) or self.get(path) == data

    def put(self, path: str, data: bytes | Iterable[bytes]) -> None:
        """Writes a file, or replaces its content atomically."""
        self._write(self.root / path, data, Path.replace)

    def copy(self, source: str, to: Store, target: str) -> None:
        """Gives a file a second name: a hard link, or a copy if the disk supports no links. Does not flush it."""
        place = Path(to.url) / target
        unfinished = _temporary(place)
        try:
            _in_folder(place.parent, lambda: _link_or_copy(self._place(source), unfinished))
            unfinished.replace(place)
        finally:
            unfinished.unlink(missing_ok=True)

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files, and the folders below the root that become empty. Ignores missing files."""
        folders = dict[Path, None]()
        for path in paths:
            with suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(self._place(path))
            folders[(self.root / path).parent] = None
        for folder in folders:
            remove_empty(folder, self.root)

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """Files whose path begins with `prefix` and is greater than `after`, sorted by path."""
        folder = prefix.rpartition("/")[0]
        inside = disk_scan.walk(self.url, folder, after, lambda path: path.startswith(prefix), through_links=True)
        for path, _ in inside:
            if path.startswith(prefix) and (info := _info(self._place(path), path)):  # else deleted meanwhile
                yield info

    def scan(
        self, wanted: Callable[[str], bool], enters: Callable[[str], bool], after: str = ""
    ) -> Iterator[ObjectInfo]:
        """Wanted files of other programs with a path greater than `after`, sorted by path."""
        return disk_scan.scan(self.url, wanted, enters, after)

    def above(self) -> tuple[Disk, str] | None:
        """The folder above, and the name of this folder in it; None for the root. Follows symbolic links."""
        parent, name = os.path.split(os.path.realpath(self.root))
        return (Disk(Path(parent)), name) if name else None

    def unreadable(self, path: str = "") -> str | None:
        """The first file or folder at or below `path`, or folder above it, that this user may not read."""
        place = self.root / path
        denied = disk_scan.first_unreadable(place) or disk_scan.first_unreadable_below(place)
        return None if denied is None else str(denied)

    def clear(self) -> None:
        """Deletes the folder with all files, and folders above it that are now empty, up to `top`."""
        for _ in range(TRIES):  # another process may write into the folder meanwhile
            try:
                shutil.rmtree(self.root)
            except FileNotFoundError:
                break
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
        if self.top:
            remove_empty(self.root.parent, self.top)

    def require_lasting_access(self) -> None:
        """Does nothing: a disk has no credentials that expire."""

    def no_folder(self) -> str | None:
        """Path of a file, or of a broken link, at or above the folder; None if there is none."""
        places = (self.root, *self.root.parents)
        return next((str(place) for place in places if os.path.lexists(place) and not place.is_dir()), None)

    def free_bytes(self) -> int | None:
        """Free bytes below the folder, which may not exist yet; None if the system does not report them.

        >>> Disk(Path("/no/such/folder")).free_bytes() == Disk(Path("/")).free_bytes() > 0
        True
        """
        existing = next(path for path in (self.root.absolute(), *self.root.absolute().parents) if path.exists())
        try:
            space = os.statvfs(existing)
        except OSError:
            return None
        return space.f_bavail * space.f_frsize

    def filesystem(self) -> fs.FileSystem:
        """The folder as Arrow's own file system.

        deltalake's file system runs in Arrow's threads, which sometimes abort the process when it ends.
        """
        from pyarrow import fs

        return fs.SubTreeFileSystem(str(self.root.absolute()), fs.LocalFileSystem())

    def options(self) -> dict[str, str]:
        """No settings: delta-rs opens the path."""
        return {}

    def environment(self) -> dict[str, str]:
        """No variables: engines open the path."""
        return {}

    def sync(self, paths: Iterable[str]) -> None:
        """Flushes files, and the folders between them and `top`. Raises FileNotFoundError if a file is missing."""
        chosen = sorted({self.root / path for path in paths})
        if len(chosen) < AT_ONCE:
            for file in chosen:
                flush(file)
        else:
            at_once(flush, chosen, AT_ONCE)
        folders = {folder for file in chosen for folder in up_to(self.top or self.root, file)}
        for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
            flush(folder)

    def _write(self, place: Path, data: bytes | Iterable[bytes], name: Callable[[Path, Path], T]) -> T:
        """Writes and flushes a temporary file, and gives it its name by `name`. Returns the result of `name`.

        Before the first file of a folder, flushes the folders above: a process may have created them and died.
        """
        unfinished = _temporary(place)
        try:
            _in_folder(place.parent, unfinished.touch)
            _fill(unfinished, data)  # an error of its pieces is no missing folder
            flush(unfinished)
            for folder in self._perhaps_new(place) if is_empty(place.parent) else ():
                flush(folder)
            outcome = name(unfinished, place)
        finally:
            unfinished.unlink(missing_ok=True)
        flush(place.parent)
        return outcome

    def _perhaps_new(self, place: Path) -> Iterator[Path]:
        """Folders above the first file of a folder whose names may not be flushed yet."""
        top = self.top or self.root
        return up_to(top, place) if has_files(top) else up_to_mount(place)

    def _place(self, path: str) -> str:
        return os.path.join(self.root, path)  # with ten thousand files, `Path` objects would cost more than the disk


def flush(path: Path) -> None:
    """Flushes a file or a folder to the disk. Raises OSError if that fails."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _fill(file: Path, data: bytes | Iterable[bytes]) -> None:
    with file.open("wb") as stream:
        stream.writelines([data] if isinstance(data, bytes) else data)


def _info(place: str, path: str) -> ObjectInfo | None:
    try:
        about = os.stat(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return ObjectInfo(path, about.st_size, about.st_mtime_ns) if stat.S_ISREG(about.st_mode) else None


def _temporary(place: Path) -> Path:
    return place.with_name(f"{place.name}.{secrets.token_hex(6)}{UNFINISHED}")


def _in_folder(folder: Path, write: Callable[[], object]) -> None:
    """Calls `write`, which creates a file in a folder. Creates the folder if it is missing.

    Tries again if another process removes the empty folder meanwhile.
    """
    for tries_left in reversed(range(TRIES)):
        try:
            write()
            return
        except FileNotFoundError as error:
            if not tries_left and folder.is_dir():
                raise
            if not tries_left:  # its file system has no new folders
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(folder)) from error
        with suppress(FileNotFoundError):  # another process removes a folder above
            folder.mkdir(parents=True, exist_ok=True)


def _link_or_copy(source: str, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)


def _link(file: Path, place: Path) -> bool:
    """Gives a file a second name; False if the name exists."""
    try:
        os.link(file, place)
    except FileExistsError:
        return False
    return True
