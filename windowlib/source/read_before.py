"""Files that were read before, from `source_files`, matched with the files that exist now.

If few files are listed, only the rows with their names are read, even from a long history. The statistics of data files
and row groups in `source_files` locate these rows. Names that sort by time lie close together in the table.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.contract.tables import SOURCE_FILES
from windowlib.delta import data_files, row_groups
from windowlib.delta.data_files import DataFile, parquet_file
from windowlib.delta.tables import Tables
from windowlib.source.contents import Contents, FileState
from windowlib.source.listed import ListedFile, existing
from windowlib.source.transfers import complete_names
from windowlib.storage.at_once import at_once
from windowlib.storage.store import Store

_STATE = pa.schema(
    [("path", pa.string()), ("size_bytes", pa.int64()), ("modified_ns", pa.int64()), ("sha256", pa.string())]
)


def known_files(tables: Tables, at: int | None) -> dict[str, FileState]:
    """Files that were read up to version `at` of `source_files`, by path."""
    table = tables[SOURCE_FILES.name]
    parts = at_once(lambda file: _all_of(table.store, file.path, file.size_bytes), table.files(at))
    return {state.path: state for part in parts for state in _states(part)}


def known_files_named(tables: Tables, at: int | None, names: Collection[str]) -> dict[str, FileState]:
    """Files with these names that were read up to version `at` of `source_files`, by path.

    Includes files that were read as unfinished transfers of these names.
    """
    table, ordered, wanted, states = tables[SOURCE_FILES.name], sorted(names), {*names}, dict[str, FileState]()

    def may_hold(low: str | None, high: str | None) -> bool:
        first = 0 if low is None else bisect_left(ordered, low)
        # All names between a name and the same name with a suffix begin with that name.
        has_suffix = low is not None and any(low[:end] in wanted for end in range(1, len(low)))
        return has_suffix or (first < len(ordered) and (high is None or ordered[first] <= high))

    files = [file for file in table.files(at) if may_hold(file.low.get("path"), file.high.get("path"))]

    def holding(file: DataFile) -> pa.Table:
        return row_groups.holding(parquet_file(table.store, file.path, file.size_bytes), {"path": may_hold}, _STATE)

    for rows in at_once(holding, files):
        states |= {
            state.path: state
            for state in _states(rows)
            if state.path in wanted or not wanted.isdisjoint(complete_names(state.path))
        }
    return states


def completed(contents: Contents, read: Mapping[str, FileState], aside: Collection[str]) -> dict[str, ListedFile]:
    """Files that were read as unfinished transfers and now have their complete names, by the path that was read.

    aside: files that an operator has set aside
    """
    if contents.never_changes:
        return {}
    names = {path: [name for name in complete_names(path) if name not in read and name not in aside] for path in read}
    candidates = [path for path, complete in names.items() if complete]
    sizes = contents.source.sizes(candidates)
    gone = [path for path, size in zip(candidates, sizes, strict=True) if size is None]
    present = existing(contents.source, [name for path in gone for name in names[path]])
    there = {path: next((name for name in names[path] if name in present), None) for path in gone}
    return {path: present[name] for path, name in there.items() if name is not None}


def renamed(
    contents: Contents, listed: Sequence[ListedFile], read_files: Collection[FileState]
) -> dict[str, ListedFile]:
    """Files that were renamed after they were read, by the path that was read.

    A file that a pattern omits but that still exists does not count as renamed.

    listed:     all files of the source
    read_files: all files that were read
    """
    listed_paths, read_paths = {file.path for file in listed}, {file.path for file in read_files}
    fresh = [file for file in listed if file.path not in read_paths]
    fresh_sizes = {file.size_bytes for file in fresh}
    gone = [
        file for file in read_files if file.size_bytes in fresh_sizes and file.path not in listed_paths and file.sha256
    ]
    gone_sizes = {file.size_bytes for file in gone}
    return _same_inputs(contents, [file for file in fresh if file.size_bytes in gone_sizes], gone)


def moved_here(
    contents: Contents, fresh: Sequence[ListedFile], tables: Tables, at: int | None
) -> dict[str, ListedFile]:
    """Files that were renamed after they were read, for a listing of only a part of the source. See `renamed`.

    Looks for read files only if they had the same content.
    """
    sizes = _sizes_read(tables, at, {file.size_bytes for file in fresh}) if fresh else set()
    alike = [file for file in fresh if file.size_bytes in sizes]
    contents.read(file.state for file in alike)
    wanted = {content for file in alike if (content := contents.of_file(file.state))}
    return _same_inputs(contents, alike, _read_with(tables, at, wanted, sizes))


def _same_inputs(contents: Contents, fresh: Sequence[ListedFile], read: Collection[FileState]) -> dict[str, ListedFile]:
    """Matches each fresh file with the first read file of the same identity that is gone and not yet matched."""
    before: dict[Hashable, list[str]] = {}
    for state in sorted(read, key=lambda state: state.path, reverse=True):
        if state.sha256:
            before.setdefault(contents.identity(state.path, state.sha256), []).append(state.path)
    contents.read(file.state for file in fresh)
    inputs = {
        file.path: contents.identity(file.path, content) for file in fresh if (content := contents.of_file(file.state))
    }
    candidates = [path for content in dict.fromkeys(inputs.values()) for path in before.get(content, [])]
    present = {
        path for path, size in zip(candidates, contents.source.sizes(candidates), strict=True) if size is not None
    }
    moved = dict[str, ListedFile]()
    for file in sorted(fresh, key=lambda file: file.order):
        paths = before.get(inputs[file.path], []) if file.path in inputs else []
        while paths:
            path = paths.pop()
            if path not in present:
                moved[path] = file
                break
    return moved


def _sizes_read(tables: Tables, at: int | None, wanted: Set[int]) -> set[int]:
    """Sizes in `wanted` that some file had when it was read. This reads eight bytes for each file."""
    return {size for stored in _stored(tables, at) for size in _sizes(stored, range(stored.num_row_groups))} & wanted


def _read_with(tables: Tables, at: int | None, wanted: Set[str], sizes: Set[int]) -> list[FileState]:
    """Files that were read with a SHA-256 in `wanted`. Only row groups with a size in `sizes` are searched."""
    states: list[FileState] = []
    for stored in _stored(tables, at) if wanted else ():
        groups = [n for n in range(stored.num_row_groups) if not sizes.isdisjoint(_sizes(stored, [n]))]
        if groups and "sha256" in stored.schema_arrow.names:
            rows = stored.read_row_groups(groups, columns=_STATE.names)
            states += _states(rows.filter(pc.is_in(rows["sha256"], pa.array(sorted(wanted), pa.string()))))
    return states


def _stored(tables: Tables, at: int | None) -> list[pq.ParquetFile]:
    table = tables[SOURCE_FILES.name]
    return at_once(lambda file: parquet_file(table.store, file.path, file.size_bytes), table.files(at))


def _sizes(stored: pq.ParquetFile, groups: Sequence[int]) -> list[int]:
    sizes: list[int] = stored.read_row_groups([*groups], columns=["size_bytes"])["size_bytes"].to_pylist()
    return sizes


def _states(rows: pa.Table) -> list[FileState]:
    columns = (rows[name].to_pylist() for name in _STATE.names)
    return [FileState(*state) for state in zip(*columns, strict=True)]


@lru_cache(maxsize=64)
def _all_of(store: Store, path: str, size_bytes: int) -> pa.Table:
    """Rows of a data file of `source_files`. Data files never change."""
    return data_files.read_parquet(store, DataFile(path, size_bytes, 0), _STATE)
