"""Versions of a Delta source that remove files, and what becomes of those: each row of the table is read once.

A version that removes files adds others. One that only puts the same rows into other files (OPTIMIZE) is a
*compaction*: where none of the files that it removed was read, those that it added are read in their place. Where some
were, the others are read as they were, as long as they are there.

DELETE, UPDATE, MERGE and an overwrite remove rows. Which rows of what they add are old ones that were written again,
and which are new, cannot be known, so all files belong together that were made of one another, by compactions too.

* None of those that were read is gone: rows only changed places before they were read, and what is there has arrived.
* Else it is a *removal*: events are in windows that the table does not hold any more. Every file before it is read
  first. Then one rerun puts the files that are there in the place of those that are gone, and recomputes the windows of
  both, as one batch: no event is lost and none counts twice. `source.removals` says who asks for it: with "stop" an
  operator, who is given the command; with "rerun" the run itself. With "skip" the version is passed over.

Versions that follow one another and remove rows are taken together: where a delete was restored, nothing is left of it.

Where VACUUM has deleted files before they were read, which a compaction put together with others that were, no file
holds what is new alone. That is a removal too, of all that the log says, and only such a rerun reads it; so is one of
which the files in place of others were compacted and deleted in their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from typing import TYPE_CHECKING

from windowlib.definition.instants import time_of
from windowlib.model.rerun import TimeRange
from windowlib.model.times import floored_ms
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from windowlib.source import footers
from windowlib.source.columns.column_types import kind_of
from windowlib.source.columns.partition_values import is_value, types_of, value_of
from windowlib.source.delta.rewritten import RewrittenFiles, heirs, removed_in_the_end, together
from windowlib.source.delta.source import version_of
from windowlib.source.listed import ListedFile, SourceListing, TableVersion
from windowlib.source.marker import Marker

if TYPE_CHECKING:
    from windowlib.definition.toml.source import Source

Spans = Mapping[str, TimeRange | None]  # of each file that was read: from its first admitted event to its last


@dataclass(frozen=True, slots=True)
class Removal:
    """Versions up to `last` that remove files of windows: the files that are gone, by path, and those in their place.

    `has_vectors`: of some files only the rows that are marked as deleted are gone. Where it `removes_rows` not, rows
    that were read are in one file with others, whose own files, `lost`, are deleted; of these `aside` were set aside.
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
    """What a source lists, as a pipeline must take it: the files to read, and the removal that comes after them.

    `since` is as in `SourceListing`. `up_to`: the version of a Delta table up to which nothing is left once these are
    read.
    """

    files: Sequence[ListedFile]
    removal: Removal | None = None
    since: Marker | None = None
    up_to: int | None = None


def arrived(source: Source, listed: SourceListing, spans: Callable[[], Spans], aside: Collection[str] = ()) -> Arrived:
    """Settles what becomes of each version that removes files; `spans` are asked for only where there is one.

    `aside`: the files that an operator has set aside.
    """
    has_moved = any(version.removed for version in listed.versions)
    table = _Table(source, listed, spans() if has_moved else {}, {*aside})
    walk = _walk(table, passing=source.removals == "skip")
    if walk.removal is None:
        return _at_once(table) if table.lost(walk.pending) else table.all_of(walk)
    before = _before(table, walk, walk.removal, walk.removal.first.number)
    is_over = table.lost(file.path for file in before.files) or not all(table.holds(f) for f in walk.removal.fresh)
    if walk.removal.has_vectors or is_over:
        at_once = _at_once(table)
        if at_once.removal is None or not at_once.removal.has_vectors:
            return at_once
    return before


@dataclass(frozen=True, slots=True)
class _Table:
    """What a table lists since a cursor, what of its files was read, and which were set aside."""

    source: Source
    listed: SourceListing
    read: Spans
    aside: Set[str]

    @property
    def versions(self) -> Sequence[TableVersion]:
        return self.listed.versions

    def holds(self, file: ListedFile) -> bool:
        return (self.source.path / file.path).is_file()

    def lost(self, pending: Iterable[str]) -> list[str]:
        """Those of some files that the table holds no more and that were deleted before they were read."""
        removed = removed_in_the_end(self.versions) - self.aside
        return [path for path in pending if path in removed and not (self.source.path / path).is_file()]

    def all_of(self, walk: _Walk) -> Arrived:
        newest = self.versions[-1].number if self.versions else None
        return Arrived([*walk.pending.values()], since=self.listed.since, up_to=newest)


@dataclass(slots=True)
class _Walk:
    """Versions that were followed: the files that wait to be read then, none of which was, and all that ever did.

    Removals were `passed` over, or one of them stopped it.
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
        """Files come in the place of others, where the first of those was; or at a version."""
        replaced = [self.pending.pop(path) for path in [*self.pending] if path in gone]
        place = min((file.order[0] for file in replaced), default=number)
        self.pending |= {file.path: replace(file, order=(place, file.path)) for file in fresh}


def _walk(table: _Table, *, passing: bool) -> _Walk:
    """Follows the versions to the next removal; with `passing`, to the last version."""
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
    """Has what a compaction added read in the place of what it removed, if that was not read, or if some of it was."""
    version = table.versions[at]
    if version.removed.isdisjoint(walk.pending):
        return
    later = (one for one in table.versions[at:] if not one.changes_rows)
    has_begun = bool(table.read) and not table.read.keys().isdisjoint(heirs(version.removed, later))
    is_unread = version.removed <= walk.pending.keys() and version.removed.isdisjoint(table.aside)
    if has_begun or is_unread:
        fresh = [file for file in version.added if file.path not in table.read]
        walk.replace(version.removed, fresh, version.number)


def _take_removing(table: _Table, walk: _Walk, at: int, *, passing: bool) -> int:
    """What becomes of a version that removes rows and of those with it; gives how many they are."""
    group = _group(table.versions[at:])
    found = _together(table, walk, group, at + len(group))
    if passing and len(group) > 1 and found.removes(table.read):
        group = group[:1]
        found = _together(table, walk, group, at + 1)
    if not found.removes(table.read):
        walk.replace(found.touched, found.fresh(table.read), group[0].number)
    elif passing:
        walk.passed.append(group[0])
    else:
        gone, fresh = found.gone(table.read), found.fresh(table.read)
        walk.removal, walk.touched = Removal(group[0], group[-1].number, gone, fresh, found.has_vectors), found.touched
    return len(group)


def _together(table: _Table, walk: _Walk, seeds: Sequence[TableVersion], end: int) -> RewrittenFiles:
    last = table.versions[end - 1].number
    return together(table.source, seeds, table.versions[:end], {*table.read, *walk.ever}, last)


def _group(versions: Sequence[TableVersion]) -> list[TableVersion]:
    """The first of some versions, which removes rows, and those after it up to the next with nothing but new files."""
    group, removed = [versions[0]], {*versions[0].removed}
    for version in versions[1:]:
        if version.arrived and not any(file.path in removed for file in version.added):
            break
        group.append(version)
        removed |= version.removed
    return group


def _at_once(table: _Table) -> Arrived:
    """What becomes of all that the table lists: one removal, of what is gone in the end and of what is lost."""
    walk, skips = _walk(table, passing=True), table.source.removals == "skip"
    lost, passed = table.lost(walk.pending), [] if skips else walk.passed
    seeds = [one for one in table.versions if one in passed or not one.removed.isdisjoint(lost)]
    if not seeds:
        return table.all_of(walk)
    found = _together(table, walk, seeds, len(table.versions))
    aside = () if passed else sorted(path for path in table.aside if path in found.touched and path not in found.live)
    if not found.removes(table.read) and not aside:
        walk.replace(found.touched, found.fresh(table.read), seeds[0].number)
        return table.all_of(walk)
    walk.touched = found.touched
    gone, fresh, last = found.gone(table.read), found.fresh(table.read), table.versions[-1].number
    whole = Removal(seeds[0], last, gone, fresh, found.has_vectors, bool(passed), tuple(lost), tuple(aside))
    return _before(table, walk, whole, seeds[0].number)


def _before(table: _Table, walk: _Walk, removal: Removal, version: int) -> Arrived:
    """What is read before a removal; what it takes itself is listed again until then, from a version on.

    A file whose rows were read in another that was made of it is not read.
    """

    def is_read_first(file: ListedFile) -> bool:
        if file.path not in walk.touched:
            return True
        elsewhere = heirs([file.path], table.versions) - {file.path}
        return table.holds(file) and table.read.keys().isdisjoint(elsewhere)

    first = {file.path: file for file in walk.pending.values() if is_read_first(file)}
    later = [file.order[0] for path, file in walk.pending.items() if path not in first]
    return Arrived([*first.values()], removal, up_to=min([version, *later]) - 1)


def compacted(source: Source, version: int, read: Spans, missing: Collection[str]) -> Removal | None:
    """What a version holds in the place of files that were read and have been deleted, where rows only changed places.

    None where it still names one of them, or where rows were removed: then their rows are lost.
    """
    versions, looked_for, number = list[TableVersion](), {*missing}, version
    while looked_for and (one := version_of(source, number)):
        versions.insert(0, one)
        looked_for -= one.removed
        number -= 1
    if looked_for:
        return None
    seeds = [one for one in versions if one.removed & {*missing}]
    found = together(source, seeds, versions, read, version)
    if found.changes_rows or found.has_vectors or any(path in found.live for path in missing):
        return None
    return Removal(seeds[0], version, found.gone(read), found.fresh(read))


def span_of(source: Source, removal: Removal, spans: Spans, latest_ms: int) -> TimeRange | None:
    """The times of the events that a removal concerns, as far as they are known without reading rows; None: no event.

    Of the files that it added the footers say them, up to `latest_ms`: what is later is not admitted.
    """
    found = [span for path in removal.gone if (span := spans[path])]
    most_ms = min(latest_ms, MAX_TIMESTAMP_MS)
    for file in removal.fresh:
        times = _times_of(source, file)
        if times and (low_ms := max(times[0], MIN_TIMESTAMP_MS)) <= (high_ms := min(times[1], most_ms)):
            found.append(TimeRange(low_ms, high_ms + 1))
    if not found:
        return None
    return TimeRange(min(span.from_ms for span in found), max(span.to_ms for span in found))


def _times_of(source: Source, file: ListedFile) -> tuple[int, int] | None:
    """The least and the greatest event time of a file's rows in ms, refused ones among them; None where not known."""
    column, zone = source.in_files(source.timestamp), source.dialect.time_zone
    if column not in file.values:
        return footers.span(source.path / file.path, column, source.timestamp_unit, zone)
    kind = "bigint" if source.timestamp_unit else kind_of(types_of(source, [file], {})[column])
    text = file.values[column]
    if text is None or not is_value(text, kind):
        return None
    margin_ms = footers.DAY_MS if zone else 0
    match value_of(text, kind):
        case datetime() as moment:
            time_ms = time_of(moment)
        case date() as day:
            time_ms = time_of(datetime.combine(day, time()))
        case int() as number if source.timestamp_unit:
            time_ms = floored_ms(number, source.timestamp_unit)
        case _:
            return None
    return time_ms - margin_ms, time_ms + margin_ms
