"""Open tables show commits of others, and every run opens its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from tests.support.disks import folder_of
from tests.support.log_files import file_of
from windowlib.delta import checkpoints
from windowlib.delta import commits as delta_commits
from windowlib.delta import small_tables as small
from windowlib.delta import tables as delta
from windowlib.delta.log import CutLog, DamagedLog
from windowlib.delta.log_writing import RefusedCommit
from windowlib.delta.tables import Table, Tables
from windowlib.storage.disk import Disk

SCHEMA = Schema.from_arrow(pa.schema([("number", pa.int64())]))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """An empty table."""
    table = Table(Disk(tmp_path / "table"))
    assert table.version() is None
    delta_commits.create(table, SCHEMA)
    assert table.version() == 0
    return table


def test_commits_of_others_are_seen(table: Table) -> None:
    small.append_rows(Table(table.store), 0, [{"number": 1}])
    assert table.version() == 1
    assert [file.rows for file in table.files(1)] == [1]
    assert table.files(0) == []


@pytest.mark.fault("a table has a newer version than the one read", "the commit is refused")
def test_a_commit_prepared_on_an_older_version_is_refused(table: Table) -> None:
    small.append_rows(table, 0, [{"number": 1}])
    with pytest.raises(delta_commits.Conflict):
        small.append_rows(table, 0, [{"number": 2}])
    assert table.version() == 1


@pytest.mark.fault("another program has made a table append-only", "the commit fails at once with the reason")
def test_a_refused_commit_is_not_a_conflict(table: Table) -> None:
    small.append_rows(table, 0, [{"number": 1}])
    DeltaTable(folder_of(table)).alter.set_table_properties({"delta.appendOnly": "true"})
    before = table.version()
    assert before is not None
    with pytest.raises(RefusedCommit, match=r"table table delta.appendOnly = true"):
        delta_commits.commit(table, before, remove=table.files(before))
    assert table.version() == before


def test_commit_attempts_end() -> None:
    tried = list[int]()

    def is_slower() -> None:
        tried.append(len(tried))
        raise delta_commits.Conflict

    with pytest.raises(RefusedCommit, match="other writers were faster"):
        delta_commits.again_on_conflict(is_slower, at_most=2)
    assert len(tried) == 2


def test_a_recreated_table_is_another_table(table: Table) -> None:
    small.append_rows(table, 0, [{"number": 1}])
    assert table.version() == 1
    shutil.rmtree(folder_of(table))
    assert table.version() is None
    delta_commits.create(table, SCHEMA)
    assert table.version() == 0


def test_a_table_that_was_recreated_unseen_is_read_again(table: Table) -> None:
    small.append_rows(table, 0, [{"number": 1}])
    assert [file.rows for file in table.files(1)] == [1]
    shutil.rmtree(folder_of(table))
    other = Table(table.store)
    delta_commits.create(other, SCHEMA)
    small.append_rows(other, 0, [{"number": 1}, {"number": 2}])
    assert table.version() == 1
    assert [file.rows for file in table.files(1)] == [2]


@pytest.mark.fault("the beginning of a table's log was cleaned up", "the table is read from its checkpoint")
def test_a_log_without_its_beginning_is_read_from_the_checkpoint(table: Table) -> None:
    small.append_rows(table, 0, [{"number": 1}])
    newest = table.newest()
    assert newest is not None
    newest.create_checkpoint()
    (folder_of(table) / "_delta_log" / "00000000000000000000.json").unlink()
    for one in (table, Table(table.store)):
        assert one.version() == 1
        assert [file.rows for file in one.files(1)] == [1]
    small.append_rows(Table(table.store), 1, [{"number": 2}])
    assert table.version() == 2


@pytest.mark.fault("maintenance shortens a log while a writer sleeps", "the writer changes nothing and says so")
@pytest.mark.parametrize("sleeps", ["before it looks", "before its entry"])
def test_a_writer_that_slept_while_the_log_was_shortened_writes_nothing(
    table: Table, sleeps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 3):
        small.append_rows(table, number - 1, [{"number": number}])
    sleeper, real = Table(table.store), Disk.create
    assert sleeper.version() == 3

    def shortened() -> None:
        for number in range(4, 16):
            small.append_rows(table, number - 1, [{"number": number}])
        checkpoints.checkpoint(table, 15)
        table.store.delete(file.path for file in checkpoints.superfluous(table.store, 15))

    def late(store: Disk, path: str, data: bytes) -> bool:
        monkeypatch.undo()
        shortened()
        return real(store, path, data)

    if sleeps == "before it looks":
        shortened()
    else:
        monkeypatch.setattr(Disk, "create", late)
    with pytest.raises(
        delta_commits.Conflict, match="version 3 of table table can no longer be opened: its log now begins"
    ):
        small.append_rows(sleeper, 3, [{"number": 99}])
    with pytest.raises(CutLog, match="start it again"):
        Table(table.store).at(3)
    numbers = [row["number"] for row in table.rows(table.files(table.version()), None)]
    assert sorted(numbers) == list(range(1, 16))


def test_delta_rs_opens_no_table_that_only_windowlib_writes(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(folder: str, **options: int) -> DeltaTable:
        asked.append(folder)
        return DeltaTable(folder, **options)

    monkeypatch.setattr(delta, "DeltaTable", counted)
    tables = Tables(Disk(folder_of(table).parent))
    for number in (1, 2, 3):
        assert tables["table"].version() == number - 1
        small.append_rows(tables["table"], number - 1, [{"number": number}])
        assert [file.rows for file in tables["table"].files(number)] == [1] * number
    assert asked == []


@pytest.mark.fault(
    "maintenance shortens a log past the version that a sleeping process has read",
    "the process reads again, without an error about a missing file",
)
def test_a_shortened_log_is_not_a_missing_file(table: Table) -> None:
    for number in range(4):
        small.append_rows(table, number, [{"number": number}])
    checkpoints.checkpoint(Table(table.store), 4, worth=1)
    table.store.delete(file.path for file in checkpoints.superfluous(table.store, 4, worth=1))
    asleep = Table(table.store)
    with pytest.raises(delta_commits.Conflict, match="can no longer be opened"):
        small.append_rows(asleep, 1, [{"number": 9}])
    assert delta_commits.sync_version(asleep, 1) == 1  # a checkpoint holds it
    checkpoints.checkpoint(asleep, 1, worth=1)
    assert asleep.version() == 4
    file_of(folder_of(table), 4).unlink()
    with pytest.raises(FileNotFoundError):
        delta_commits.sync_version(asleep, 4)


@pytest.mark.fault("maintenance shortens a log between two looks of a reader", "the reader looks again")
def test_a_log_that_is_shortened_between_two_looks_is_read_again(table: Table) -> None:
    small.append_rows(table, 0, [{"number": 1}])
    reader, looks = Table(table.store), list[int]()

    def look(version: int) -> list[int]:
        looks.append(version)
        if len(looks) == 1:
            for number in (2, 3):
                small.append_rows(table, number - 1, [{"number": number}])
            checkpoints.checkpoint(table, 3, worth=1)
            table.store.delete(file.path for file in checkpoints.superfluous(table.store, 3, worth=1))
        return [file.rows for file in Table(table.store).files(version)]

    assert small.again_if_cut(reader, look) == (3, [1, 1, 1])
    assert looks == [1, 3]


def test_a_state_from_before_the_log_was_shortened_is_read_again(table: Table) -> None:
    reader = Table(table.store)
    assert reader.version() == 0
    assert reader.files(0) == []
    for number in (1, 2, 3):
        small.append_rows(table, number - 1, [{"number": number}])
    checkpoints.checkpoint(table, 3, worth=1)
    table.store.delete(file.path for file in checkpoints.superfluous(table.store, 3, worth=1))
    assert [file.rows for file in reader.files(3)] == [1, 1, 1]


@pytest.mark.fault(
    "another program gives a table an unknown format or an unreadable schema",
    "the error names the table, the reason and how to recover",
)
@pytest.mark.parametrize(
    ("kind", "name", "value", "reason"),
    [
        ("protocol", "minReaderVersion", 99, "minimum reader version 99"),
        ("metaData", "schemaString", "{no schema", "key must be a string"),
    ],
)
def test_a_table_of_an_unknown_format_is_named(table: Table, kind: str, name: str, value: object, reason: str) -> None:
    first = file_of(folder_of(table), 0)
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    changed = [{of: {**said, name: value} if of == kind else said for of, said in one.items()} for one in actions]
    first.write_text("".join(f"{json.dumps(one)}\n" for one in changed))
    for ask in (lambda: Table(table.store).description(0), lambda: Table(table.store).files(0)):
        with pytest.raises(
            DamagedLog, match=rf"table {folder_of(table).name} cannot be opened \(.*{reason}.*Restore /"
        ):
            ask()


@pytest.mark.parametrize("left", ["nothing", "a file", "an empty folder"])
def test_a_version_of_a_table_that_is_gone_is_named(table: Table, left: str) -> None:
    assert table.version() is not None
    shutil.rmtree(folder_of(table))
    if left == "a file":
        folder_of(table).touch()
    elif left == "an empty folder":
        folder_of(table).mkdir()
    with pytest.raises(
        DamagedLog, match=rf"table {folder_of(table).name} does not exist: version 0 is needed. Restore /"
    ):
        Table(table.store).files(0)
