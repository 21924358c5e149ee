"""Logs stay short: a checkpoint every ten entries, without deleted files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema

from tests.support.disks import folder_of
from tests.support.log_files import file_of
from tests.support.recording_store import Stopped, recorded
from tests.support.simple_batches import Reader, arrive, compute_simply, no_spark, pipeline
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import COMMIT_ORDER, LEDGER
from windowlib.delta import checkpoints, data_files, log_writing
from windowlib.delta import commits as delta_commits
from windowlib.delta.log import HINT, CutLog, check_can_open, last_checkpoint, oldest_version
from windowlib.delta.tables import Table
from windowlib.maintenance.maintain import maintain
from windowlib.publication.foreign_changes import foreign_changes
from windowlib.runs.advance import advance
from windowlib.storage import disk as storage_disk
from windowlib.storage.disk import Disk

NUMBERS = pa.schema([("number", pa.int64())])
OF_BEFORE = {
    "delta.deletedFileRetentionDuration": "interval 30 days",
    "delta.logRetentionDuration": "interval 365 days",
}


def replaced_often(folder: Path, commits: int) -> Table:
    """A table of one row in one file, which each commit replaces; the files of before are deleted."""
    table = Table(Disk(folder))
    version = delta_commits.create(table, Schema.from_arrow(NUMBERS))
    for number in range(commits):
        made = data_files.write(Disk(folder), pa.table({"number": [number]}, NUMBERS))
        old = table.files(version)
        version = delta_commits.commit(table, version, add=[made], remove=old)
        checkpoints.make_if_due(table, version)
        for file in old:
            (folder / file.path).unlink()
    return table


def entries_to_read(folder: Path) -> int:
    """Number of entries that a process reads to open a table: those after its newest checkpoint."""
    names = [path.name for path in (folder / "_delta_log").iterdir() if path.name[0].isdigit()]
    last = max((int(name[:20]) for name in names if ".checkpoint." in name), default=-1)
    return sum(name.endswith(".json") and int(name[:20]) > last for name in names)


def removals_repeated(folder: Path) -> list[str]:
    """Removed files in the newest checkpoint."""
    newest = max((folder / "_delta_log").glob("*.checkpoint.parquet"))
    return [one["path"] for one in pq.read_table(newest)["remove"].to_pylist() if one and one["path"]]


def test_a_table_is_opened_with_ten_entries_however_many_there_are(tmp_path: Path) -> None:
    replaced_often(tmp_path, 28)
    assert entries_to_read(tmp_path) <= checkpoints.ENTRIES


def test_a_checkpoint_omits_deleted_files(tmp_path: Path) -> None:
    table = replaced_often(tmp_path, 28)
    newest = table.version()
    assert newest is not None
    assert removals_repeated(tmp_path)
    held = [file.path for file in table.files(newest)]
    checkpoints.checkpoint(table, newest)
    assert entries_to_read(tmp_path) <= checkpoints.ENTRIES
    assert removals_repeated(tmp_path) == []
    again = Table(Disk(tmp_path))
    assert [file.path for file in again.files(again.version())] == held


def test_a_commit_whose_log_maintenance_has_shortened_needs_no_checkpoint(tmp_path: Path) -> None:
    table = replaced_often(tmp_path, 28)
    version = table.version()
    assert version is not None
    late = Table(Disk(tmp_path))
    delta_commits.commit(table, version)
    checkpoints.checkpoint(table, version + 1, worth=1)
    checkpoints.delete(table.store, checkpoints.superfluous(table.store, version + 1, worth=1))
    assert oldest_version(table.store) == version + 1
    checkpoints.make_if_due(late, version)
    assert last_checkpoint(table.store) == version + 1


def test_a_commit_does_not_list_a_long_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = replaced_often(tmp_path, 25)
    Disk(tmp_path).delete(
        file.path for file in checkpoints.superfluous(Disk(tmp_path), 15)
    )  # as maintenance: the first entry is gone
    looked_at: list[Path] = []
    glob = Path.glob
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: looked_at.append(folder) or glob(folder, pattern))
    monkeypatch.setattr(DeltaTable, "is_deltatable", lambda folder: looked_at.append(Path(folder)) or True)
    again = Table(Disk(tmp_path))
    newest = again.version()
    assert newest is not None
    delta_commits.commit(again, newest)
    assert looked_at == []
    with pytest.raises(CutLog):
        check_can_open(Disk(tmp_path), 3)
    assert table.version() == newest + 1


@pytest.mark.parametrize("killed_after", [1, 2, 3, 4])
def test_a_killed_deletion_leaves_each_version_from_the_oldest_on(tmp_path: Path, killed_after: int) -> None:
    table = replaced_often(tmp_path, 40)
    log_files = checkpoints.superfluous(table.store, 35)
    assert sum(".checkpoint" in file.path for file in log_files) == 2
    with recorded(Disk(tmp_path)) as store:
        store.record.stop_at = killed_after
        with suppress(Stopped):
            checkpoints.delete(store, log_files)
        assert [len(store.record.requests)] == [killed_after]
    oldest = oldest_version(table.store)
    assert oldest == [0, 9, 19, 29][killed_after - 1]
    for version in range(oldest, 41):
        DeltaTable(tmp_path, version=version)


@pytest.mark.parametrize("hint", ["", "{}", '{"version": 7}', "[]"])
def test_a_log_without_a_checkpoint_hint_is_listed(tmp_path: Path, hint: str) -> None:
    replaced_often(tmp_path, 28)
    Disk(tmp_path).delete(file.path for file in checkpoints.superfluous(Disk(tmp_path), 15))
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text(hint)
    check_can_open(Disk(tmp_path), 28)
    check_can_open(Disk(tmp_path), 9)
    with pytest.raises(CutLog):
        check_can_open(Disk(tmp_path), 8)


def test_a_new_checkpoint_of_another_process_has_no_hint_yet(tmp_path: Path) -> None:
    table = replaced_often(tmp_path, 10)
    assert last_checkpoint(Disk(tmp_path)) == 9
    (tmp_path / HINT).unlink()
    delta_commits.sync_commits(table, None, 10)
    assert delta_commits.sync_version(table, 9) == 9
    checkpoints.checkpoint(table, 9)
    assert delta_commits.commit(Table(Disk(tmp_path)), 10) == 11


@pytest.mark.parametrize("hint", ["", "{}", "[]", '{"version": 7}', None])
def test_a_checkpoint_without_a_hint_omits_deleted_files(tmp_path: Path, hint: str | None) -> None:
    """The hint file is cut, names another checkpoint, or is missing."""
    table, named = replaced_often(tmp_path, 12), tmp_path / HINT
    if hint is None:
        named.unlink()
    else:
        named.write_text(hint)
    checkpoints.checkpoint(table, 12)
    assert removals_repeated(tmp_path) == []
    assert (named.read_text() if named.exists() else None) == hint


def test_no_writer_removes_entries_of_cuts_that_are_kept_for_years(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(log_writing.CONFIGURATION, "delta.logRetentionDuration", "interval 0 days")
    table = replaced_often(tmp_path, 12)  # as if a year had passed
    assert entries_to_read(tmp_path) < 12
    assert checkpoints.can_open(Disk(tmp_path), 0)
    assert table.files(0) == []


def test_maintenance_gives_old_tables_the_settings_of_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute_simply(monkeypatch)
    monkeypatch.setattr(storage_disk, "flush", Path.stat)  # no power fails here
    definition = pipeline(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(log_writing, "CONFIGURATION", OF_BEFORE)
        for number in (1, 2):
            arrive(tmp_path, number)
            advance(definition, no_spark)
    root = folder_of(definition)
    DeltaTable(root / "results").alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})
    maintain(definition, "ann")
    there = [name for name in (*COMMIT_ORDER, LEDGER.name) if (root / name).exists()]
    settings = {name: DeltaTable(root / name).metadata().configuration for name in there}
    assert settings.pop("results") == {**log_writing.CONFIGURATION, "delta.logRetentionDuration": "interval 9 days"}
    assert all(one == log_writing.CONFIGURATION for one in settings.values())
    ledger = ledger_of(definition)
    commit = ledger.state().commit
    assert commit is not None
    assert foreign_changes(ledger.tables, commit.versions, None) == []
    arrive(tmp_path, 3)
    advance(definition, no_spark)
    Reader(tmp_path).watch()
    versions = {name: DeltaTable(root / name).version() for name in COMMIT_ORDER if (root / name).exists()}
    maintain(definition, "ann")
    assert {name: DeltaTable(root / name).version() for name in versions} == versions


def test_a_hint_to_a_missing_checkpoint_is_ignored(tmp_path: Path) -> None:
    """The hint may name a checkpoint that is missing; then the log is listed."""
    replaced_often(tmp_path, 12)
    log = tmp_path / "_delta_log"
    [checkpoint] = log.glob("*.checkpoint.parquet")
    newest = int(checkpoint.name.partition(".")[0])
    assert last_checkpoint(Disk(tmp_path)) == newest
    checkpoint.unlink()
    assert (last_checkpoint(Disk(tmp_path)), file_of(tmp_path, newest).exists()) == (None, True)
    (log.parent / HINT).unlink()
    assert last_checkpoint(Disk(tmp_path)) is None
