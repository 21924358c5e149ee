"""Identity of a source file: its content, as a SHA-256, and the folder values that the definition reads.

A file with an unchanged name, size and modification time counts as unchanged, and its content is not read. Otherwise
its content decides. If two files have the same content, their folder values decide: for a definition that reads
`store`, files below `store=1` and `store=2` are two inputs. `_contents.json` keeps computed checksums. So if an archive
is unpacked again, only the first plan after that reads its files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.ledger.rows import SourceFile
from windowlib.plans.partitions import folder_values
from windowlib.storage.at_once import at_once
from windowlib.storage.object_file import pieces
from windowlib.storage.store import Store

FILE = "_contents.json"
LARGEST_BYTES = 1 << 30  # a larger file has no checksum: reading it twice would delay its batch
THREADS = 2


@dataclass(frozen=True, slots=True)
class FileState:
    """State of a source file at one moment. `path` is relative to the source; `sha256` is None if not known.

    >>> FileState("a", 1, 2) == FileState("a", 1, 2, "0f")
    True
    """

    path: str
    size_bytes: int
    modified_ns: int
    sha256: str | None = field(default=None, compare=False)

    @property
    def identity(self) -> tuple[str, int, int]:
        return self.path, self.size_bytes, self.modified_ns

    @property
    def key(self) -> str:
        return f"{self.path}|{self.size_bytes}|{self.modified_ns}"


@dataclass(slots=True)
class Contents:
    """Checksums of the source's files, computed on demand. On exit, the context manager keeps them in `pipeline`.

    source:   storage of the source's files
    pipeline: storage of the pipeline
    columns:  names of the columns in use, as in the files, in lower case
    """

    source: Store
    pipeline: Store
    columns: frozenset[str] = frozenset()
    never_changes: bool = False
    _stored: dict[str, str] | None = None  # those of earlier plans, once they are needed
    _needed: dict[str, str] = field(default_factory=dict)  # the checksums to keep
    _read: bool = False

    @classmethod
    def of(cls, source: Source, uses: Uses, pipeline: Store) -> Contents:
        """Checksums for a pipeline. A file of a Delta table never changes under its name."""
        columns = frozenset(source.in_files(name).casefold() for name in uses.columns)
        return cls(source.store, pipeline, columns, source.format == "delta")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._read:
            with suppress(OSError):
                self.pipeline.put(FILE, json.dumps(self._needed, sort_keys=True).encode())

    def identity(self, path: str, sha256: str) -> Hashable:
        """Identity of an input: its content, and its folder values for columns in use."""
        values = ((name.casefold(), value) for name, value in folder_values(path).items())
        return sha256, frozenset((name, value) for name, value in values if name in self.columns)

    def has_changed(self, now: FileState, before: FileState) -> bool:
        """Tests if the content of a file differs from `before`; the file may have been renamed since."""
        return replace(now, path=before.path) != before and not self.same(now, before)

    def must_compare(self, now: FileState, before: FileState) -> bool:
        """Tests if only the content of a file can tell whether it differs from `before`."""
        return replace(now, path=before.path) != before and now.size_bytes == before.size_bytes and bool(before.sha256)

    def same(self, now: FileState, before: FileState) -> bool:
        """Tests if a file has the same content as `before`; false if either content is not known."""
        if now.size_bytes != before.size_bytes or before.sha256 is None or self.never_changes:
            return False
        return self.of_file(now) == before.sha256

    def of_file(self, now: FileState) -> str | None:
        """SHA-256 of a file; None for a file that is too large, cannot be read, or never changes."""
        self.read([now])
        return self._needed.get(now.key)

    def read(self, states: Iterable[FileState]) -> None:
        """Computes the checksums of several files at once, as far as they are not known."""
        wanted = {state.key: state for state in states if not self.never_changes and state.key not in self._needed}
        if wanted and self._stored is None:
            self._stored = self._kept()
        stored = self._stored or {}
        self._needed |= {key: stored[key] for key in wanted if key in stored}
        unread = [state for key, state in wanted.items() if key not in stored]
        digests = at_once(lambda state: checksum(self.source, state.path, state.size_bytes), unread)
        computed = {state.key: digest for state, digest in zip(unread, digests, strict=True) if digest}
        self._read = self._read or bool(computed)
        self._needed |= computed

    def _kept(self) -> dict[str, str]:
        """Checksums that an earlier plan has kept. They are only a cache: without it, files are read again."""
        with suppress(OSError, ValueError):
            kept: dict[str, str] = json.loads(self.pipeline.get(FILE) or b"{}")
            return kept
        return {}


@dataclass(frozen=True, slots=True)
class Checksums:
    """Checksums of a batch's files, computed in threads while the engine works."""

    _by_path: dict[str, Future[str | None]]

    @classmethod
    def started(cls, source: Source, files: Sequence[SourceFile]) -> Checksums:
        """Starts to compute the checksums. Reads no file of a Delta source, since these files never change."""
        if source.format == "delta":
            return cls({})
        store, pool = source.store, ThreadPoolExecutor(THREADS, thread_name_prefix="windowlib-checksums")
        futures = {file.path: pool.submit(checksum, store, file.path, file.size_bytes) for file in files}
        pool.shutdown(wait=False)
        return cls(futures)

    def of(self, path: str) -> str | None:
        """Waits for the SHA-256 of a file; None if the file is too large, unreadable or in a Delta table."""
        return self._by_path[path].result() if path in self._by_path else None


def checksum(store: Store, path: str, size_bytes: int) -> str | None:
    """SHA-256 of a file's content; None for a file that is too large, is shorter by now, or cannot be read."""
    if size_bytes > LARGEST_BYTES:
        return None
    digest, left = hashlib.sha256(), size_bytes
    try:
        for piece in pieces(store, path, size_bytes):
            digest.update(piece)
            left -= len(piece)
    except OSError:
        return None
    return None if left else digest.hexdigest()
