"""Contract of a storage: bytes at names below a URL.

The contract holds what a disk and an object store can both promise. It has no rename, no folders, no written
modification time, and no update by tag (a disk has none).

Requests that `windowlib.storage.at_once` sends at once form a *round*, which takes as long as its slowest request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """A stored object. `path` is relative to the URL of its store, with `/` between its parts."""

    path: str
    size_bytes: int
    modified_ns: int  # since the epoch, by the clock of the storage


class Store(Protocol):
    """Stored objects below a URL. Paths are relative to the URL. Listings are sorted by the bytes of the paths.

    An object appears whole or not at all. An object that `create` has acknowledged survives a power failure.
    Files of engines survive a power failure after `sync`. Methods raise OSError if the storage refuses.
    """

    @property
    def url(self) -> str:
        """Address of the storage for engines and for delta-rs."""

    def get(self, path: str) -> bytes | None:
        """Content of an object; None if it does not exist."""

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """Bytes ``[start, end)`` of an object; fewer if the object ends before. Raises FileNotFoundError."""

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """Sizes of several objects in bytes, in one round. None for a missing object."""

    def create(self, path: str, data: bytes) -> bool:
        """Stores an object unless the path already has an object. Tests if the stored object holds `data`.

        False means that another writer was faster. If the answer of the storage was lost, the object is read back.
        """

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """Objects whose path begins with `prefix` and is greater than `after`, sorted by path."""

    def options(self) -> dict[str, str]:
        """Settings with which delta-rs reaches the storage, with credentials that are valid now."""

    def sync(self, paths: Iterable[str]) -> None:
        """Makes files of an engine or another program survive a power failure.

        On a disk, raises FileNotFoundError if a file is missing. On an object store, does nothing.
        """
