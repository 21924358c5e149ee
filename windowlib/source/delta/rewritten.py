"""Files of a Delta table that were made of one another: what a version removes has become what it adds.

Which rows of those files are old ones and which are new cannot be known, so they belong together: all that share a
version with one another, directly or not.
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
    """Files whose rows changed places among one another, and those of them that the table holds in the end.

    `changes_rows` is false where all of their versions only put the same rows into other files.
    """

    touched: Set[str]
    live: Mapping[str, ListedFile]
    has_vectors: bool
    changes_rows: bool

    def gone(self, read: Collection[str]) -> frozenset[str]:
        """Those of the files that were read that the table holds no more."""
        return frozenset(path for path in read if path in self.touched and path not in self.live)

    def fresh(self, read: Collection[str]) -> tuple[ListedFile, ...]:
        """Those that it holds and that were not read."""
        return tuple(file for path, file in self.live.items() if path not in read)

    def removes(self, read: Mapping[str, object]) -> bool:
        """Whether the table does not hold any more what was read of them; a file without events (None) may go."""
        gone = self.gone(read)
        return self.has_vectors or any(read[path] for path in gone) or bool(gone and not self.changes_rows)


def together(
    source: Source, seeds: Sequence[TableVersion], versions: Sequence[TableVersion], known: Collection[str], last: int
) -> RewrittenFiles:
    """All that the files of some versions were made of or became, back to files that are `known`.

    Where a file is not known, it is one that a version before the cursor made (a compaction, or one that was passed
    over): the log is read back to that. Where it does not reach so far, all of the table counts.
    """
    earlier = min(one.number for one in versions)
    versions, settled = list(versions), {*known}
    while True:
        touched, joined = _closure(seeds, moving(versions))
        unknown = _from_before(joined) - settled
        while unknown:
            earlier -= 1
            if (version := version_of(source, earlier)) is None:
                whole = {file.path: file for file in files_at(source, last)}
                return RewrittenFiles({*whole, *known}, whole, has_vectors=False, changes_rows=True)
            versions.insert(0, version)
            if version.removed:
                if version.touched & touched:
                    break
            else:
                unknown -= version.touched
                settled |= version.touched  # added and never read: set aside
        else:
            break
    live: dict[str, ListedFile] = {}
    vectors = set[str]()
    for version in joined:
        for path in version.removed:
            live.pop(path, None)
        live |= {file.path: file for file in version.added}
        vectors = (vectors - version.removed) | version.vectors
    return RewrittenFiles(touched, live, bool(vectors), any(one.removes_rows for one in joined))


def _from_before(versions: Sequence[TableVersion]) -> set[str]:
    """The files that some versions, in order, found there: RESTORE may add one again that was there before."""
    found, made = set[str](), set[str]()
    for version in versions:
        found |= version.removed - made
        made |= version.touched
    return found


def _closure(seeds: Sequence[TableVersion], versions: Sequence[TableVersion]) -> tuple[set[str], list[TableVersion]]:
    """The files of some versions and of all that share one with them, directly or not; and those versions in order."""
    touched = {path for one in seeds for path in one.touched}
    left, joined = [(one, one.touched) for one in versions], set[int]()
    while True:
        others = []
        for one, files in reversed(left):  # back and forth: a long chain is followed in one go
            if files.isdisjoint(touched):
                others.append((one, files))
            else:
                touched |= files
                joined.add(one.number)
        if len(others) == len(left):
            return touched, [one for one in versions if one.number in joined]
        left = others


def heirs(paths: Collection[str], versions: Iterable[TableVersion]) -> set[str]:
    """The files that versions, oldest first, made of some files or of what these had become."""
    of, made = {*paths}, set[str]()
    for version in versions:
        if not version.removed.isdisjoint(of):
            made |= {file.path for file in version.added}
            of |= made
    return made


def moving(versions: Sequence[TableVersion]) -> list[TableVersion]:
    """Those that remove files, or add some again that were removed."""
    gone, found = set[str](), list[TableVersion]()
    for version in versions:
        if version.removed or any(file.path in gone for file in version.added):
            found.append(version)
        gone |= version.removed
    return found


def removed_in_the_end(versions: Iterable[TableVersion]) -> set[str]:
    """The files that versions, oldest first, removed and did not add again."""
    gone = set[str]()
    for version in versions:
        gone = (gone | version.removed) - {file.path for file in version.added}
    return gone
