"""Compaction: merges small files of a table into larger files with the same rows, columns and partition.

Within a partition, files are merged in the order of the column that readers filter by (`SORTED`). Rows are sorted by
that column too, so readers can still skip files. A day is *closed* when all of its windows are past their cleanup time:
its results no longer change. Two small files of a closed day are enough for a merge. An open day needs more files,
because runs rewrite its files in any case.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from windowlib.contract.result_tables import FORGET
from windowlib.delta import data_files
from windowlib.delta.data_files import DataFile
from windowlib.delta.table_change import logged
from windowlib.delta.tables import Table
from windowlib.ledger.prepare import TableChange
from windowlib.model.errors import WindowError
from windowlib.storage.at_once import at_once

SMALL_BYTES = 16 << 20  # a file below this is small
LARGE_BYTES = 64 << 20  # a merged file does not exceed this
SIZES = dict.fromkeys(("ledger", "run_metrics", "dq_results", "source_files", "watermarks"), (256 << 10, 1 << 20))
"""Both sizes for tables without partitions that grow with every batch. A run reads few of their old rows: statistics in
the log choose the file. Smaller files have short footers, which are read whole, and are not merged again."""
CLOSED, OPEN, OPEN_DAY = 2, 8, 64  # number of files of one partition that are worth a merge
ROWS_PER_GROUP = 65_536  # a row group is read at once
SORTED: Mapping[str, str] = {
    "ledger": "sequence",
    "results": "window_start",
    "result_changes": "batch_id",
    "late_events": "event_time",
    "quarantine": "batch_id",
    "watermarks": "batch_id",
    "source_files": "sequence",
    "run_metrics": "batch_id",
    "dq_results": "batch_id",
    "seen_ids": "timestamp_ms",
    "open_windows": "",
}
"""Compacted tables with their sort column. `state_windows` is missing because it is compacted when it is read."""

Partition = Mapping[str, object]


class RowsLost(WindowError):
    """A merged file has more or fewer rows than its sources. Nothing was committed."""


def groups(
    name: str, files: Sequence[DataFile], is_closed: Callable[[Partition], bool], bucket_ms: int
) -> Iterator[list[DataFile]]:
    """Groups of files of the table `name`. Each group becomes one file.

    Files of `seen_ids` are grouped by the time of their newest id, in buckets of `bucket_ms`, because old files are
    deleted whole. Files of `result_changes` with removal rows of erased keys are not merged.
    """
    column, (small_bytes, large_bytes) = SORTED[name], SIZES.get(name, (SMALL_BYTES, LARGE_BYTES))
    partitions: dict[tuple[object, ...], list[DataFile]] = {}
    for file in files:
        if file.size_bytes < small_bytes and file.partition.get("cause") != FORGET:
            time = (int(file.high["timestamp_ms"]) // bucket_ms,) if name == "seen_ids" and file.high else ()
            partitions.setdefault((*sorted(map(str, file.partition.items())), *time), []).append(file)
    for members in partitions.values():
        by_day = "window_day" in members[0].partition
        least = (CLOSED if is_closed(members[0].partition) else OPEN_DAY) if by_day else OPEN
        if len(members) >= least:
            in_order = sorted(members, key=lambda file: (column in file.low, _low(file, column), file.path))
            yield from (group for group in _bins(in_order, large_bytes) if len(group) > 1)


def _low(file: DataFile, column: str) -> str:
    value = file.low.get(column, "")
    return f"{value:+030d}" if isinstance(value, int) else str(value)


def _bins(files: Sequence[DataFile], large_bytes: int) -> Iterator[list[DataFile]]:
    group, size_bytes = list[DataFile](), 0
    for file in files:
        if group and size_bytes + file.size_bytes > large_bytes:
            yield group
            group, size_bytes = [], 0
        group, size_bytes = [*group, file], size_bytes + file.size_bytes
    yield group


def merge_files(table: Table, version: int, files: Sequence[DataFile], attempt: str) -> DataFile:
    """Merges files of one partition into one file, named after the attempt. Commits nothing. Raises `RowsLost`."""
    pinned = table.description(version)
    partition_by = {*pinned.partition_by}
    schema = pa.schema([f for f in pa.schema(pinned.schema.to_arrow()) if f.name not in partition_by])
    data = pa.concat_tables(at_once(lambda file: data_files.read_parquet(table.store, file, schema), files))
    if (column := SORTED[table.name]) in schema.names:
        data = data.sort_by(column)
    path = data_files.next_to(files[0], f"{attempt}-{uuid.uuid4()}.parquet")
    rows_per_group = ROWS_PER_GROUP if partition_by else data_files.ROWS_PER_GROUP
    merged = data_files.write_groups(table.store, path, [data], files[0].partition, rows_per_group)
    if merged.rows != (rows := sum(file.rows for file in files)):
        table.store.delete([path])
        raise RowsLost(
            f"table {table.name}: {len(files)} files with {rows} rows were merged into one with {merged.rows}."
            " Please report this"
        )
    return merged


def change(table: Table, version: int, chosen: Sequence[Sequence[DataFile]], attempt: str) -> TableChange:
    """Merges each group of files, and returns the table change. If a merge fails, deletes the merged files."""
    merged: list[DataFile] = []
    try:
        merged.extend(merge_files(table, version, files, attempt) for files in chosen)
    except BaseException:
        table.store.delete([file.path for file in merged])
        raise
    removed = (logged(file) for files in chosen for file in files)
    return TableChange(table.name, version, add=tuple(map(logged, merged)), remove=tuple(removed))
