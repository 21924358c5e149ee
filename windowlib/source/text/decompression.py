"""Content of a text file of the source: decompressed, and decoded from its encoding."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import pyarrow as pa

from windowlib.plans import names
from windowlib.plans.functions import F
from windowlib.source.listed import SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHUNK_BYTES = 1 << 20
NUMBER = r"([0-9]+)\.txt$"  # sequence number in the name of a copy, from 1


@contextmanager
def opened(path: Path) -> Iterator[pa.NativeFile]:
    """Opens a text file, decompressed. Raises `SourceError` if it cannot be decompressed."""
    try:
        with pa.input_stream(path, compression="detect") as stream:
            yield stream
    except OSError as error:
        if error.errno is not None:
            raise
        raise SourceError(
            f"{path} cannot be decompressed ({error}): it is cut off, damaged, or not compressed at all. Repair it, or"
            " set it aside with windowlib set-aside"
        ) from error


def chunks(path: Path) -> Iterator[bytes]:
    """Decompressed content of a file, in pieces."""
    with opened(path) as stream:
        yield from iter(lambda: stream.read(CHUNK_BYTES), b"")


def content(path: Path) -> bytes:
    """Decompressed content of a file."""
    return b"".join(chunks(path))


@contextmanager
def decoded(path: Path, encoding: str, skip_lines: int = 0) -> Iterator[TextIO]:
    """Opens a decompressed text file after `skip_lines` lines, without a byte order mark.

    Bytes that cannot be decoded become U+FFFD. Line breaks stay as they are.
    """
    with opened(path) as stream:
        whole = "utf-8-sig" if encoding == "UTF-8" else encoding
        text = io.TextIOWrapper(stream, encoding=whole, errors="replace", newline="")
        for _ in range(skip_lines):
            text.readline()
        yield text


def texts(path: Path, encoding: str, skip_lines: int = 0) -> Iterator[str]:
    """Yields the decoded content of a file in pieces, after `skip_lines` lines."""
    with decoded(path, encoding, skip_lines) as text:
        yield from iter(lambda: text.read(CHUNK_BYTES), "")


def copies(paths: Sequence[str], encoding: str, folder: Path, skip_lines: int = 0) -> list[Path]:
    """Copies files into a folder as uncompressed UTF-8; the copy of the first file is `1.txt`."""
    folder.mkdir(parents=True, exist_ok=True)
    copied_to = [folder / f"{number}.txt" for number, _ in enumerate(paths, 1)]
    for path, copy in zip(paths, copied_to, strict=True):
        with copy.open("wb") as file:
            for piece in texts(Path(path), encoding, skip_lines):
                file.write(piece.encode())
    return copied_to


def of_originals(copied: DataFrame, paths: Sequence[str]) -> DataFrame:
    """Replaces the URI of a copy in SOURCE_FILE by the URI of its original in `paths`."""
    number = F.regexp_extract(names.SOURCE_FILE, NUMBER, 1).cast("int")
    uris = F.array(*(F.lit(Path(path).as_uri()) for path in paths))
    return copied.withColumn(names.SOURCE_FILE, F.element_at(uris, number))
