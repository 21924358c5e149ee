"""A prepared publication is rolled forward exactly once, by any number of runs, whatever happened to the tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema

from tests.support.log_files import file_of
from tests.support.simple_batches import one_by_one
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files, log
from windowlib.delta.table_change import logged
from windowlib.delta.tables import Tables
from windowlib.ledger import prepare
from windowlib.ledger.prepare import Publication, TableChange, Unreadable
from windowlib.model.errors import StateMismatch
from windowlib.publication import roll_forward
from windowlib.publication.roll_forward import ForeignChange, PublicationState
from windowlib.storage.disk import Disk

TABLES = ("open_windows", "results", "run_metrics")
SCHEMA = pa.schema([("value", pa.int64())])
JSON_SCHEMA = Schema.from_arrow(SCHEMA).to_json()


def version(root: Path, name: str) -> int | None:
    return Tables(Disk(root))[name].version()


def values(root: Path) -> dict[str, list[int]]:
    """Rows of every table."""
    return {
        name: sorted(
            value
            for file in Tables(Disk(root))[name].files(version(root, name))
            for value in pq.ParquetFile(root / name / file.path).read()["value"].to_pylist()
        )
        for name in TABLES
    }


def publication(root: Path, batch_id: int, *rows: int) -> Publication:
    """A batch that replaces the rows of `results` and appends to the other tables."""
    changes = []
    for name in TABLES:
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        start = version(root, name)
        file = data_files.write(Disk(folder), pa.table({"value": pa.array(rows, pa.int64())}))
        old = Tables(Disk(root))[name].files(start) if name == "results" else []
        changes.append(
            TableChange(
                name,
                start,
                schema=JSON_SCHEMA if start is None else None,
                add=(logged(file),),
                remove=tuple(map(logged, old)),
            )
        )
    return Publication(f"publication-{batch_id}", batch_id, tuple(changes), {"batch_id": batch_id})


def roll(root: Path, what: Publication) -> dict[str, int]:
    return roll_forward.roll_forward(Tables(Disk(root)), what, roll_forward.judge(Tables(Disk(root)), what))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A pipeline with two batches."""
    roll(tmp_path, publication(tmp_path, 1, 1, 2))
    roll(tmp_path, publication(tmp_path, 2, 3))
    return tmp_path


def test_it_creates_tables_and_replaces_files(root: Path) -> None:
    assert values(root) == {"open_windows": [1, 2, 3], "results": [3], "run_metrics": [1, 2, 3]}


@pytest.mark.fault("a publication is rolled forward twice", "the second time changes nothing")
def test_a_second_roll_forward_changes_nothing(root: Path) -> None:
    third = publication(root, 3, 4)
    versions = roll(root, third)
    assert {one.state for one in roll_forward.judge(Tables(Disk(root)), third)} == {PublicationState.DONE}
    assert roll(root, third) == versions
    assert {name: version(root, name) for name in TABLES} == versions


class Stop(BaseException):
    """Ends a run. No handler of the run catches it."""


def at_commit(patch: pytest.MonkeyPatch, number: int, act: Callable[[], None]) -> None:
    """Calls `act` once, just before the commit with this number (from 0)."""
    commit, seen = delta_commits.commit_logged, iter(range(99))
    one_by_one(patch)

    def committing(*arguments: object, **rest: object) -> int:
        if next(seen) == number:
            act()
        return commit(*arguments, **rest)  # type: ignore[arg-type]

    patch.setattr(delta_commits, "commit_logged", committing)


@pytest.mark.parametrize("begun", [False, True], ids=["the first batch", "a later batch"])
@pytest.mark.parametrize("killed_before", range(len(TABLES)))
@pytest.mark.fault("a run is killed between two table commits", "another run commits the rest")
def test_another_run_finishes_the_publication_of_a_killed_run(tmp_path: Path, begun: bool, killed_before: int) -> None:
    if begun:
        roll(tmp_path, publication(tmp_path, 1, 7))
    what = publication(tmp_path, 2, 8)

    def die() -> None:
        raise Stop

    with pytest.MonkeyPatch.context() as patch:
        at_commit(patch, killed_before, die)
        with pytest.raises(Stop):
            roll(tmp_path, what)
    versions = roll(tmp_path, what)
    before = [7] if begun else []
    assert values(tmp_path) == {"open_windows": [*before, 8], "results": [8], "run_metrics": [*before, 8]}
    assert versions == {name: version(tmp_path, name) for name in TABLES}


@pytest.mark.parametrize("woken_before", range(len(TABLES)))
@pytest.mark.fault("two runs roll one publication forward", "each accepts the other's commits")
def test_a_run_that_slept_accepts_commits_published_meanwhile(root: Path, woken_before: int) -> None:
    what = publication(root, 3, 4)
    others: list[dict[str, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        at_commit(patch, woken_before, lambda: others.append(roll(root, what)))
        assert [roll(root, what)] == others
    assert values(root)["run_metrics"] == [1, 2, 3, 4]


def test_a_run_that_slept_through_the_next_batch_finds_its_own_versions(root: Path) -> None:
    third = publication(root, 3, 4)
    versions = roll(root, third)
    roll(root, publication(root, 4, 5))
    assert roll(root, third) == versions
    assert values(root)["results"] == [5]


@pytest.mark.fault(
    "another program changes a table while a batch waits", "no table changes; the message names the foreign change"
)
def test_a_table_changed_by_another_program_is_named(root: Path) -> None:
    what = publication(root, 3, 4)
    DeltaTable(root / "run_metrics").delete("value = 1")
    before = {name: version(root, name) for name in TABLES}
    with pytest.raises(ForeignChange, match=r"another program changed table run_metrics: version 3, DELETE, by"):
        roll_forward.judge(Tables(Disk(root)), what)
    assert {name: version(root, name) for name in TABLES} == before


def test_a_compaction_that_kept_the_files_to_remove_is_accepted(root: Path) -> None:
    what = publication(root, 3, 4)
    DeltaTable(root / "run_metrics").optimize.compact()
    assert [one.state for one in roll_forward.judge(Tables(Disk(root)), what)][-1] is PublicationState.MOVED_ON
    roll(root, what)
    assert values(root)["run_metrics"] == [1, 2, 3, 4]


def compacted(root: Path) -> tuple[Publication, Path]:
    """A publication that replaces files of `results`, and a compaction that removed these files afterwards."""
    roll(root, replace(publication(root, 3, 4), changes=publication(root, 3, 4).changes[:1]))
    folder = root / "results"
    extra = data_files.write(Disk(folder), pa.table({"value": pa.array([30], pa.int64())}))
    newest = version(root, "results")
    assert newest is not None
    delta_commits.commit(Tables(Disk(root))["results"], newest, add=[extra])
    what = publication(root, 4, 5)
    DeltaTable(folder).optimize.compact()
    return what, folder


@pytest.mark.fault(
    "another program compacts files that a waiting batch removes",
    "the compaction is undone, then the batch is published",
)
def test_a_compaction_of_files_to_remove_is_undone(root: Path) -> None:
    what, folder = compacted(root)
    assert [one.state for one in roll_forward.judge(Tables(Disk(root)), what)][1] is PublicationState.COMPACTED
    roll(root, what)
    assert values(root)["results"] == [5]
    newest = version(root, "results")
    assert newest is not None
    assert not log.entry(Disk(folder), newest - 1).changes_data


def test_a_compaction_whose_old_files_are_deleted_stops_the_publication(root: Path) -> None:
    what, folder = compacted(root)
    (folder / what.changes[1].remove[0].path).unlink()
    with pytest.raises(
        ForeignChange,
        match=r"deleted file of table results, .* compacted .* `\S*windowlib abandon PIPELINE.toml --reason .….` drops",
    ):
        roll_forward.judge(Tables(Disk(root)), what)


@pytest.mark.fault(
    "another program compacts two files: the waiting batch replaces one, VACUUM deletes the other",
    "publication stops before any table changes; the table stays readable",
)
def test_a_compaction_is_not_undone_if_a_file_is_gone(root: Path) -> None:
    table = Tables(Disk(root))["results"]
    start = table.version()
    assert start is not None
    extra = data_files.write(Disk(root / "results"), pa.table({"value": pa.array([30], pa.int64())}))
    delta_commits.commit(table, start, add=[extra])
    what = publication(root, 4, 5)
    kept = [one for one in what.changes[1].remove if one.path != extra.path]
    changes = tuple(replace(one, remove=tuple(kept)) if one.name == "results" else one for one in what.changes)
    DeltaTable(root / "results").optimize.compact()
    (root / "results" / extra.path).unlink()
    with pytest.raises(
        ForeignChange, match=rf"file of table results, such as {extra.path}: .* compacted .*windowlib abandon "
    ):
        roll_forward.judge(Tables(Disk(root)), replace(what, changes=changes))
    with pytest.raises(delta_commits.LostFiles, match=rf"1 deleted file, such as {extra.path}.* from a backup"):
        delta_commits.restore(table, table.version(), start + 1)
    assert values(root)["results"] == [3, 30]


@pytest.mark.parametrize("left", ["", '{"commitInfo": {"oper'], ids=["empty", "cut"])
@pytest.mark.fault("a log entry of a table is damaged while a batch waits", "the error names it and how to recover")
def test_a_damaged_log_entry_is_named_with_its_repair(root: Path, left: str) -> None:
    what = publication(root, 3, 4)
    file_of(root / "results", 3).write_text(left)
    with pytest.raises(log.DamagedLog, match=r"0003\.json is (empty|cut off).*Restore the file from a backup"):
        roll_forward.judge(Tables(Disk(root)), what)


def test_a_written_publication_is_read_back(root: Path) -> None:
    what = publication(root, 3, 4)
    assert prepare.read(Disk(root), prepare.write(Disk(root), what)) == what


@pytest.mark.fault("the prepare file was changed or has another format", "refused by its checksum or its format")
def test_a_changed_or_newer_prepare_file_is_refused(root: Path) -> None:
    prepared = prepare.write(Disk(root), publication(root, 3, 4))
    file = root / prepared.path
    newer = json.dumps({**json.loads(file.read_text()), "format": prepare.FORMAT + 1})
    file.write_text(newer)
    with pytest.raises(Unreadable, match=r"is damaged: it has sha256 .*windowlib abandon "):
        prepare.read(Disk(root), prepared)
    again = replace(prepared, sha256=prepare.checksum(newer.encode()))
    with pytest.raises(StateMismatch, match="Another version prepared the batch"):
        prepare.read(Disk(root), again)
    file.unlink()
    with pytest.raises(Unreadable, match="cannot be read"):
        prepare.read(Disk(root), prepared)


def test_quiet_files_are_committed_without_a_change_of_data(root: Path) -> None:
    third = publication(root, 3, 4)
    results = next(one for one in third.changes if one.name == "results")
    quiet = replace(results, quiet=tuple(file.path for file in results.remove))
    third = replace(third, changes=tuple(quiet if one is results else one for one in third.changes))
    prepared = prepare.write(Disk(root), third)
    read = prepare.read(Disk(root), prepared)
    assert read == third
    at = roll(root, read)["results"]
    actions = log.actions(Disk(root / "results"), at)
    found = {kind: one["dataChange"] for action in actions for kind, one in action.items()
             if kind in ("add", "remove")}  # fmt: skip
    assert found == {"add": True, "remove": False}
    assert values(root)["results"] == [4]
