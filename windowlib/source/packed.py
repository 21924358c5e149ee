"""The bytes of a source file of text, unpacked where it is packed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from windowlib.source.found import SourceError

CHUNK_BYTES = 1 << 20


@contextmanager
def opened(path: Path) -> Iterator[pa.NativeFile]:
    """A file of text to read. Raises `SourceError` where it is packed and cannot be unpacked to its end."""
    try:
        with pa.input_stream(path, compression="detect") as stream:
            yield stream
    except OSError as error:
        if error.errno is not None:
            raise
        raise SourceError(
            f"{path} cannot be unpacked ({error}): it is cut off, damaged, or not packed at all. Repair it, or set"
            " it aside with windowlib set-aside"
        ) from error


def chunks(path: Path) -> Iterator[bytes]:
    """All of it, in pieces."""
    with opened(path) as stream:
        yield from iter(lambda: stream.read(CHUNK_BYTES), b"")


def content(path: Path) -> bytes:
    """All of it."""
    return b"".join(chunks(path))
