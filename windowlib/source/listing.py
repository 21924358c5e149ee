"""New files of a source, and changes of files that were read.

A source is a sequence of files, numbered 1, 2, 3, … in *arrival order*. The new files of a plan are sorted by
modification time, then name. New files of a Delta source are sorted by version, then name. A file is read once and must
not change afterwards. `windowlib.source.folder` lists the files of a folder.

* A file that was copied back or unpacked again (another time, the same content) has not changed.
* A file that was renamed is not new: the old name is gone, and a new name has the same input
  (`windowlib.source.contents`).
* A file that was read as an unfinished transfer, and is complete now under another name, has changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from windowlib.contract.tables import SOURCE_FILES
from windowlib.definition.commands import OPEN, to_paste
from windowlib.definition.instants import instant, iso_instant
from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.delta.tables import Tables
from windowlib.ledger.rerun_request import LONGEST_DAYS, is_too_long
from windowlib.ledger.rows import Commit, SourceFile
from windowlib.ledger.set_aside_files import newest_decisions
from windowlib.model.errors import TryAgain
from windowlib.model.rerun import TimeRange
from windowlib.source.contents import Contents, FileState
from windowlib.source.delta.removals import Arrived, Spans, arrived
from windowlib.source.delta.source import Cursor, beginning, cursor_after, delta_files, taken_back
from windowlib.source.folder import folder_files, is_chosen
from windowlib.source.listed import ListedFile, SourceError, SourceListing, existing
from windowlib.source.marker import Marker, marker_of
from windowlib.source.permissions import denials_named
from windowlib.source.read_before import completed, known_files, known_files_named, moved_here, renamed
from windowlib.storage.at_once import both
from windowlib.storage.store import ObjectInfo

WAITS_MS = 5_000  # a run does not wait for a longer `min_file_age`: the next run takes the file
AHEAD_WAITS_MS = WAITS_MS  # longest wait for files with a future modification time


class FilesChanged(SourceError, TryAgain):
    """A file was changed or removed between its plan and its commit: the batch is planned again."""


Since = Cursor | Marker | None  # start of a listing: Delta cursor, folder marker, or None for the beginning
Look = Callable[[Source, Since], SourceListing]


def found_files(source: Source, since: Since = None) -> SourceListing:
    """Lists the source: a Delta table after a cursor, a folder from a marker on, or everything."""
    with denials_named(source.store):
        if source.format == "delta":
            assert not isinstance(since, Marker), "a Delta source has a cursor"
            return delta_files(source, since)
        assert not isinstance(since, Cursor), "a folder has a marker"
        return SourceListing(folder_files(source, since), since=since)


def arrivals(
    source: Source, tables: Tables, commit: Commit | None, since: Since, look: Look = found_files
) -> tuple[SourceListing, Arrived]:
    """Listing of a source by `look`. Files that a pipeline must read next, and the removal after these files."""
    (listed, decisions), _ = both(
        lambda: both(lambda: look(source, since), lambda: newest_decisions(tables.store)),
        lambda: tables[SOURCE_FILES.name].files(_read_by(commit)),  # opens the table for the next steps
    )
    complete = _with_taken_back(source, tables, commit, listed, [made.path for made in decisions if made.back])
    aside = {made.path for made in decisions if not made.back}
    return listed, arrived(source, complete, lambda: spans_read(tables, commit), aside)


def _with_taken_back(
    source: Source, tables: Tables, commit: Commit | None, listed: SourceListing, back: Collection[str]
) -> SourceListing:
    """Adds files that an operator set aside and took back later.

    Meanwhile the cursor or marker has passed these files, so `listed` does not have them.
    """
    cursor = cursor_of(source, commit)
    if commit is None or (cursor is None and listed.since is None):
        return listed
    listed_paths = {file.path for file in listed.files}
    paths = {path for path in back if path not in listed_paths}
    if cursor:
        return taken_back(source, listed, paths - known_files_named(tables, _read_by(commit), paths).keys(), cursor)
    present = existing(source.store, [path for path in paths if is_chosen(source, path)])
    return replace(listed, files=[*present.values(), *listed.files])


def spans_read(tables: Tables, commit: Commit | None) -> Spans:
    """Time range of the admitted events of each file read up to `commit`, by path; None without such events."""
    table = tables[SOURCE_FILES.name]
    rows = table.rows(table.files(_read_by(commit)), SOURCE_FILES.columns)
    times = ((row["path"], row["min_timestamp_ms"], row["max_timestamp_ms"]) for row in rows)
    return {path: None if first is None else TimeRange(first, last + 1) for path, first, last in times}


def settled_files(source: Source, fresh: Sequence[ListedFile], now_ms: int) -> list[ListedFile]:
    """Unread files that the next batch may read. Files younger than `source.min_file_age` are omitted.

    If all unread files are too young, the call waits until the youngest is old enough, at most `WAITS_MS`. A file that
    changed meanwhile is omitted.

    If a file's modification time is in the future, its writer's clock is ahead, and the time does not tell the file's
    age. The call then waits for `min_file_age`, at most `AHEAD_WAITS_MS`, and takes the file if its size and time are
    unchanged. If `min_file_age` is longer than `WAITS_MS`, the call only waits for files that are ahead by at least
    that age.
    """
    least_ms = source.min_file_age_ms
    ages_ms = {file.path: now_ms - file.modified_ns // 1_000_000 for file in fresh}
    settled = [file for file in fresh if ages_ms[file.path] >= least_ms]
    chosen = [file for file in fresh if least_ms <= WAITS_MS or ages_ms[file.path] <= -least_ms]
    if settled or not chosen:
        return settled
    youngest_ms = min(ages_ms[file.path] for file in chosen)
    time.sleep(min(least_ms, AHEAD_WAITS_MS) / 1000 if youngest_ms < 0 else (least_ms - youngest_ms) / 1000)
    infos = source.store.infos([file.path for file in chosen])
    return [file for file, info in zip(chosen, infos, strict=True) if _is_same(source, file, info)]


def waiting_files(
    source: Source, uses: Uses, tables: Tables, commit: Commit | None, *, check: bool = True
) -> list[ListedFile]:
    """Files that no batch up to `commit` has read and that the next batches may read.

    A folder with a marker is listed from the marker on. Raises the errors of `new_files` and `found_files`.
    """
    since = cursor_of(source, commit) or marker_of(source, tables.store, commit)
    _, arrived = arrivals(source, tables, commit, since)
    return new_files(source, uses, tables, commit, arrived, check=check)


def new_files(
    source: Source, uses: Uses, tables: Tables, commit: Commit | None, arrived: Arrived, *, check: bool = True
) -> list[ListedFile]:
    """Arrived files that no batch up to `commit` has read, in arrival order.

    Omits files that an operator has set aside, and renamed files that were read under their earlier name. Raises
    `SourceError` if the content of a file has changed since it was read (only with `check`).
    """
    files, read_by, set_aside = arrived.files, _read_by(commit), arrived.aside
    if arrived.since or source.format == "delta":
        read = known_files_named(tables, read_by, [file.path for file in files])
    else:
        read = known_files(tables, read_by)
    with Contents.of(source, uses, tables.store) as contents:
        complete = completed(contents, read, set_aside)
        present = {file.path: file for file in files if file.path in read}
        compared = (present | complete).items() if check else ()
        contents.read(file.state for path, file in compared if contents.must_compare(file.state, read[path]))
        for path, file in compared:
            if contents.has_changed(file.state, read[path]):
                raise SourceError(_change_message(source, read[path], file, spans_read(tables, commit).get(path)))
        passed = {*read, *set_aside, *(file.path for file in complete.values())}
        fresh = sorted((file for file in files if file.path not in passed), key=lambda file: file.order)
        if arrived.since:
            moved = moved_here(contents, fresh, tables, read_by)
        else:
            moved = renamed(contents, [*present.values(), *fresh], read.values())
    names = {file.path for file in moved.values()}
    return [file for file in fresh if file.path not in names]


def _change_message(source: Source, before: FileState, now: ListedFile, span: TimeRange | None) -> str:
    """Message about a file whose content has changed since it was read."""
    sizes = f"was {before.size_bytes} bytes, is {now.size_bytes}"
    if before.size_bytes == now.size_bytes:
        sizes = f"still {now.size_bytes} bytes, but another content"
    again = _read_again(source, span)
    if now.path == before.path:
        return (
            f"{source.store}/{now.path} has changed since it was read ({sizes})."
            f" A file is read once: put new events into a new file and restore this file, or {again}"
        )
    return (
        f"{source.store}/{before.path} was read before its transfer was finished: it is gone, and"
        f" {source.store}/{now.path} has arrived ({sizes}). A file is read once, when it is complete. To read"
        f" {now.path} in place of {before.path}, {again}"
    )


def _read_again(source: Source, span: TimeRange | None) -> str:
    """Advice to read a changed file again; `span` is the range of its admitted events, None without such events."""
    if span and is_too_long(span):
        return back_before(source, span)
    begin, end = (span and iso_instant(span.from_ms)) or OPEN, (span and iso_instant(span.to_ms)) or OPEN
    held = f" (its events were from {begin} to {end}; use a longer range if it has others now)" if span else ""
    return f"rerun its time range{held}: `{to_paste('rerun', source.file, '--from', begin, '--to', end)}`"


def back_before(source: Source, span: TimeRange) -> str:
    """Advice to read a changed file again, if its events span more days than a rerun may cover."""
    return (
        f"go back to a batch before the one that read it (`{to_paste('rollback', source.file, '--to-batch', 'N')}`;"
        " if the first batch read it, recompute everything under another name). Its events, from"
        f" {instant(span.from_ms)} to {instant(span.to_ms - 1)}, span more than the {LONGEST_DAYS} days of one rerun"
    )


def cursor_of(source: Source, commit: Commit | None) -> Cursor | None:
    """Cursor after which a Delta source is read next; None for other sources."""
    if source.format != "delta":
        return None
    return Cursor.of(commit.stored) if commit else beginning(source)


def next_cursor(
    tables: Tables, commit: Commit | None, arrived: Arrived, batch: Sequence[SourceFile], before: Cursor | None
) -> Cursor | None:
    """Cursor of a Delta source once a batch has read some of the arrived files; None for other sources."""
    if before is None or not batch:
        return before
    read = known_files_named(tables, _read_by(commit), [file.path for file in arrived.files])
    passed = read.keys() | arrived.aside | {file.path for file in batch}
    return cursor_after([file for file in arrived.files if file.path not in passed], arrived.up_to, before)


def _read_by(commit: Commit | None) -> int | None:
    """Version of `source_files` that lists the files read up to a commit; None before the first commit."""
    return commit.versions.get(SOURCE_FILES.name) if commit else None


def numbered(files: Sequence[ListedFile], after_sequence: int, at_most: int = 0) -> list[SourceFile]:
    """The first `at_most` files, or all files if `at_most` is 0. Numbers the files from `after_sequence` + 1."""
    chosen = files[:at_most] if at_most else files
    return [
        SourceFile(f.path, f.size_bytes, f.modified_ns, number, f.partition_values)
        for number, f in enumerate(chosen, after_sequence + 1)
    ]


def other_files(
    tables: Tables, commit: Commit | None, fresh: Sequence[ListedFile], files: Sequence[SourceFile]
) -> Iterator[ListedFile]:
    """Yields all files except `files`: listed files in arrival order, then files that were read, newest first."""
    paths = {file.path for file in files}
    yield from (file for file in sorted(fresh, key=lambda file: file.order) if file.path not in paths)
    read = known_files(tables, commit.versions.get(SOURCE_FILES.name)).values() if commit else ()
    for file in sorted(read, key=lambda file: file.modified_ns, reverse=True):
        yield ListedFile(file.path, file.size_bytes, file.modified_ns, (file.modified_ns, file.path))


def check_unchanged(source: Source, files: Sequence[SourceFile]) -> None:
    """Raises `FilesChanged` if a file is gone or has changed since the batch was planned, as while it was read."""
    if change := change_of(source, files):
        raise FilesChanged(
            f"{change}, and again each time the batch was replanned. Run again when its writer has finished"
        )


def change_of(source: Source, files: Sequence[SourceFile]) -> str | None:
    """Describes the first file that is gone or has changed since its batch was planned; None without a change."""
    infos = source.store.infos([file.path for file in files])
    for file, info in zip(files, infos, strict=True):
        if not _is_same(source, file, info):
            changed = "has gone" if info is None else "has changed"
            return f"{source.store}/{file.path} {changed} since its batch was planned"
    return None


def _is_same(source: Source, file: SourceFile | ListedFile, now: ObjectInfo | None) -> bool:
    """Tests if a file of the source still exists with its size and time."""
    if now is None or now.size_bytes != file.size_bytes:
        return False
    # The time in a Delta log may differ from the file's, and the file never changes under its name.
    return source.format == "delta" or now.modified_ns == file.modified_ns
