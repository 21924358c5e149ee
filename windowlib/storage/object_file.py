"""A stored object as a file that is open for reading, for libraries that read files, or in pieces."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from windowlib.storage.store import Store

PIECE_BYTES = 8 << 20  # one request for most files, and little memory
SMALL_BYTES = 1 << 16  # Arrow reads as much to find a footer


@dataclass(slots=True)
class ObjectFile(io.RawIOBase):
    """The object `path`, whose size is known. Each `read` is one request, unless the file holds its whole `content`.

    >>> import tempfile; from pathlib import Path; from windowlib.storage.disk import Disk
    >>> store = Disk(Path(tempfile.mkdtemp())); store.put("a", b"0123456")
    >>> file = ObjectFile(store, "a", 7)
    >>> file.seek(-3, io.SEEK_END), file.read(2), file.tell(), file.read()
    (4, b'45', 6, b'6')
    """

    store: Store
    path: str
    size_bytes: int
    content: bytes | None = field(default=None, repr=False)
    _at: int = 0

    @property
    def address(self) -> str:
        """Address of the object, for engines and messages."""
        return f"{self.store.url}/{self.path}"

    def kept_if_small(self) -> ObjectFile:
        """The same file, with its content if it is small: for a reader that reads it several times."""
        if self.size_bytes > SMALL_BYTES:
            return self
        return replace(self, content=self.store.get_range(self.path, 0, self.size_bytes))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to a place relative to the start, the present place or the end. Returns the place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size_bytes}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """At most `size` bytes from the present place; all remaining bytes if it is negative or None."""
        end = self.size_bytes if size is None or size < 0 else min(self.size_bytes, self._at + size)
        if self._at >= end:
            return b""
        whole = self.content
        content = self.store.get_range(self.path, self._at, end) if whole is None else whole[self._at : end]
        self._at += len(content)
        return content

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any writable buffer
        """Fills a buffer with the next bytes. Returns their number."""
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


def opened(store: Store, path: str, size_bytes: int | None = None) -> ObjectFile:
    """Opens an object. Asks the storage for the size if it is not given. Raises FileNotFoundError."""
    size = store.sizes([path])[0] if size_bytes is None else size_bytes
    if size is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{store.url}/{path}")
    return ObjectFile(store, path, size)


def pieces(store: Store, path: str, size_bytes: int) -> Iterator[bytes]:
    """Content of an object whose size is known, in pieces of `PIECE_BYTES`. Each is one request."""
    for start in range(0, size_bytes, PIECE_BYTES):
        yield store.get_range(path, start, min(start + PIECE_BYTES, size_bytes))
