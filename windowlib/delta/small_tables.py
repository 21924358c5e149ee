"""Small tables: appending a few rows, folding small files into one, and reading only the newest row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from deltalake import Schema

from windowlib.contract.table import TableSpec
from windowlib.delta import checkpoints, data_files, log, row_groups
from windowlib.delta import commits as delta_commits
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Table
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
R = TypeVar("R")

# With this many small files, an append folds them into one. Describing 64 small files at each access took a sixth of
# the fixed cost of a batch. Files above SMALL_BYTES are not folded again, so the cost does not grow with the table.
SMALL_FILES = 16
SMALL_BYTES = 64 << 10
NUMBER = "number"  # column that orders the rows of tables outside batches
NUMBERED = ("sequence", NUMBER, "batch_id")  # columns that rise with each append


def append_rows(table: Table, expected: int, rows: Sequence[Mapping[str, Any]]) -> int:
    """Appends a few rows as one file. Folds the table's small files into the new file once there are `SMALL_FILES`
    small files.

    The file is synced to the disk before the commit names it, and the commit before the function returns. The previous
    commit is synced first, because its writer may have died before. Otherwise a power failure could leave a later entry
    without an earlier entry.
    """
    with delta_commits.cut_is_conflict():
        if table.synced_version != expected:
            delta_commits.sync_version(table, expected)
        add, remove, contents = rows_file(table, expected, rows)
    for path, content in contents.items():
        data_files.put(table.store, path, content)
    version = delta_commits.commit(table, expected, add=add, remove=remove)
    checkpoints.make_if_due(table, version)
    return version


def add_row(store: Store, spec: TableSpec, row: Mapping[str, Any], check: Callable[[], None] = lambda: None) -> None:
    """Appends a row to a table outside batches, with a new attempt after each conflict. Creates a missing table.

    The column `number`, if the table has one, is greater than in all earlier rows. `check` runs before each attempt
    and raises if the row may not follow the rows of that version. Raises `RefusedCommit`.
    """
    table = Table(store.below(spec.name))

    def appended() -> None:
        newest = table.version()
        expected = delta_commits.create(table, spec.schema()) if newest is None else newest
        check()
        append_rows(table, expected, [{**row, NUMBER: expected} if spec.has(NUMBER) else row])

    delta_commits.again_on_conflict(appended)


def numbered_rows(store: Store, spec: TableSpec) -> list[dict[str, Any]]:
    """The rows of `add_row`, in order of their number."""
    table = Table(store.below(spec.name))
    _, files = again_if_cut(table, table.files)
    rows = [row for file in files or () for row in _rows(table.store, file.path, file.size_bytes, spec.columns)]
    return sorted(rows, key=lambda row: row[NUMBER])


@lru_cache(maxsize=128)
def _rows(store: Store, path: str, size_bytes: int, columns: pa.Schema) -> list[dict[str, Any]]:
    """The rows of a file, which never changes."""
    return data_files.rows_of(data_files.read_parquet(store, DataFile(path, size_bytes, 0), columns))


def newest_row(store: Store, spec: TableSpec) -> dict[str, Any] | None:
    """The newest row of `add_row`; None if there is none."""
    table = Table(store.below(spec.name))
    _, files = again_if_cut(table, table.files)
    return newest_of(table, files or (), spec.columns, NUMBER)


def again_if_cut(table: Table, look: Callable[[int], R], newest: int | None = None) -> tuple[int | None, R | None]:
    """The newest version, and `look(version)`; None without a table. Looks again if the log is cut past it meanwhile.

    Maintenance may shorten the log between the question for the version and the answer about it. `newest` is the newest
    version if it was just asked for.
    """
    version = table.version() if newest is None else newest
    while version is not None:
        try:
            return version, look(version)
        except log.CutLog:
            before, version = version, table.version()
            if version == before:
                raise
    return None, None


def of_row(kind: type[T], row: Mapping[str, Any]) -> T:
    """A dataclass object from the columns of a row with the names of its fields."""
    return kind(**{name: row[name] for name in kind.__dataclass_fields__})


def newest_of(table: Table, chosen: Sequence[DataFile], schema: pa.Schema, numbered: str) -> dict[str, Any] | None:
    """The row with the greatest number in some files of a small table. Reads only the last rows."""
    if not chosen:
        return None
    newest = max(chosen, key=lambda file: file.high[numbered])
    file = data_files.parquet_file(table.store, newest.path, newest.size_bytes)
    rows, _ = next(row_groups.newest_first(file, numbered, schema))
    return max(data_files.rows_of(rows), key=lambda row: row[numbered])


def rows_file(
    table: Table, at: int | None, rows: Sequence[Mapping[str, Any]], schema: Schema | None = None
) -> tuple[list[DataFile], list[DataFile], dict[str, bytes]]:
    """A new file with a few rows, and the small files of version `at` that it replaces.

    Returns the files to add, the files to remove, and the content of each added file. Writes nothing. `schema` is
    needed if the table may not exist yet or may lack columns.
    """
    if schema is None:
        assert at is not None, "a table that does not exist has a schema"
        schema = table.schema(at)
    arrow = pa.schema(schema.to_arrow())
    data = pa.Table.from_pylist([dict(row) for row in rows], schema=arrow)
    small = [f for f in table.files(at) if f.size_bytes < SMALL_BYTES]
    fold = small if len(small) >= SMALL_FILES else []
    if fold:
        parts = [data_files.read_parquet(table.store, f, arrow) for f in sorted(fold, key=_place)]
        data = pa.concat_tables([*parts, data])
    if not data.num_rows:
        return [], fold, {}
    file, content = data_files.new_file(data)
    return [file], fold, {file.path: content}


def _place(file: DataFile) -> tuple[int, str]:
    """Position of a file's rows in the order of appends."""
    return min((file.low[name] for name in NUMBERED if name in file.low), default=0), file.path
