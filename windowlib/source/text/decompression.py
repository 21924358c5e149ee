"""Content of a text file of the source: decompressed, and decoded from its encoding."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from posixpath import splitext
from typing import TYPE_CHECKING, TextIO

import pyarrow as pa

from windowlib.ledger.rows import SourceFile
from windowlib.plans import names
from windowlib.plans.functions import F
from windowlib.source.listed import SourceError
from windowlib.source.uris import uri_of
from windowlib.storage import object_file
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHUNK_BYTES = 1 << 20
PACKED = {".gz": "gzip", ".bz2": "bz2"}
"""Compressions by the ending of a file's name."""
READ_BYTES = 4 << 20  # of one request
NUMBER = r"([0-9]+)\.txt$"  # sequence number in the name of a copy, from 1


@contextmanager
def opened(store: Store, file: SourceFile) -> Iterator[pa.NativeFile]:
    """Opens a text file, decompressed. Raises `SourceError` if it cannot be decompressed."""
    place = object_file.opened(store, file.path, file.size_bytes)
    try:
        with pa.input_stream(
            io.BufferedReader(place, READ_BYTES), compression=PACKED.get(splitext(file.path)[1])
        ) as stream:
            yield stream
    except OSError as error:
        if error.errno is not None:
            raise
        raise SourceError(
            f"{place.address} cannot be decompressed ({error}): it is cut off, damaged, or not compressed at all."
            " Repair it, or set it aside with windowlib set-aside"
        ) from error


def chunks(store: Store, file: SourceFile) -> Iterator[bytes]:
    """Decompressed content of a file, in pieces."""
    with opened(store, file) as stream:
        yield from iter(lambda: stream.read(CHUNK_BYTES), b"")


def content(store: Store, file: SourceFile) -> bytes:
    """Decompressed content of a file."""
    return b"".join(chunks(store, file))


@contextmanager
def decoded(store: Store, file: SourceFile, encoding: str, skip_lines: int = 0) -> Iterator[TextIO]:
    """Opens a decompressed text file after `skip_lines` lines, without a byte order mark.

    Bytes that cannot be decoded become U+FFFD. Line breaks stay as they are.
    """
    with opened(store, file) as stream:
        whole = "utf-8-sig" if encoding == "UTF-8" else encoding
        text = io.TextIOWrapper(stream, encoding=whole, errors="replace", newline="")
        for _ in range(skip_lines):
            text.readline()
        yield text


def texts(store: Store, file: SourceFile, encoding: str, skip_lines: int = 0) -> Iterator[str]:
    """Yields the decoded content of a file in pieces, after `skip_lines` lines."""
    with decoded(store, file, encoding, skip_lines) as text:
        yield from iter(lambda: text.read(CHUNK_BYTES), "")


def copies(
    store: Store, files: Sequence[SourceFile], encoding: str, staging: Store, skip_lines: int = 0
) -> list[SourceFile]:
    """Copies files to a store as uncompressed UTF-8. The copy of the first file is `1.txt`. Returns the copies."""
    named = {f"{number}.txt": file for number, file in enumerate(files, 1)}
    for name, file in named.items():
        staging.put(name, (piece.encode() for piece in texts(store, file, encoding, skip_lines)))
    sizes = zip(named.items(), staging.sizes([*named]), strict=True)
    return [replace(file, path=name, size_bytes=size or 0) for (name, file), size in sizes]


def of_originals(copied: DataFrame, store: Store, files: Sequence[SourceFile]) -> DataFrame:
    """Replaces the URI of a copy in SOURCE_FILE by the URI of its original."""
    number = F.regexp_extract(names.SOURCE_FILE, NUMBER, 1).cast("int")
    uris = F.array(*(F.lit(uri_of(store, file.path)) for file in files))
    return copied.withColumn(names.SOURCE_FILE, F.element_at(uris, number))
