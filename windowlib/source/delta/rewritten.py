"""Groups of files that the versions of a Delta table rewrote into each other.

A version that removes files writes their rows into its added files. There, old rows cannot be distinguished from new
rows. So a group has all files that share a version, directly or through other files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowlib.source.delta.source import files_at, version_of
from windowlib.source.listed import ListedFile, TableVersion

if TYPE_CHECKING:
    from windowlib.definition.toml.source import Source


@dataclass(frozen=True, slots=True)
class RewrittenFiles:
    """Group of files that versions rewrote into each other.

    touched:      paths of all files of the group
    live:         the files of the group that the table holds after the last version, by path
    has_vectors:  true if deletion vectors delete rows in some live files
    changes_rows: false if all versions of the group only moved rows to other files
    """

    touched: Set[str]
    live: Mapping[str, ListedFile]
    has_vectors: bool
    changes_rows: bool

    def gone(self, read: Collection[str]) -> frozenset[str]:
        """Paths of the group's files that were read and that the table no longer holds."""
        return frozenset(path for path in read if path in self.touched and path not in self.live)

    def fresh(self, read: Collection[str]) -> tuple[ListedFile, ...]:
        """Files of the group that the table holds and that were not read."""
        return tuple(file for path, file in self.live.items() if path not in read)

    def removes(self, read: Mapping[str, object]) -> bool:
        """Tests if rows that were read are gone from the table.

        A removed file without events (None in `read`) counts only if all versions of the group just moved rows.
        """
        gone = self.gone(read)
        return self.has_vectors or any(read[path] for path in gone) or bool(gone and not self.changes_rows)


def rewritten_files(
    source: Source,
    seeds: Sequence[TableVersion],
    versions: Sequence[TableVersion],
    known_files: Collection[str],
    last: int,
) -> RewrittenFiles:
    """Group of all files that the files of the `seeds` were made from or rewritten into.

    A file that is not in `known_files` was added by a version before the cursor (a compaction, or a skipped version).
    The log is then read back to that version. If the log no longer has that version, the group is the whole table.
    """
    earlier = min(entry.number for entry in versions)
    versions, settled = list(versions), {*known_files}
    while True:
        touched, joined = _closure(seeds, rewriting_versions(versions))
        unknown = _files_before(joined) - settled
        while unknown:
            earlier -= 1
            if (version := version_of(source, earlier)) is None:
                whole = {file.path: file for file in files_at(source, last)}
                return RewrittenFiles({*whole, *known_files}, whole, has_vectors=False, changes_rows=True)
            versions.insert(0, version)
            if version.removed:
                if version.touched & touched:
                    break
            else:
                unknown -= version.touched
                settled |= version.touched  # added and never read, since they were set aside
        else:
            break
    live: dict[str, ListedFile] = {}
    vectors = set[str]()
    for version in joined:
        for path in version.removed:
            live.pop(path, None)
        live |= {file.path: file for file in version.added}
        vectors = (vectors - version.removed) | version.vectors
    return RewrittenFiles(touched, live, bool(vectors), any(entry.removes_rows for entry in joined))


def _files_before(versions: Sequence[TableVersion]) -> set[str]:
    """Files that the versions, oldest first, removed and had not added. RESTORE may add such a file again."""
    earlier, added = set[str](), set[str]()
    for version in versions:
        earlier |= version.removed - added
        added |= version.touched
    return earlier


def _closure(seeds: Sequence[TableVersion], versions: Sequence[TableVersion]) -> tuple[set[str], list[TableVersion]]:
    """Returns the files of the `seeds` and of all versions linked to them, and the linked versions.

    Two versions are linked if they share a file, directly or through other versions.
    """
    touched = {path for version in seeds for path in version.touched}
    left, joined = [(version, version.touched) for version in versions], set[int]()
    while True:
        others = []
        for version, files in reversed(left):  # alternating directions follow a long chain in one pass
            if files.isdisjoint(touched):
                others.append((version, files))
            else:
                touched |= files
                joined.add(version.number)
        if len(others) == len(left):
            return touched, [version for version in versions if version.number in joined]
        left = others


def descendants(paths: Collection[str], versions: Iterable[TableVersion]) -> set[str]:
    """Files into which the versions rewrote the given files, directly or through other files. Versions are oldest
    first.
    """
    sources, results = {*paths}, set[str]()
    for version in versions:
        if not version.removed.isdisjoint(sources):
            results |= {file.path for file in version.added}
            sources |= results
    return results


def rewriting_versions(versions: Sequence[TableVersion]) -> list[TableVersion]:
    """Versions that remove files, or that add removed files again."""
    gone, matches = set[str](), list[TableVersion]()
    for version in versions:
        if version.removed or any(file.path in gone for file in version.added):
            matches.append(version)
        gone |= version.removed
    return matches


def removed_files(versions: Iterable[TableVersion]) -> set[str]:
    """Files that versions, oldest first, removed and did not add again."""
    gone = set[str]()
    for version in versions:
        gone = (gone | version.removed) - {file.path for file in version.added}
    return gone
