"""Contract of a storage: bytes at names below a URL.

The contract holds what a disk and an object store can both promise. It has no rename, no folders and no written
modification time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Store(Protocol):
    """Stored objects below a URL. Paths are relative to it, with `/` between their parts.

    An object appears whole or not at all. An object that `create` has acknowledged survives a power failure. Files of
    engines survive a power failure after `sync`. Methods raise OSError if the storage refuses.
    """

    def create(self, path: str, data: bytes) -> bool:
        """Stores an object unless the path already has an object. Tests if the stored object holds `data`.

        False means that another writer was faster. If the answer of the storage was lost, the object is read back.
        """

    def sync(self, paths: Iterable[str]) -> None:
        """Makes files of an engine or another program survive a power failure.

        On a disk, raises FileNotFoundError if a file is missing. On an object store, does nothing.
        """
