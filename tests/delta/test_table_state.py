"""A table that is read from its log, or carried forward entry by entry, equals the one that delta-rs opens."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from tests.support.disks import folder_of
from windowlib.delta import checkpoints, data_files, log
from windowlib.delta import commits as delta_commits
from windowlib.delta.data_files import DataFile
from windowlib.delta.table_change import FileChange, logged
from windowlib.delta.tables import Table
from windowlib.storage.disk import Disk

COLUMNS = pa.schema([
    ("user", pa.string()),
    ("count", pa.int64()),
    ("small", pa.int32()),
    ("at", pa.timestamp("us", "UTC")),
    ("clock", pa.timestamp("us")),
    ("born", pa.date32()),
    ("price", pa.decimal128(38, 2)),
    ("share", pa.float64()),
    ("liked", pa.bool_()),
    ("bytes", pa.binary()),
])  # fmt: skip
DAYS = st.dates(date(1, 1, 2), date(9999, 12, 30))
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
ROWS = st.fixed_dictionaries({
    "user": st.none() | st.text(max_size=40),
    "count": st.none() | st.integers(-(2**63), 2**63 - 1),
    "small": st.none() | st.integers(-(2**31), 2**31 - 1),
    "at": st.none() | TIMES.map(lambda time: time.replace(tzinfo=UTC)),
    "clock": st.none() | TIMES,
    "born": st.none() | DAYS,
    "price": st.none() | st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal(f"{number}e-2")),
    "share": st.none() | st.floats(),
    "liked": st.none() | st.booleans(),
    "bytes": st.none() | st.binary(max_size=3),
})  # fmt: skip
COMMITS = st.lists(st.tuples(st.lists(ROWS, max_size=3), st.integers(0, 3)), min_size=1, max_size=5)


def by_path(files: list[DataFile]) -> list[DataFile]:
    return sorted(files, key=lambda file: file.path)


def by_delta_rs(folder: Path) -> Table:
    """A table whose state delta-rs reads."""
    table = Table(Disk(folder))
    version = table.version()
    assert version is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "_read", lambda *_, **__: None)
        assert table.files(version) is not None
    return table


def answers(table: Table, version: int) -> tuple[object, ...]:
    return table.description(version), by_path(table.files(version)), table.row_count(version)


@given(commits=COMMITS, checkpoint_at=st.integers(0, 6))
def test_a_table_is_read_as_delta_rs_reads_it(
    tmp_path_factory: pytest.TempPathFactory,
    commits: list[tuple[list[dict[str, object]], int]],
    checkpoint_at: int,
) -> None:
    table = Table(Disk(tmp_path_factory.mktemp("table")))
    version = delta_commits.create(table, Schema.from_arrow(COLUMNS))
    for rows, removals in commits:
        live = table.files(version)
        add = [data_files.write(table.store, pa.Table.from_pylist(rows, COLUMNS))] if rows else []
        version = delta_commits.commit(table, version, add=add, remove=live[:removals])
        if version == checkpoint_at:
            checkpoints.checkpoint(table, version, worth=1)
        opened = by_delta_rs(folder_of(table))
        assert answers(table, version) == answers(Table(table.store), version) == answers(opened, version)
    assert (state := Table(table.store)._read(version))
    assert state.files is not None


def test_a_file_without_statistics_in_the_log_gets_those_of_its_footer(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist([{"user": "ann", "at": datetime(2026, 1, 1, tzinfo=UTC)}], COLUMNS)
    write_deltalake(tmp_path, rows, configuration={"delta.dataSkippingNumIndexedCols": "0"})
    DeltaTable(tmp_path).create_checkpoint()
    [file] = Table(Disk(tmp_path)).files(0)
    assert [file] == by_delta_rs(tmp_path).files(0)
    assert (file.rows, file.low["user"]) == (1, "ann")


def test_delta_rs_reads_bounds_of_characters_beyond_16_bits(tmp_path: Path) -> None:
    """It misread two escapes in the log's statistics as another character, and skipped files that hold rows."""
    table = Table(Disk(tmp_path))
    version = delta_commits.create(table, Schema.from_arrow(COLUMNS))
    rows = pa.Table.from_pylist([{"user": "\U00020000"}], COLUMNS)
    delta_commits.commit(table, version, add=[data_files.write(Disk(tmp_path), rows)])
    [file] = Table(Disk(tmp_path)).files(1)
    assert (file.low["user"], file.high["user"]) == ("\U00020000", "\U00020000")


def test_entries_of_windowlib_are_read_without_opening_the_table_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(Disk(tmp_path))
    version = delta_commits.create(table, Schema.from_arrow(COLUMNS))
    assert table.files(version) == []

    def opened(*_: object) -> None:
        raise AssertionError("the table was opened again")

    monkeypatch.setattr(DeltaTable, "update_incremental", opened)
    monkeypatch.setattr("windowlib.delta.tables.DeltaTable", opened)
    for number in (1, 2, 3):
        made = data_files.write(Disk(tmp_path), pa.table({"count": [number]}).cast(pa.schema([("count", pa.int64())])))
        version = delta_commits.commit(table, version, add=[made])
    assert [file.high["count"] for file in table.files(version)] == [1, 2, 3]


def test_an_entry_of_another_program_is_left_to_delta_rs(tmp_path: Path) -> None:
    table = Table(Disk(tmp_path))
    version = delta_commits.create(table, Schema.from_arrow(COLUMNS))
    assert table.files(version) == []
    rows = pa.Table.from_pylist([{"user": "ann", "at": datetime(2026, 1, 1, tzinfo=UTC)}], COLUMNS)
    write_deltalake(tmp_path, rows, mode="append")
    assert by_path(table.files(table.version())) == by_path(Table(Disk(tmp_path)).files(1))
    assert table.newest() is not None


@pytest.mark.fault(
    "a changed definition adds a column of times without a zone", "the table gets the feature that readers need"
)
def test_a_column_of_times_without_a_zone_may_be_added(tmp_path: Path) -> None:
    table = Table(Disk(tmp_path))
    version = delta_commits.create(table, Schema.from_arrow(pa.schema([("user", pa.string())])))
    version = delta_commits.commit(
        table,
        version,
        add=[data_files.write(Disk(tmp_path), pa.table({"user": ["ann"]}, pa.schema([("user", pa.string())])))],
    )
    wider = pa.schema([("user", pa.string()), ("clock", pa.timestamp("us"))])
    rows = pa.table({"user": ["ben"], "clock": [datetime(2026, 1, 1) + timedelta(hours=1)]}, wider)
    change = FileChange(add=[logged(data_files.write(Disk(tmp_path), rows))], columns=Schema.from_arrow(wider))
    version = delta_commits.commit_logged(table, version, change)
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["clock"].to_pylist(), key=str) == [
        datetime(2026, 1, 1, 1),
        None,
    ]
    assert table.files(version) == Table(Disk(tmp_path)).files(version)
    assert log.entry(Disk(tmp_path), version).changes_columns
