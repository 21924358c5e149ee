"""A file of the source as it is found, before any batch has read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from windowlib.model.errors import WindowError
from windowlib.plans.partitions import values_of
from windowlib.source.contents import FileState
from windowlib.source.marker import Marker


class SourceError(WindowError):
    """The source cannot be read as the definition says."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of the source, not yet numbered. `order` sorts by arrival: time or version, then name.

    `partition_values` is as in `SourceFile`.
    """

    path: str
    size_bytes: int
    modified_ns: int
    order: tuple[int, str]
    partition_values: str | None = None

    @property
    def values(self) -> dict[str, str | None]:
        """The texts of its partition columns, by column."""
        return values_of(self.path, self.partition_values)

    @classmethod
    def there(cls, folder: Path, path: str) -> ListedFile:
        """A file that is in a source folder."""
        stat = (folder / path).stat()
        return cls(path, stat.st_size, stat.st_mtime_ns, (stat.st_mtime_ns, path))

    @property
    def state(self) -> FileState:
        """What differs in a changed file, without reading it."""
        return FileState(self.path, self.size_bytes, self.modified_ns)


@dataclass(frozen=True, slots=True)
class TableVersion:
    """What one version of a Delta table did: the files that it added, the paths of those that it removed.

    `changes_rows` is false where it only put the same rows into other files. `vectors`: the files that it added of
    which some rows are marked as deleted, and still there. `values`: the partition values, as JSON, of removed files by
    path, where the log repeats them.
    """

    number: int
    operation: str
    user: str
    removed: frozenset[str]
    added: tuple[ListedFile, ...]
    changes_rows: bool = True
    vectors: frozenset[str] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def touched(self) -> frozenset[str]:
        """Every file that it added or removed."""
        return self.removed | {file.path for file in self.added}

    @property
    def removes_rows(self) -> bool:
        return self.changes_rows and bool(self.removed)

    @property
    def arrived(self) -> tuple[ListedFile, ...]:
        """The files with new rows, of a version that only added some."""
        return self.added if self.changes_rows and not self.removed else ()


@dataclass(frozen=True, slots=True)
class SourceListing:
    """What a source lists: files, and, of a Delta table, what its versions did since, oldest first.

    `since` is where a look at a folder began; None: everything is listed. `table` is the id of a Delta table.
    """

    files: Sequence[ListedFile]
    versions: Sequence[TableVersion] = ()
    since: Marker | None = None
    table: str | None = None
