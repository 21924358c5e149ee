"""The files that were read before, as `source_files` has them, and which of those that are there now they are.

Of a long history little is read: where few files were listed, the rows of those names, found by the statistics of the
table's files and of their row groups. Names that sort by time lie together in it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence, Set
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.source.contents import Contents, FileState
from windowlib.source.found import Found
from windowlib.tables import data_files, row_groups
from windowlib.tables.delta import Tables
from windowlib.tables.meaning import SOURCE_FILES

_STATE = pa.schema(
    [("path", pa.string()), ("size_bytes", pa.int64()), ("modified_ns", pa.int64()), ("sha256", pa.string())]
)


def known_files(tables: Tables, at: int | None) -> dict[str, FileState]:
    """The files read up to version `at` of `source_files`, by path."""
    table = tables[SOURCE_FILES.name]
    return {one.path: one for file in table.files(at) for one in _states(_all_of(table.folder / file.path))}


def known_of(tables: Tables, at: int | None, names: Collection[str]) -> dict[str, FileState]:
    """The same of some names."""
    table, ordered, known = tables[SOURCE_FILES.name], sorted(names), dict[str, FileState]()

    def may_hold(low: str | None, high: str | None) -> bool:
        first = 0 if low is None else bisect_left(ordered, low)
        return first < len(ordered) and (high is None or ordered[first] <= high)

    wanted = {*names}
    for file in table.files(at):
        if may_hold(file.low.get("path"), file.high.get("path")):
            rows = row_groups.holding(table.folder / file.path, {"path": may_hold}, _STATE)
            known |= {one.path: one for one in _states(rows) if one.path in wanted}
    return known


def renamed(contents: Contents, found: Sequence[Found], known: Collection[FileState]) -> dict[str, Found]:
    """Of files that were read and are gone, by their old path: the file that is there now with the same content.

    `found` are all files of the source, `known` all that were read. One that is there and left out by a pattern is not
    gone.
    """

    def is_gone(path: str) -> bool:
        return path not in moved and not (contents.source / path).is_file()

    there, read = {file.path for file in found}, {file.path for file in known}
    gone = sorted((file for file in known if file.path not in there and file.sha256), key=lambda file: file.path)
    sizes = {file.size_bytes for file in gone}
    candidates = [file for file in found if file.path not in read and file.size_bytes in sizes]
    moved: dict[str, Found] = {}
    for file in sorted(candidates, key=lambda file: file.order):
        match = next((one for one in gone if contents.same(file.state, one) and is_gone(one.path)), None)
        if match:
            moved[match.path] = file
    return moved


def moved_here(contents: Contents, fresh: Sequence[Found], tables: Tables, at: int | None) -> set[str]:
    """Of files that are not known by their names: those that were read under others, which are gone.

    As `renamed`, where not all files of the source are listed: whether a file is gone is asked of those alone that had
    the same content.
    """
    sizes = _sizes_read(tables, at, {file.size_bytes for file in fresh}) if fresh else set()
    alike = {file.path: contents.of_file(file.state) for file in fresh if file.size_bytes in sizes}
    before = _read_with(tables, at, {content for content in alike.values() if content}, sizes)
    moved = set[str]()
    for path, content in alike.items():
        paths = before.get(content or "", [])
        if gone := next((one for one in paths if not (contents.source / one).is_file()), None):
            paths.remove(gone)  # it has become one file
            moved.add(path)
    return moved


def _sizes_read(tables: Tables, at: int | None, wanted: Set[int]) -> set[int]:
    """Those of some sizes that a file had which was read: of the others no more is looked at, eight bytes for each."""
    return {size for stored in _stored(tables, at) for size in _sizes(stored, range(stored.num_row_groups))} & wanted


def _read_with(tables: Tables, at: int | None, wanted: Set[str], sizes: Set[int]) -> dict[str, list[str]]:
    """By content, a SHA-256 of those wanted, the paths of the files that were read with it; they have these sizes."""
    found: dict[str, list[str]] = {}
    for stored in _stored(tables, at) if wanted else ():
        groups = [n for n in range(stored.num_row_groups) if not sizes.isdisjoint(_sizes(stored, [n]))]
        if groups and "sha256" in stored.schema_arrow.names:
            rows = stored.read_row_groups(groups, columns=["path", "sha256"])
            rows = rows.filter(pc.is_in(rows["sha256"], pa.array(sorted(wanted), pa.string())))
            for path, content in zip(rows["path"].to_pylist(), rows["sha256"].to_pylist(), strict=True):
                found.setdefault(content, []).append(path)
    return {content: sorted(paths) for content, paths in found.items()}


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
