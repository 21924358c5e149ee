"""Which files of the source are new, and whether those that were read are still what they were.

A source is a sequence of files, numbered 1, 2, 3, … in *arrival order*: modification time, then name, among those a
plan finds new; for a Delta source, version, then name. A file is read once and must not change afterwards. What is
looked at: `windowlib.source.folder`.

A file that was copied back or unpacked again (another time, the same content) has not changed. One that was renamed
(the old name gone, the same input under a new one) is not new: `windowlib.source.contents` says what the same input is.
One that was read as an unfinished transfer, and is complete now under another name, has changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from windowlib.contract.tables import SOURCE_FILES
from windowlib.definition.commands import OPEN, to_paste
from windowlib.definition.instants import instant, iso_instant
from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.delta.tables import Tables
from windowlib.ledger.rerun_request import LONGEST_DAYS, is_too_long
from windowlib.ledger.rows import Commit, SourceFile
from windowlib.ledger.set_aside_files import files_set_aside, files_taken_back
from windowlib.model.errors import TryAgain
from windowlib.model.rerun import TimeRange
from windowlib.source.contents import Contents, FileState
from windowlib.source.delta.removals import Arrived, Spans, arrived
from windowlib.source.delta.source import Cursor, beginning, cursor_after, delta_files, taken_back
from windowlib.source.folder import folder_files, is_chosen
from windowlib.source.listed import ListedFile, SourceError, SourceListing
from windowlib.source.marker import Marker, marker_of
from windowlib.source.permissions import denials_named
from windowlib.source.read_before import completed, known_files, known_of, moved_here, renamed

WAITS_MS = 5_000  # a longer `min_file_age` is not waited out: the next run takes the file
AHEAD_WAITS_MS = WAITS_MS  # for files from the future, at most


class FilesChanged(SourceError, TryAgain):
    """A file was changed or removed between its plan and its commit: the batch is planned again."""


Since = Cursor | Marker | None  # where a look begins: of a Delta table, or of a folder; None: at the beginning
Look = Callable[[Source, Since], SourceListing]


def found_files(source: Source, since: Since = None) -> SourceListing:
    """Every file that is there now; of a Delta table, what came after a cursor; of a folder, what a marker reaches."""
    with denials_named(source.path):
        if source.format == "delta":
            assert not isinstance(since, Marker), "a Delta source has a cursor"
            return delta_files(source, since)
        assert not isinstance(since, Cursor), "a folder has a marker"
        return SourceListing(folder_files(source, since), since=since)


def arrivals(source: Source, tables: Tables, commit: Commit | None, listed: SourceListing) -> Arrived:
    """What a pipeline must take of what its source lists: files, and then maybe a removal."""
    listed, aside = _with_taken_back(source, tables, commit, listed), files_set_aside(tables.root)
    return arrived(source, listed, lambda: spans_read(tables, commit), aside)


def _with_taken_back(source: Source, tables: Tables, commit: Commit | None, listed: SourceListing) -> SourceListing:
    """The same with the files that were set aside when a batch, or a marker, went past them, and taken back since."""
    cursor, folder = cursor_of(source, commit), source.path
    if commit is None or (cursor is None and listed.since is None):
        return listed
    found = {file.path for file in listed.files}
    paths = {path for path in files_taken_back(tables.root) if path not in found}
    if cursor:
        return taken_back(source, listed, paths - known_of(tables, _read_by(commit), paths).keys(), cursor)
    there = [path for path in paths if (folder / path).is_file() and is_chosen(source, path)]
    back = [ListedFile.there(folder, path) for path in there]
    return replace(listed, files=[*back, *listed.files])


def spans_read(tables: Tables, commit: Commit | None) -> Spans:
    """The span of the admitted events of each file that was read up to `commit`; None without any."""
    table = tables[SOURCE_FILES.name]
    rows = table.rows(table.files(_read_by(commit)), SOURCE_FILES.columns)
    times = ((row["path"], row["min_timestamp_ms"], row["max_timestamp_ms"]) for row in rows)
    return {path: None if first is None else TimeRange(first, last + 1) for path, first, last in times}


def settled_files(source: Source, fresh: Sequence[ListedFile], now_ms: int) -> list[ListedFile]:
    """The files, of those that no batch has read, that the next one may read.

    Left out is what is younger than `source.min_file_age`. Where nothing else is new, the youngest is waited for until
    it is that old, at most `WAITS_MS`; a file that changed meanwhile is left out. The time of one from the future is by
    a clock ahead of ours, and says nothing: the whole age is waited by our monotonic clock, and the file is taken where
    it kept its size and time; one that is ahead by more than a long age is waited for `AHEAD_WAITS_MS`.
    """
    least_ms = source.min_file_age_ms
    ages_ms = {file.path: now_ms - file.modified_ns // 1_000_000 for file in fresh}
    settled = [file for file in fresh if ages_ms[file.path] >= least_ms]
    chosen = [file for file in fresh if least_ms <= WAITS_MS or ages_ms[file.path] <= -least_ms]
    if settled or not chosen:
        return settled
    youngest_ms = min(ages_ms[file.path] for file in chosen)
    time.sleep(min(least_ms, AHEAD_WAITS_MS) / 1000 if youngest_ms < 0 else (least_ms - youngest_ms) / 1000)
    return [file for file in chosen if is_unchanged(source, source.path / file.path, file.size_bytes, file.modified_ns)]


def waiting_files(
    source: Source, uses: Uses, tables: Tables, commit: Commit | None, *, check: bool = True
) -> list[ListedFile]:
    """The files that are there now, that no batch up to `commit` has read, and that the next ones may read.

    Of a folder those that the marker reaches, where there is one. Raises as `new_files`, `found_files`.
    """
    since = cursor_of(source, commit) or marker_of(source, tables.root, commit)
    arrived = arrivals(source, tables, commit, found_files(source, since))
    return new_files(source, uses, tables, commit, arrived, check=check)


def new_files(
    source: Source, uses: Uses, tables: Tables, commit: Commit | None, arrived: Arrived, *, check: bool = True
) -> list[ListedFile]:
    """The files, of those that have arrived, that no batch up to `commit` has read, in arrival order.

    Left out is what an operator has set aside, and what was read under another name that is gone. Raises `SourceError`
    when, with `check`, the content of a file that was read has changed since.
    """
    found, read_by, aside = arrived.files, _read_by(commit), files_set_aside(tables.root)
    if arrived.since or source.format == "delta":
        known = known_of(tables, read_by, [file.path for file in found])
    else:
        known = known_files(tables, read_by)
    with Contents.of(source, uses, tables.root) as contents:
        complete = completed(contents, known, aside)
        there = {file.path: file for file in found if file.path in known}
        for path, file in (there | complete).items() if check else ():
            if contents.has_changed(file.state, known[path]):
                raise SourceError(_changed(source, known[path], file, spans_read(tables, commit).get(path)))
        taken = {*known, *aside, *(file.path for file in complete.values())}
        fresh = sorted((file for file in found if file.path not in taken), key=lambda file: file.order)
        if arrived.since:
            moved = moved_here(contents, fresh, tables, read_by)
        else:
            moved = renamed(contents, [*there.values(), *fresh], known.values())
    names = {file.path for file in moved.values()}
    return [file for file in fresh if file.path not in names]


def _changed(source: Source, before: FileState, now: ListedFile, span: TimeRange | None) -> str:
    """A message about a file that has another content than it had when it was read."""
    sizes = f"was {before.size_bytes} bytes, is {now.size_bytes}"
    if before.size_bytes == now.size_bytes:
        sizes = f"still {now.size_bytes} bytes, but others"
    again = _read_again(source, span)
    if now.path == before.path:
        return (
            f"{source.path / now.path} has changed since it was read ({sizes})."
            f" A file is read once: put new events into a new file and restore this one, or {again}"
        )
    return (
        f"{source.path / before.path} was read before its transfer was finished: it is gone, and"
        f" {source.path / now.path} has come ({sizes}). A file is read once, when it is complete. To read"
        f" {now.path} in the place of {before.path}, {again}"
    )


def _read_again(source: Source, span: TimeRange | None) -> str:
    """How to have a changed file read, by the range of the events that were admitted from it; None: it had none."""
    if span and is_too_long(span):
        return back_before(source, span)
    begin, end = (span and iso_instant(span.from_ms)) or OPEN, (span and iso_instant(span.to_ms)) or OPEN
    held = f" (its events were from {begin} to {end}; a longer one, if it has others now)" if span else ""
    return f"rerun its time range{held}: {to_paste('rerun', source.file, '--from', begin, '--to', end)}"


def back_before(source: Source, span: TimeRange) -> str:
    """How to have a changed file read whose events lie further apart than a rerun reaches."""
    return (
        f"go back to a batch before the one that read it ({to_paste('rollback', source.file, '--to-batch', 'N')};"
        " of the first batch: recompute everything under another name), as its events, from"
        f" {instant(span.from_ms)} to {instant(span.to_ms - 1)}, are further apart than the {LONGEST_DAYS} days of one"
        " rerun"
    )


def cursor_of(source: Source, commit: Commit | None) -> Cursor | None:
    """Cursor from which a Delta source is read on; None for other sources."""
    if source.format != "delta":
        return None
    return Cursor.of(commit.stored) if commit else beginning(source)


def next_cursor(
    tables: Tables, commit: Commit | None, found: Arrived, taken: Sequence[SourceFile], before: Cursor | None
) -> Cursor | None:
    """How far a Delta source is read by a batch that takes these of the files found; None of other sources."""
    if before is None or not taken:
        return before
    known, paths = known_of(tables, _read_by(commit), [file.path for file in found.files]), {one.path for one in taken}
    passed = known.keys() | files_set_aside(tables.root).keys() | paths
    return cursor_after([file for file in found.files if file.path not in passed], found.up_to, before)


def _read_by(commit: Commit | None) -> int | None:
    """The version of `source_files` that says what was read."""
    return commit.versions.get(SOURCE_FILES.name) if commit else None


def numbered(files: Sequence[ListedFile], after_sequence: int, at_most: int = 0) -> list[SourceFile]:
    """The first files, `at_most` so many (0: all), numbered from `after_sequence` + 1."""
    chosen = files[:at_most] if at_most else files
    return [
        SourceFile(f.path, f.size_bytes, f.modified_ns, number, f.partition_values)
        for number, f in enumerate(chosen, after_sequence + 1)
    ]


def other_files(
    tables: Tables, commit: Commit | None, fresh: Sequence[ListedFile], files: Sequence[SourceFile]
) -> Iterator[ListedFile]:
    """Files besides these: what else is listed, in order, then what was read, newest first."""
    paths = {file.path for file in files}
    yield from (file for file in sorted(fresh, key=lambda file: file.order) if file.path not in paths)
    known = known_files(tables, commit.versions.get(SOURCE_FILES.name)).values() if commit else ()
    for file in sorted(known, key=lambda file: file.modified_ns, reverse=True):
        yield ListedFile(file.path, file.size_bytes, file.modified_ns, (file.modified_ns, file.path))


def check_unchanged(source: Source, files: Sequence[SourceFile]) -> None:
    """Raises `FilesChanged` when a planned file is gone or is not the one that was planned."""
    if change := change_of(source, files):
        raise FilesChanged(
            f"{change}, and again each time the batch was replanned; run again when its writer has finished"
        )


def change_of(source: Source, files: Sequence[SourceFile]) -> str | None:
    """What has become of the first planned file that is gone or not the one that was planned; None without one."""
    for file in files:
        path = source.path / file.path
        if not is_unchanged(source, path, file.size_bytes, file.modified_ns):
            return f"{path} {'has changed' if path.is_file() else 'has gone'} since its batch was planned"
    return None


def is_unchanged(source: Source, path: Path, size_bytes: int, modified_ns: int) -> bool:
    """Whether a file of the source is there as it was known."""
    if not path.is_file():
        return False
    stat = path.stat()
    # A Delta log has a time of its own for a file, which never changes under its name.
    same_time = source.format == "delta" or stat.st_mtime_ns == modified_ns
    return stat.st_size == size_bytes and same_time
