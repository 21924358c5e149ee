"""Contract of a storage: bytes at names below a URL.

The contract holds what a disk and an object store can both promise. It has no rename, no folders, no written
modification time, no test of existence (list or get instead), and no update by tag (a disk has none).

A *round* is a set of requests that are sent at once. Methods whose name ends in `_many` take one round on an object
store, where a round takes as long as its slowest request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """A stored object. `path` is relative to the URL of its store, with `/` between its parts.

    `tag` changes when the content is replaced. It detects a change and does not identify a content.
    """

    path: str
    size_bytes: int
    modified_ns: int  # since the epoch, by the clock of the storage
    tag: str


class Store(Protocol):
    """Stored objects below a URL. Paths are relative to it, and sorted by their UTF-8 bytes where they are listed.

    An object appears whole or not at all. What `create`, `create_many` and `put` have acknowledged survives a power
    cut; files of engines survive it after `sync`. Methods raise OSError if the storage refuses.
    """

    @property
    def url(self) -> str:
        """Address of the storage for engines and for delta-rs."""

    def get(self, path: str) -> bytes | None:
        """Content of an object; None if it does not exist."""

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """Bytes ``[start, end)`` of an object, fewer if it ends before. Raises FileNotFoundError."""

    def get_many(self, paths: Sequence[str]) -> list[bytes | None]:
        """Contents of several objects, in one round."""

    def create(self, path: str, data: bytes) -> bool:
        """Stores an object unless one exists, and tests if it then holds `data`.

        False means that another writer was faster. If the answer of the storage was lost, the object is read back.
        """

    def create_many(self, items: Mapping[str, bytes]) -> list[bool]:
        """Stores several objects as `create` does, in one round. Some may be stored if this raises."""

    def put(self, path: str, data: bytes) -> None:
        """Stores an object, or replaces its content. Of several writers the last one wins."""

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """Objects whose path begins with `prefix` and is greater than `after`, sorted by path."""

    def copy_many(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Copies objects (from, to) without reading them, in one round. An existing target is replaced."""

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes objects. A missing one is no error."""

    def options(self) -> dict[str, str]:
        """Settings by which delta-rs and engines reach the storage, with credentials that are valid now."""

    def sync(self, paths: Iterable[str]) -> None:
        """Makes objects that an engine or another program wrote survive a power cut.

        Raises FileNotFoundError if one is missing on a disk; an object store has nothing to do.
        """
