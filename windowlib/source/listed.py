"""Listed files of a source and versions of a Delta table, before any batch has read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from windowlib.model.errors import WindowError
from windowlib.plans.partitions import values_of
from windowlib.source.contents import FileState
from windowlib.source.marker import Marker
from windowlib.storage.store import ObjectInfo, Store


class SourceError(WindowError):
    """The source cannot be read as the definition says."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """File of the source that has no sequence number yet.

    `order` sorts by arrival: time or version, then name. `partition_values` is as in `SourceFile`.
    """

    path: str
    size_bytes: int
    modified_ns: int
    order: tuple[int, str]
    partition_values: str | None = None

    @property
    def values(self) -> dict[str, str | None]:
        """Partition values of the file, as strings, by column."""
        return values_of(self.path, self.partition_values)

    @classmethod
    def of(cls, file: ObjectInfo) -> ListedFile:
        """A file of a folder, as its storage lists it."""
        return cls(file.path, file.size_bytes, file.modified_ns, (file.modified_ns, file.path))

    @property
    def state(self) -> FileState:
        """State of the file, without its checksum."""
        return FileState(self.path, self.size_bytes, self.modified_ns)


def existing(store: Store, paths: Sequence[str]) -> dict[str, ListedFile]:
    """Looks up files of a folder by their paths, in one round. Omits missing files."""
    return {file.path: ListedFile.of(file) for file in store.infos(paths) if file is not None}


@dataclass(frozen=True, slots=True)
class TableVersion:
    """Version of a Delta table: the files that it added, and the paths of the files that it removed.

    changes_rows: false if the version only moved the same rows to other files
    vectors:      paths of added files in which deletion vectors mark some rows as deleted
    values:       partition values of removed files, as JSON, by path; only of files for which the log repeats them
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
        """Paths of all files that the version added or removed."""
        return self.removed | {file.path for file in self.added}

    @property
    def removes_rows(self) -> bool:
        return self.changes_rows and bool(self.removed)

    @property
    def arrived(self) -> tuple[ListedFile, ...]:
        """Files with new rows; none for a version that removed files."""
        return self.added if self.changes_rows and not self.removed else ()


@dataclass(frozen=True, slots=True)
class SourceListing:
    """Listing of a source: its files and, for a Delta table, the versions after the cursor, oldest first.

    since: the marker from which a folder was listed; None for a full listing
    table: the id of a Delta table
    """

    files: Sequence[ListedFile]
    versions: Sequence[TableVersion] = ()
    since: Marker | None = None
    table: str | None = None
