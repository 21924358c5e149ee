"""Versions of a Delta source that remove files. Each row of the table is still read exactly once.

A version that removes files usually also adds files. A *compaction* (OPTIMIZE) only moves the same rows to other files.
If none of its removed files was read, its added files are read instead. If some of its removed files were read, the
unread removed files are still read, as long as they exist.

DELETE, UPDATE, MERGE and an overwrite remove rows. Their added files mix rewritten old rows with new rows, which cannot
be distinguished. So all files that were rewritten into each other, also by compactions, are handled as one group.

* If the table still holds every file of the group that was read, rows only moved before they were read. The present
  files of the group are new.
* Otherwise the group is a *removal*: windows contain events that the table no longer holds. All earlier files are read
  first. Then a rerun replaces the files that are gone by the present files, and recomputes the windows of both in one
  batch. No event is lost or counted twice.

`source.removals` decides who starts the rerun. With "stop" the operator starts it, and the message has the command.
With "rerun" the run itself starts it. With "skip" the run ignores the version.

Successive versions that remove rows are handled as one removal. So a DELETE that a RESTORE has undone has no effect.

A compaction may merge unread files with files that were read. If VACUUM then deletes the unread files, no file holds
only unread rows. This is a removal too, and only its rerun reads the unread rows. The same holds if
the files that replace removed files were themselves compacted and deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windowlib.model.rerun import TimeRange
from windowlib.source.delta.rewritten import RewrittenFiles, descendants, removed_files, rewritten_files
from windowlib.source.delta.source import version_of
from windowlib.source.listed import ListedFile, SourceListing, TableVersion
from windowlib.source.marker import Marker

if TYPE_CHECKING:
    from windowlib.definition.toml.source import Source

Spans = Mapping[str, TimeRange | None]  # by path of a read file: the time range of its admitted events


@dataclass(frozen=True, slots=True)
class Removal:
    """Versions `first` to `last`, which remove files whose events are in windows.

    gone:         paths of the files that were read and are gone
    fresh:        the files that replace the files that are gone
    has_vectors:  true if deletion vectors delete rows in some files
    removes_rows: false if the versions only moved already read rows into a file with unread rows, and the own files
                  of the unread rows were deleted afterwards
    lost:         paths of the deleted files of unread rows
    aside:        paths of files of the group that were set aside
    """

    first: TableVersion
    last: int
    gone: frozenset[str]
    fresh: tuple[ListedFile, ...]
    has_vectors: bool = False
    removes_rows: bool = True
    lost: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Arrived:
    """Listing of a source for a pipeline: the files to read, and the removal that follows them.

    since: as in `SourceListing`
    aside: the files that an operator has set aside
    up_to: the version of a Delta table up to which every version is read, once `files` are read
    """

    files: Sequence[ListedFile]
    removal: Removal | None = None
    since: Marker | None = None
    aside: Set[str] = frozenset()
    up_to: int | None = None


def arrived(source: Source, listed: SourceListing, spans: Callable[[], Spans], aside: Collection[str] = ()) -> Arrived:
    """Decides how to handle each version that removes files.

    spans: returns the time ranges of read files; called only if a version removes files
    aside: the files that an operator has set aside
    """
    has_moved = any(version.removed for version in listed.versions)
    table = _Table(source, listed, spans() if has_moved else {}, {*aside})
    walk = _walk(table, passing=source.removals == "skip")
    if walk.removal is None:
        return _at_once(table) if table.lost(walk.pending) else table.all_of(walk)
    before = _before(table, walk, walk.removal, walk.removal.first.number)
    is_over = table.lost(file.path for file in before.files) or not table.holds(walk.removal.fresh)
    if walk.removal.has_vectors or is_over:
        at_once = _at_once(table)
        if at_once.removal is None or not at_once.removal.has_vectors:
            return at_once
    return before


@dataclass(frozen=True, slots=True)
class _Table:
    """Listing of a table since a cursor, with the files that were read and the files that were set aside."""

    source: Source
    listed: SourceListing
    read: Spans
    aside: Set[str]

    @property
    def versions(self) -> Sequence[TableVersion]:
        return self.listed.versions

    def holds(self, files: Iterable[ListedFile]) -> bool:
        """Tests if the storage still has all these files."""
        return None not in self.source.store.sizes([file.path for file in files])

    def lost(self, pending: Iterable[str]) -> list[str]:
        """Pending files that the table no longer holds and that are deleted from the storage."""
        removed = removed_files(self.versions) - self.aside
        may_be_lost = [path for path in pending if path in removed]
        sizes = self.source.store.sizes(may_be_lost)
        return [path for path, size in zip(may_be_lost, sizes, strict=True) if size is None]

    def all_of(self, walk: _Walk) -> Arrived:
        newest = self.versions[-1].number if self.versions else None
        return Arrived([*walk.pending.values()], since=self.listed.since, aside=self.aside, up_to=newest)


@dataclass(slots=True)
class _Walk:
    """Walk over the versions of a table, in order.

    pending: unread files to read
    ever:    all files that were ever pending
    passed:  removals that were skipped
    removal: the removal that ended the walk
    touched: all files in the group of that removal
    """

    pending: dict[str, ListedFile]
    ever: set[str]
    passed: list[TableVersion] = field(default_factory=list)
    removal: Removal | None = None
    touched: Set[str] = frozenset()

    def arrive(self, files: Iterable[ListedFile], read: Collection[str]) -> None:
        self.pending = {file.path: file for file in files if file.path not in read} | self.pending
        self.ever |= self.pending.keys()

    def replace(self, gone: Collection[str], fresh: Iterable[ListedFile], number: int) -> None:
        """Replaces the pending files in `gone` by `fresh`.

        The fresh files take the position of the first replaced file, or the position of version `number` if none was
        pending.
        """
        replaced = [self.pending.pop(path) for path in [*self.pending] if path in gone]
        place = min((file.order[0] for file in replaced), default=number)
        self.pending |= {file.path: replace(file, order=(place, file.path)) for file in fresh}


def _walk(table: _Table, *, passing: bool) -> _Walk:
    """Walks to the next removal. With `passing`, skips removals and walks to the last version."""
    walk, done = _Walk({}, set()), 0
    walk.arrive(table.listed.files, table.read)
    while done < len(table.versions) and walk.removal is None:
        version = table.versions[done]
        if version.removes_rows:
            done += _take_removing(table, walk, done, passing=passing)
            continue
        if version.removed:
            _take_compaction(table, walk, done)
        walk.arrive(version.arrived, table.read)
        done += 1
    return walk


def _take_compaction(table: _Table, walk: _Walk, at: int) -> None:
    """Replaces the pending files that a compaction removed by the files that it added.

    Does nothing unless all removed files are unread, or files that were made from the removed files have been read.
    """
    version = table.versions[at]
    if version.removed.isdisjoint(walk.pending):
        return
    later = (entry for entry in table.versions[at:] if not entry.changes_rows)
    has_begun = bool(table.read) and not table.read.keys().isdisjoint(descendants(version.removed, later))
    is_unread = version.removed <= walk.pending.keys() and version.removed.isdisjoint(table.aside)
    if has_begun or is_unread:
        fresh = [file for file in version.added if file.path not in table.read]
        walk.replace(version.removed, fresh, version.number)


def _take_removing(table: _Table, walk: _Walk, at: int, *, passing: bool) -> int:
    """Handles a version that removes rows, with its group. Returns the number of versions in the group."""
    group = _group(table.versions[at:])
    rewritten = _rewritten_files(table, walk, group, at + len(group))
    if passing and len(group) > 1 and rewritten.removes(table.read):
        group = group[:1]
        rewritten = _rewritten_files(table, walk, group, at + 1)
    if not rewritten.removes(table.read):
        walk.replace(rewritten.touched, rewritten.fresh(table.read), group[0].number)
    elif passing:
        walk.passed.append(group[0])
    else:
        gone, fresh = rewritten.gone(table.read), rewritten.fresh(table.read)
        walk.removal = Removal(group[0], group[-1].number, gone, fresh, rewritten.has_vectors)
        walk.touched = rewritten.touched
    return len(group)


def _rewritten_files(table: _Table, walk: _Walk, seeds: Sequence[TableVersion], end: int) -> RewrittenFiles:
    last = table.versions[end - 1].number
    return rewritten_files(table.source, seeds, table.versions[:end], {*table.read, *walk.ever}, last)


def _group(versions: Sequence[TableVersion]) -> list[TableVersion]:
    """Returns the first version, which removes rows, and all versions before the next that only adds new files."""
    group, removed = [versions[0]], {*versions[0].removed}
    for version in versions[1:]:
        if version.arrived and not any(file.path in removed for file in version.added):
            break
        group.append(version)
        removed |= version.removed
    return group


def _at_once(table: _Table) -> Arrived:
    """Handles all versions as a single removal.

    It covers the files that are gone after the last version, and the lost files.
    """
    walk, skips = _walk(table, passing=True), table.source.removals == "skip"
    lost, passed = table.lost(walk.pending), [] if skips else walk.passed
    seeds = [version for version in table.versions if version in passed or not version.removed.isdisjoint(lost)]
    if not seeds:
        return table.all_of(walk)
    rewritten = _rewritten_files(table, walk, seeds, len(table.versions))
    aside = [] if passed else sorted(table.aside & (rewritten.touched - rewritten.live.keys()))
    if not rewritten.removes(table.read) and not aside:
        walk.replace(rewritten.touched, rewritten.fresh(table.read), seeds[0].number)
        return table.all_of(walk)
    walk.touched = rewritten.touched
    gone, fresh, last = rewritten.gone(table.read), rewritten.fresh(table.read), table.versions[-1].number
    whole = Removal(seeds[0], last, gone, fresh, rewritten.has_vectors, bool(passed), tuple(lost), tuple(aside))
    return _before(table, walk, whole, seeds[0].number)


def _before(table: _Table, walk: _Walk, removal: Removal, version: int) -> Arrived:
    """Files to read before a removal.

    `up_to` stays before `version`, so the removal's own files are listed again until its rerun is done. Omits a pending
    file if a file that was made from the pending file has been read.
    """

    def is_read_first(file: ListedFile) -> bool:
        if file.path not in walk.touched:
            return True
        elsewhere = descendants([file.path], table.versions) - {file.path}
        return table.holds([file]) and table.read.keys().isdisjoint(elsewhere)

    first = {file.path: file for file in walk.pending.values() if is_read_first(file)}
    later = [file.order[0] for path, file in walk.pending.items() if path not in first]
    return Arrived([*first.values()], removal, aside=table.aside, up_to=min([version, *later]) - 1)


def compacted(source: Source, version: int, read: Spans, missing: Collection[str]) -> Removal | None:
    """Removal that replaces `missing` files by files of a version, if rows only moved. The `missing` files were read.

    Returns None if the version still holds a missing file, if the log does not show its removal, or if rows were
    removed. The rows of the missing files are lost then.
    """
    versions, looked_for, number = list[TableVersion](), {*missing}, version
    while looked_for and (entry := version_of(source, number)):
        versions.insert(0, entry)
        looked_for -= entry.removed
        number -= 1
    if looked_for:
        return None
    seeds = [entry for entry in versions if entry.removed & {*missing}]
    rewritten = rewritten_files(source, seeds, versions, read, version)
    if rewritten.changes_rows or rewritten.has_vectors or any(path in rewritten.live for path in missing):
        return None
    return Removal(seeds[0], version, rewritten.gone(read), rewritten.fresh(read))
