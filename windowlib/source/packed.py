"""The bytes of a source file of text, unpacked where it is packed, and in UTF-8 where it is in another encoding."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from windowlib.source.found import SourceError

CHUNK_BYTES = 1 << 20
NUMBER = r"([0-9]+)\.json$"  # in the names of copies, from 1


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


def texts(path: Path, encoding: str) -> Iterator[str]:
    """All of it, in pieces, without a mark at the beginning; bytes that mean nothing are U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "UTF-8" else encoding)("replace")
    yield from map(decoder.decode, chunks(path))
    yield decoder.decode(b"", final=True)


def copies(paths: Sequence[str], encoding: str, folder: Path) -> list[Path]:
    """Copies of files in a folder, in UTF-8 and not packed, numbered in order; bytes that mean nothing are U+FFFD."""
    folder.mkdir(parents=True, exist_ok=True)
    made = [folder / f"{number}.json" for number, _ in enumerate(paths, 1)]
    for path, copy in zip(paths, made, strict=True):
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        with copy.open("wb") as file:
            for chunk in chunks(Path(path)):
                file.write(decoder.decode(chunk).encode())
            file.write(decoder.decode(b"", final=True).encode())
    return made
