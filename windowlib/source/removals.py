"""Versions of a Delta source that remove rows (DELETE, UPDATE, MERGE, an overwrite), and what becomes of them.

A version removes files and adds others. Which rows of those are old ones that were written again, and which are new,
cannot be known, so they belong together: all files that were made of one another, by compactions too.

* None of those that were read is gone: rows only changed places before they were read, and what is there has arrived.
* Else it is a *removal*: events are in windows that the table does not hold any more. Every file before it is read
  first. Then one rerun puts the files that are there in the place of those that are gone, and recomputes the windows of
  both, as one batch: no event is lost and none counts twice. `source.removals` says who asks for it: with "stop" an
  operator, who is given the command; with "rerun" the run itself. With "skip" the version is passed over.

Versions that follow one another and remove rows are taken together: where a delete was restored, nothing is left of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windowlib.definition.commands import to_paste
from windowlib.definition.instants import instant, iso_instant
from windowlib.model.rerun import TimeRange
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from windowlib.source import footers
from windowlib.source.delta_source import files_at, version_of
from windowlib.source.found import Found, Listed, Version
from windowlib.source.marker import Marker
from windowlib.tables.rerun import is_too_long

if TYPE_CHECKING:
    from windowlib.definition.source import Source

Spans = Mapping[str, TimeRange | None]  # of each file that was read: from its first admitted event to its last


@dataclass(frozen=True, slots=True)
class Removal:
    """Versions up to `last` that remove rows of windows: the files that are gone, by path, and those in their place.

    `has_vectors`: of some files only the rows that are marked as deleted are gone.
    """

    first: Version
    last: int
    gone: frozenset[str]
    fresh: tuple[Found, ...]
    has_vectors: bool


@dataclass(frozen=True, slots=True)
class Arrived:
    """What a source lists, as a pipeline must take it: the files to read, and the removal that comes after them.

    `since` is as in `Listed`.
    """

    files: Sequence[Found]
    removal: Removal | None = None
    since: Marker | None = None


def arrived(source: Source, listed: Listed, spans: Callable[[], Spans]) -> Arrived:
    """Settles what becomes of each version that removes rows; `spans` are asked for only where there is one."""
    pending = {file.path: file for file in listed.files}
    read = spans() if any(version.removes_rows for version in listed.versions) else {}
    done = 0
    while done < len(listed.versions):
        first = listed.versions[done]
        if not first.removes_rows:
            pending = {file.path: file for file in first.arrived} | pending
            done += 1
            continue
        group = _group(listed.versions[done:])
        done += len(group)
        moving = [one for one in listed.versions[:done] if one.removed or one in group]
        found = _together(source, group, moving, {*read, *pending}, group[-1].number)
        gone, fresh = found.gone(read), found.fresh(read)
        if found.has_vectors or any(read[path] for path in gone):
            there = [file for path, file in pending.items() if path not in found.touched or _exists(source, file)]
            return Arrived(there, Removal(first, group[-1].number, gone, fresh, found.has_vectors))
        replaced = [pending.pop(path) for path in found.touched & pending.keys()]
        place = min((file.order[0] for file in replaced), default=first.number)
        pending |= {file.path: replace(file, order=(place, file.path)) for file in fresh}
    return Arrived(list(pending.values()), since=listed.since)


def _group(versions: Sequence[Version]) -> list[Version]:
    """The first of some versions, which removes rows, and those after it up to the next with nothing but new files."""
    group, removed = [versions[0]], {*versions[0].removed}
    for version in versions[1:]:
        if version.arrived and not any(file.path in removed for file in version.added):
            break
        group.append(version)
        removed |= version.removed
    return group


@dataclass(frozen=True, slots=True)
class _Together:
    """Files whose rows changed places among one another, and those of them that the table holds in the end."""

    touched: Set[str]
    live: Mapping[str, Found]
    has_vectors: bool

    def gone(self, read: Collection[str]) -> frozenset[str]:
        """Those of the files that were read that the table holds no more."""
        return frozenset(path for path in read if path in self.touched and path not in self.live)

    def fresh(self, read: Collection[str]) -> tuple[Found, ...]:
        """Those that it holds and that were not read."""
        return tuple(file for path, file in self.live.items() if path not in read)


def compacted(source: Source, version: int, read: Spans, missing: Collection[str]) -> Removal | None:
    """What a version holds in the place of files that were read and have been deleted, where rows only changed places.

    None where it still names one of them, or where rows were removed: then their rows are lost.
    """
    versions, looked_for, number = list[Version](), {*missing}, version
    while looked_for and (one := version_of(source, number)):
        if one.removed:
            versions.insert(0, one)
            looked_for -= one.removed
        number -= 1
    if looked_for:
        return None
    seeds = [one for one in versions if one.removed & {*missing}]
    found = _together(source, seeds, versions, read, version)
    changed = any(one.changes_rows for one in versions if one.touched & found.touched)
    if changed or found.has_vectors or any(path in found.live for path in missing):
        return None
    return Removal(seeds[0], version, found.gone(read), found.fresh(read), has_vectors=False)


def _together(
    source: Source, seeds: Sequence[Version], versions: Sequence[Version], known: Collection[str], last: int
) -> _Together:
    """All that the files of some versions were made of or became, back to files that are `known`.

    Where a file is not known, it is one that a version before the cursor made (a compaction, or one that was passed
    over): the log is read back to that. Where it does not reach so far, all of the table counts.
    """
    earlier = min(one.number for one in versions)
    versions, settled = list(versions), {*known}
    while True:
        touched, joined = _closure(seeds, versions)
        unknown = _from_before(joined) - settled
        while unknown:
            earlier -= 1
            if (version := version_of(source, earlier)) is None:
                whole = {file.path: file for file in files_at(source, last)}
                return _Together({*whole, *known}, whole, has_vectors=False)
            if version.removed and version.touched & touched:
                versions.insert(0, version)
                break
            unknown -= version.touched
            settled |= version.touched  # added and never read: set aside
        else:
            break
    live: dict[str, Found] = {}
    vectors = set[str]()
    for version in joined:
        for path in version.removed:
            live.pop(path, None)
        live |= {file.path: file for file in version.added}
        vectors = (vectors - version.removed) | version.vectors
    return _Together(touched, live, bool(vectors))


def _from_before(versions: Sequence[Version]) -> set[str]:
    """The files that some versions, in order, found there: RESTORE may add one again that was there before."""
    found, made = set[str](), set[str]()
    for version in versions:
        found |= version.removed - made
        made |= version.touched
    return found


def _closure(seeds: Sequence[Version], versions: Sequence[Version]) -> tuple[set[str], list[Version]]:
    """The files of some versions and of all that share one with them, directly or not; and those versions in order."""
    touched = {path for one in seeds for path in one.touched}
    joined = set[int]()
    while more := [one for one in versions if one.number not in joined and one.touched & touched]:
        joined |= {one.number for one in more}
        touched |= {path for one in more for path in one.touched}
    return touched, [one for one in versions if one.number in joined]


def _exists(source: Source, file: Found) -> bool:
    return (source.path / file.path).is_file()


def span_of(source: Source, removal: Removal, spans: Spans, latest_ms: int) -> TimeRange | None:
    """The times of the events that a removal concerns, as far as they are known without reading rows; None: no event.

    Of the files that it added the footers say them, up to `latest_ms`: what is later is not admitted.
    """
    found = [span for path in removal.gone if (span := spans[path])]
    most_ms = min(latest_ms, MAX_TIMESTAMP_MS)
    for file in removal.fresh:
        column, zone = source.in_files(source.timestamp), source.dialect.time_zone
        times = footers.span(source.path / file.path, column, source.timestamp_unit, zone)
        if times and (low_ms := max(times[0], MIN_TIMESTAMP_MS)) <= (high_ms := min(times[1], most_ms)):
            found.append(TimeRange(low_ms, high_ms + 1))
    if not found:
        return None
    return TimeRange(min(span.from_ms for span in found), max(span.to_ms for span in found))


def title(source: Source, removal: Removal) -> str:
    """Which version it is, in words."""
    first = removal.first
    return f"version {first.number} of {source.path} ({first.operation}, by {first.user})"


def ways_on(source: Source, removal: Removal, span: TimeRange | None, never: str | None) -> str:
    """Why a run stops at a removal, and how to go on, in words; `never`: why no window can be recomputed."""
    why = f"{title(source, removal)} removes rows, and their events are in windows: nothing after it is read."
    skip = (
        "To go on without that version, and without what it adds, set"
        f' source.removals = "skip" in {source.file}; to undo it, RESTORE the table {source.path}'
    )
    if removal.has_vectors:
        return (
            f"{why} It marks rows as deleted by deletion vectors, which are not read, so its windows cannot be"
            f" recomputed. REORG TABLE … APPLY (PURGE) writes the files again without those rows. {skip}"
        )
    if never:
        return f"{why} Its windows cannot be rerun: {never}. {skip}"
    if span is None or is_too_long(span):
        times = "" if span is None else f", {instant(span.from_ms)} to {instant(span.to_ms - 1)}"
        by_itself = f'set source.removals = "rerun" in {source.file}'
        return f"{why} To have a run recompute its windows{times}, {by_itself}. {skip}"
    return (
        f"{why} To recompute the windows that it changes: {command(source, span)}; with"
        f' source.removals = "rerun" runs do that by themselves. {skip}'
    )


def command(source: Source, span: TimeRange) -> str:
    """What an operator types to take a removal."""
    bounds = "--from", str(iso_instant(span.from_ms)), "--to", str(iso_instant(span.to_ms))
    return to_paste("rerun", source.file, *bounds)
