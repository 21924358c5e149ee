"""Small files of a table put together into larger ones: the same rows, no column changed, statistics from the footers.

Files lie in one partition before and after. Within a partition they are taken in the order of the column by which files
are looked for (`SORTED`), and rows are sorted by it, so that a reader still skips what it does not need. Which windows
are published no longer changes where a *closed* day is: all of its windows are past their cleanup time. There two files
are enough to be put together; elsewhere it takes more, since files of an open day are written again in any case.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.contract.result_tables import FORGET
from windowlib.delta import data_files
from windowlib.delta.data_files import DataFile
from windowlib.delta.table_change import logged
from windowlib.delta.tables import Table
from windowlib.ledger.prepare import TableChange
from windowlib.model.errors import WindowError

SMALL_BYTES = 16 << 20  # a file below this is small
LARGE_BYTES = 64 << 20  # so much is put into one file
SIZES = dict.fromkeys(("ledger", "run_metrics", "dq_results", "source_files", "watermarks"), (256 << 10, 1 << 20))
"""The same two of tables without partitions that grow with every batch. Of their past a run needs a little here and
there: the log's statistics choose the file, and its footer, which is read whole, is short. What was put together once
is not read again for that."""
CLOSED, OPEN, OPEN_DAY = 2, 8, 64  # files of one partition that are worth it
ROWS_PER_GROUP = 65_536  # a group of a file is read at once
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
"""Which tables are compacted, and by which column; `state_windows` compacts itself as it is read."""

Partition = Mapping[str, object]


class RowsLost(WindowError):
    """A file that was put together has other rows than those it was made of: nothing was committed."""


def groups(
    name: str, files: Sequence[DataFile], is_closed: Callable[[Partition], bool], bucket_ms: int
) -> Iterator[list[DataFile]]:
    """The files of a table, by name, that are each to become one.

    Files of `seen_ids` whose newest ids are not in one `bucket_ms` stay apart: they are dropped whole in time. So do
    those of `result_changes` that say of an erased key that it went.
    """
    column, (small_bytes, large_bytes) = SORTED[name], SIZES.get(name, (SMALL_BYTES, LARGE_BYTES))
    together: dict[tuple[object, ...], list[DataFile]] = {}
    for file in files:
        if file.size_bytes < small_bytes and file.partition.get("cause") != FORGET:
            time = (int(file.high["timestamp_ms"]) // bucket_ms,) if name == "seen_ids" and file.high else ()
            together.setdefault((*sorted(map(str, file.partition.items())), *time), []).append(file)
    for found in together.values():
        by_day = "window_day" in found[0].partition
        least = (CLOSED if is_closed(found[0].partition) else OPEN_DAY) if by_day else OPEN
        if len(found) >= least:
            in_order = sorted(found, key=lambda file: (column in file.low, _low(file, column), file.path))
            yield from (files for files in _bins(in_order, large_bytes) if len(files) > 1)


def _low(file: DataFile, column: str) -> str:
    value = file.low.get(column, "")
    return f"{value:+030d}" if isinstance(value, int) else str(value)


def _bins(files: Sequence[DataFile], large_bytes: int) -> Iterator[list[DataFile]]:
    one, size_bytes = list[DataFile](), 0
    for file in files:
        if one and size_bytes + file.size_bytes > large_bytes:
            yield one
            one, size_bytes = [], 0
        one, size_bytes = [*one, file], size_bytes + file.size_bytes
    yield one


def together(table: Table, version: int, files: Sequence[DataFile], attempt: str) -> DataFile:
    """Writes the rows of some files of one partition into one file, named after the attempt; no commit names it yet.

    Raises `RowsLost`.
    """
    name = table.folder.name
    pinned = table.description(version)
    partition_by = {*pinned.partition_by}
    schema = pa.schema([f for f in pa.schema(pinned.schema.to_arrow()) if f.name not in partition_by])
    data = pa.concat_tables([data_files.read_parquet(table.folder / file.path, schema) for file in files])
    if (column := SORTED[name]) in schema.names:
        data = data.sort_by(column)
    path = str(Path(files[0].path).with_name(f"{attempt}-{uuid.uuid4()}.parquet"))
    rows_per_group = ROWS_PER_GROUP if partition_by else data_files.ROWS_PER_GROUP
    options = data_files.bulk_write_options(data.schema)
    pq.write_table(data, table.folder / path, row_group_size=rows_per_group, **options)
    made = data_files.data_file(table.folder, path, files[0].partition)
    if made.rows != (rows := sum(file.rows for file in files)):
        (table.folder / path).unlink()
        raise RowsLost(f"table {name}: {len(files)} files of {rows} rows became one of {made.rows}; please report this")
    return made


def change(table: Table, version: int, chosen: Sequence[Sequence[DataFile]], attempt: str) -> TableChange:
    """The change that puts each of some groups of files into one. Raises as `together`; then no file is left."""
    made: list[DataFile] = []
    try:
        made.extend(together(table, version, files, attempt) for files in chosen)
    except BaseException:
        for file in made:
            (table.folder / file.path).unlink(missing_ok=True)
        raise
    removed = (logged(file) for files in chosen for file in files)
    return TableChange(table.folder.name, version, add=tuple(map(logged, made)), remove=tuple(removed))
