"""Contract of a storage: bytes at names below a URL.

The contract holds what a disk and an object store can both promise. It has no rename, no folders and no written
modification time.

A *round* is a set of requests that are sent at once. It takes as long as its slowest request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol


class Store(Protocol):
    """Stored objects below a URL. Paths are relative to it, with `/` between their parts.

    An object appears whole or not at all. What `create` and `create_many` have acknowledged survives a power cut; files
    of engines survive it after `sync`. Methods raise OSError if the storage refuses.
    """

    def create(self, path: str, data: bytes) -> bool:
        """Stores an object unless one exists, and tests if it then holds `data`.

        False means that another writer was faster. If the answer of the storage was lost, the object is read back.
        """

    def create_many(self, items: Mapping[str, bytes]) -> list[bool]:
        """Stores several objects as `create` does, in one round. Some may be stored if this raises."""

    def sync(self, paths: Iterable[str]) -> None:
        """Makes objects that an engine or another program wrote survive a power cut.

        Raises FileNotFoundError if one is missing on a disk; an object store has nothing to do.
        """
