"""The bytes of a source file of text, unpacked where it is packed, and in UTF-8 where it is in another encoding."""

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
NUMBER = r"([0-9]+)\.txt$"  # in the names of copies, from 1


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


@contextmanager
def decoded(path: Path, encoding: str, skip_lines: int = 0) -> Iterator[TextIO]:
    """A file of text after its first lines, without a mark at the beginning; bytes that mean nothing are U+FFFD.

    Line breaks are as they are written.
    """
    with opened(path) as stream:
        whole = "utf-8-sig" if encoding == "UTF-8" else encoding
        text = io.TextIOWrapper(stream, encoding=whole, errors="replace", newline="")
        for _ in range(skip_lines):
            text.readline()
        yield text


def texts(path: Path, encoding: str, skip_lines: int = 0) -> Iterator[str]:
    """All of `decoded`, in pieces."""
    with decoded(path, encoding, skip_lines) as text:
        yield from iter(lambda: text.read(CHUNK_BYTES), "")


def copies(paths: Sequence[str], encoding: str, folder: Path, skip_lines: int = 0) -> list[Path]:
    """Copies of files in a folder, as `decoded`, in UTF-8 and not packed, numbered in order."""
    folder.mkdir(parents=True, exist_ok=True)
    made = [folder / f"{number}.txt" for number, _ in enumerate(paths, 1)]
    for path, copy in zip(paths, made, strict=True):
        with copy.open("wb") as file:
            for piece in texts(Path(path), encoding, skip_lines):
                file.write(piece.encode())
    return made


def of_originals(copied: DataFrame, paths: Sequence[str]) -> DataFrame:
    """Rows of `copies` as rows of the files at `paths`, by SOURCE_FILE."""
    number = F.regexp_extract(names.SOURCE_FILE, NUMBER, 1).cast("int")
    uris = F.array(*(F.lit(Path(path).as_uri()) for path in paths))
    return copied.withColumn(names.SOURCE_FILE, F.element_at(uris, number))
