"""Contract of a storage: bytes at names below a URL.

The contract holds what a disk and an object store can both promise. It has no rename, no folders, no written
modification time, and no update by tag (a disk has none).

Requests that `windowlib.storage.at_once` sends at once form a *round*, which takes as long as its slowest request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyarrow import fs

UNFINISHED = ".tmp"  # end of the path of an object that a killed process has left unfinished; maintenance deletes it


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """A stored object. `path` is relative to the URL of its store, with `/` between its parts."""

    path: str
    size_bytes: int
    modified_ns: int  # since the epoch, by the clock of the storage


class Store(Protocol):
    """Stored objects below a URL. Paths are relative to the URL. Listings are sorted by the bytes of the paths.

    An object appears whole or not at all. An object that `create` or `put` has acknowledged survives a power failure.
    Copies, and files of engines, survive a power failure after `sync`. Methods raise OSError if the storage refuses.
    """

    def __hash__(self) -> int:
        """Stores with one address are equal, so that contents that never change may be cached by store and path."""

    @property
    def url(self) -> str:
        """Address of the storage for engines and for delta-rs. `str` of a store is its address, too."""

    def below(self, folder: str) -> Store:
        """The objects of this store whose paths begin with `folder` and a `/`, as a store with shorter paths."""

    def get(self, path: str) -> bytes | None:
        """Content of an object; None if it does not exist."""

    def get_many(self, paths: Sequence[str]) -> list[bytes | None]:
        """Contents of several objects, in one round. None for a missing object."""

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """Bytes ``[start, end)`` of an object; fewer if the object ends before. Raises FileNotFoundError."""

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """Sizes of several objects in bytes, in one round. None for a missing object."""

    def infos(self, paths: Sequence[str]) -> list[ObjectInfo | None]:
        """Descriptions of several objects, in one round. None for a missing object."""

    def create(self, path: str, data: bytes) -> bool:
        """Stores an object unless the path already has an object. Tests if the stored object holds `data`.

        False means that another writer was faster. If the answer of the storage was lost, the object is read back.
        """

    def put(self, path: str, data: bytes | Iterable[bytes]) -> None:
        """Stores an object, or replaces its content. The last writer wins. Readers see the old content or the new.

        Data in pieces is sent piece by piece, so that a large object is never whole in memory.
        """

    def copy(self, source: str, to: Store, target: str) -> None:
        """Copies an object to a store on the same disk or in the same bucket, without reading it.

        Replaces an existing target. Raises FileNotFoundError.
        """

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes objects in any order, in one round. Ignores missing objects."""

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """Objects whose path begins with `prefix` and is greater than `after`, sorted by path.

        May show an object that a killed process has left unfinished. Its path ends in UNFINISHED.
        """

    def clear(self) -> None:
        """Deletes all objects of this store. Objects that others add meanwhile may stay."""

    def require_lasting_access(self) -> None:
        """Raises OSError if the credentials expire too soon for a batch, although they were renewed."""

    def no_folder(self) -> str | None:
        """Address of a file at or above the URL, which prevents that objects are stored; None if there is none."""

    def free_bytes(self) -> int | None:
        """Free space in bytes; None if the storage does not report it."""

    def scan(
        self, wanted: Callable[[str], bool], enters: Callable[[str], bool], after: str = ""
    ) -> Iterator[ObjectInfo]:
        """Wanted objects of other programs with a path greater than `after`, sorted by path.

        Asks `enters` for each folder that the listing meets. Omits the objects in a folder for which it is false.

        On a disk, raises FileNotFoundError or NotADirectoryError if the URL names no folder. Raises
        `windowlib.storage.disk_scan.UnusableLink` for a wanted symbolic link that gives no file of its own.
        """

    def above(self) -> tuple[Store, str] | None:
        """The store one folder up, and the name of this store's folder in it; None at the top."""

    def unreadable(self, path: str = "") -> str | None:
        """Address of the first object or folder at or below `path` that this user may not read.

        None if there is none, or if the storage cannot tell. Relevant after an error only.
        """

    def filesystem(self) -> fs.FileSystem:
        """The objects as Arrow's own file system."""

    def options(self) -> dict[str, str]:
        """Settings with which delta-rs reaches the storage, with credentials that are valid now."""

    def environment(self) -> dict[str, str]:
        """Environment variables with which an engine in this process reaches the storage.

        They hold a secret only if the engine does not find it by itself.
        """

    def sync(self, paths: Iterable[str]) -> None:
        """Makes files of an engine or another program survive a power failure.

        On a disk, raises FileNotFoundError if a file is missing. On an object store, does nothing.
        """
