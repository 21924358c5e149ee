"""The files that were read before, as `source_files` has them, and which of those that are there now they are.

Of a long history little is read: where few files were listed, the rows of those names, found by the statistics of the
table's files and of their row groups. Names that sort by time lie together in it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.contract.tables import SOURCE_FILES
from windowlib.delta import data_files, row_groups
from windowlib.delta.tables import Tables
from windowlib.source.contents import Contents, FileState
from windowlib.source.listed import ListedFile
from windowlib.source.transfers import complete_names

_STATE = pa.schema(
    [("path", pa.string()), ("size_bytes", pa.int64()), ("modified_ns", pa.int64()), ("sha256", pa.string())]
)


def known_files(tables: Tables, at: int | None) -> dict[str, FileState]:
    """The files read up to version `at` of `source_files`, by path."""
    table = tables[SOURCE_FILES.name]
    return {one.path: one for file in table.files(at) for one in _states(_all_of(table.folder / file.path))}


def known_of(tables: Tables, at: int | None, names: Collection[str]) -> dict[str, FileState]:
    """The same of some names, with the files that were read before they had these names, as unfinished transfers."""
    table, ordered, wanted, known = tables[SOURCE_FILES.name], sorted(names), {*names}, dict[str, FileState]()

    def may_hold(low: str | None, high: str | None) -> bool:
        first = 0 if low is None else bisect_left(ordered, low)
        # What sorts between a name and the same one with a suffix begins with that name.
        has_suffix = low is not None and any(low[:end] in wanted for end in range(1, len(low)))
        return has_suffix or (first < len(ordered) and (high is None or ordered[first] <= high))

    for file in table.files(at):
        if may_hold(file.low.get("path"), file.high.get("path")):
            rows = row_groups.holding(table.folder / file.path, {"path": may_hold}, _STATE)
            known |= {
                state.path: state
                for state in _states(rows)
                if state.path in wanted or not wanted.isdisjoint(complete_names(state.path))
            }
    return known


def completed(contents: Contents, known: Mapping[str, FileState], aside: Collection[str]) -> dict[str, ListedFile]:
    """Files that were read as unfinished transfers and have their complete names now, by the path that was read.

    aside: files that an operator has set aside
    """
    complete = dict[str, ListedFile]()
    for path in known if not contents.never_changes else ():
        names = [name for name in complete_names(path) if name not in known and name not in aside]
        if names and not (contents.source / path).is_file():
            there = next((name for name in names if (contents.source / name).is_file()), None)
            if there is not None:
                complete[path] = ListedFile.there(contents.source, there)
    return complete


def renamed(contents: Contents, found: Sequence[ListedFile], known: Collection[FileState]) -> dict[str, ListedFile]:
    """Files that were read and are gone, by the path that was read: the same inputs under names that are there now.

    `found` are all files of the source, `known` all that were read. One that is there and left out by a pattern is not
    gone.
    """
    there, read = {file.path for file in found}, {file.path for file in known}
    fresh = [file for file in found if file.path not in read]
    fresh_sizes = {file.size_bytes for file in fresh}
    gone = [file for file in known if file.size_bytes in fresh_sizes and file.path not in there and file.sha256]
    gone_sizes = {file.size_bytes for file in gone}
    return _same_inputs(contents, [file for file in fresh if file.size_bytes in gone_sizes], gone)


def moved_here(
    contents: Contents, fresh: Sequence[ListedFile], tables: Tables, at: int | None
) -> dict[str, ListedFile]:
    """As `renamed`, of files that are not known by their names, where not all files of the source are listed.

    Only the files with the same content are looked for on disk.
    """
    sizes = _sizes_read(tables, at, {file.size_bytes for file in fresh}) if fresh else set()
    alike = [file for file in fresh if file.size_bytes in sizes]
    wanted = {content for file in alike if (content := contents.of_file(file.state))}
    return _same_inputs(contents, alike, _read_with(tables, at, wanted, sizes))


def _same_inputs(
    contents: Contents, fresh: Sequence[ListedFile], known: Collection[FileState]
) -> dict[str, ListedFile]:
    """The rule for both: a fresh file is the first one of the same identity that is gone and was not matched yet."""
    before: dict[Hashable, list[str]] = {}
    for file in sorted(known, key=lambda file: file.path, reverse=True):
        if file.sha256:
            before.setdefault(contents.identity(file.path, file.sha256), []).append(file.path)
    moved = dict[str, ListedFile]()
    for found in sorted(fresh, key=lambda file: file.order):
        content = contents.of_file(found.state)
        paths = before.get(contents.identity(found.path, content), []) if content else []
        while paths:
            path = paths.pop()
            if not (contents.source / path).is_file():
                moved[path] = found
                break
    return moved


def _sizes_read(tables: Tables, at: int | None, wanted: Set[int]) -> set[int]:
    """Those of some sizes that a file had which was read: of the others no more is looked at, eight bytes for each."""
    return {size for stored in _stored(tables, at) for size in _sizes(stored, range(stored.num_row_groups))} & wanted


def _read_with(tables: Tables, at: int | None, wanted: Set[str], sizes: Set[int]) -> list[FileState]:
    """The files that were read with one of these contents, as SHA-256, and one of these sizes."""
    states: list[FileState] = []
    for stored in _stored(tables, at) if wanted else ():
        groups = [n for n in range(stored.num_row_groups) if not sizes.isdisjoint(_sizes(stored, [n]))]
        if groups and "sha256" in stored.schema_arrow.names:
            rows = stored.read_row_groups(groups, columns=_STATE.names)
            states += _states(rows.filter(pc.is_in(rows["sha256"], pa.array(sorted(wanted), pa.string()))))
    return states


def _stored(tables: Tables, at: int | None) -> Iterator[pq.ParquetFile]:
    table = tables[SOURCE_FILES.name]
    return (pq.ParquetFile(table.folder / file.path) for file in table.files(at))


def _sizes(stored: pq.ParquetFile, groups: Sequence[int]) -> list[int]:
    sizes: list[int] = stored.read_row_groups([*groups], columns=["size_bytes"])["size_bytes"].to_pylist()
    return sizes


def _states(rows: pa.Table) -> list[FileState]:
    columns = (rows[name].to_pylist() for name in _STATE.names)
    return [FileState(*state) for state in zip(*columns, strict=True)]


@lru_cache(maxsize=64)
def _all_of(file: Path) -> pa.Table:
    """The rows of one of the table's files, which never change."""
    return data_files.read_parquet(file, _STATE)
