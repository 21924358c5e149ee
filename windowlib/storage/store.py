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

    An object appears whole or not at all. Objects that `create` and `create_many` have acknowledged survive a power
    failure. Files of engines survive a power failure after `sync`. Methods raise OSError if the storage refuses.
    """

    def create(self, path: str, data: bytes) -> bool:
        """Stores an object unless the path already has an object. Tests if the stored object holds `data`.

        False means that another writer was faster. If the answer of the storage was lost, the object is read back.
        """

    def create_many(self, items: Mapping[str, bytes]) -> list[bool]:
        """Stores several objects as `create` does, in one round. Some may be stored if this raises."""

    def sync(self, paths: Iterable[str]) -> None:
        """Syncs objects to durable storage, so that they survive a power failure. An engine or another program wrote
        them.

        On a disk, raises FileNotFoundError if an object is missing. On an object store, does nothing.
        """
