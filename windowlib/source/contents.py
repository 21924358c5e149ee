"""Identity of a source file: its content, as a SHA-256, and the folder values that the definition reads.

Name, size and time identify an unchanged file without reading it. Where they disagree, the content decides. Of two
names with the same content, the folders decide too: `store=1` and `store=2` are two inputs for a definition that reads
`store`. Computed checksums are kept in `_contents.json`, so that a folder that was unpacked again is not read again by
every plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.plans.partitions import folder_values

FILE = "_contents.json"
LARGEST_BYTES = 1 << 30  # a larger file has no checksum: reading it once more would hold its batch up
THREADS = 2


@dataclass(frozen=True, slots=True)
class FileState:
    """A source file as it was at one moment. `path` is relative to the source; `sha256` None: not known.

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
    """The contents of the files of a source, read where they are asked for; left, it keeps what it has read.

    columns: the columns in use, by the files' names for them, in lower case
    """

    source: Path
    kept_in: Path
    columns: frozenset[str] = frozenset()
    never_changes: bool = False
    _known: dict[str, str] = field(default_factory=dict)
    _asked: dict[str, str] = field(default_factory=dict)  # so much of it as was asked for: what is kept
    _read: bool = False

    @classmethod
    def of(cls, source: Source, uses: Uses, root: Path) -> Contents:
        """Those of the source of the pipeline in `root`. A file of a Delta table never changes under its name."""
        columns = frozenset(source.in_files(name).casefold() for name in uses.columns)
        return cls(source.path, root / FILE, columns, source.format == "delta")

    def __enter__(self) -> Self:
        with suppress(OSError, ValueError):  # only a shortcut: without it, files are read again
            self._known = json.loads(self.kept_in.read_text(encoding="utf-8"))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._read and self.kept_in.parent.is_dir():
            with suppress(OSError):
                self.kept_in.write_text(json.dumps(self._asked, sort_keys=True), encoding="utf-8")

    def identity(self, path: str, sha256: str) -> Hashable:
        """Equal for two names of the same input: the content, and the values of the folders that are read."""
        values = ((name.casefold(), value) for name, value in folder_values(path).items())
        return sha256, frozenset((name, value) for name, value in values if name in self.columns)

    def has_changed(self, now: FileState, before: FileState) -> bool:
        """Tests if a file that was read, and may have another name now, has another content now."""
        return replace(now, path=before.path) != before and not self.same(now, before)

    def same(self, now: FileState, before: FileState) -> bool:
        """Whether the file that is there has the content of the one that was read; False where that is not known."""
        if now.size_bytes != before.size_bytes or before.sha256 is None or self.never_changes:
            return False
        return self.of_file(now) == before.sha256

    def of_file(self, now: FileState) -> str | None:
        """The SHA-256 of a file that is there; None where it is not known."""
        if now.key not in self._asked:
            found = self._known.get(now.key)
            if found is None:
                if self.never_changes or (found := checksum(self.source / now.path)) is None:
                    return None
                self._read = True
            self._asked[now.key] = found
        return self._asked[now.key]


@dataclass(frozen=True, slots=True)
class Checksums:
    """The checksums of a batch's files, computed in threads while the engine works."""

    _of: dict[str, Future[str | None]]

    @classmethod
    def started(cls, source: Source, paths: Sequence[str]) -> Checksums:
        """Begins to read the files; none of a Delta source, whose files never change."""
        if source.format == "delta":
            return cls({})
        pool = ThreadPoolExecutor(THREADS, thread_name_prefix="windowlib-checksums")
        found = {path: pool.submit(checksum, source.path / path) for path in paths}
        pool.shutdown(wait=False)
        return cls(found)

    def of(self, path: str) -> str | None:
        """The SHA-256 of a file, once it is known; None where it is not kept."""
        return self._of[path].result() if path in self._of else None


def checksum(path: Path) -> str | None:
    """The SHA-256 of a file's content; None of one that is too large or cannot be read."""
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
