"""Operations on tables: restore, adopt, rollback. The runs after them are exact."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.clicks import clicks, clock, tables
from tests.support.disks import folder_of
from tests.support.killed import stopped
from windowlib.batches.planning import ledger_of
from windowlib.cli.main import main
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.adopt import adopt, forecast_adopt
from windowlib.decisions.forecast import NothingToDo
from windowlib.decisions.restore import forecast_restore, restore
from windowlib.decisions.rollback import forecast_rollback, rollback
from windowlib.decisions.verdicts import abandon
from windowlib.definition.definition import Definition
from windowlib.delta.tables import Tables
from windowlib.ledger import prepare
from windowlib.publication.foreign_changes import CannotUndo
from windowlib.publication.readers import read_table
from windowlib.publication.roll_forward import ForeignChange
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
FILES = 3
BETWEEN = pytest.mark.long(
    "tests/world/schedules kills a rollback at any of its steps, without an engine, in make test"
)


@pytest.fixture(scope="module")
def after_two(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a pipeline that has committed two of its three files."""
    folder = tmp_path_factory.mktemp("after") / "two"
    advance(clicks(folder, FILES), lambda: spark, clock=clock, max_batches=2)
    return folder


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, after_two: Path, tmp_path_factory: pytest.TempPathFactory) -> Definition:
    return run(copy(after_two, tmp_path_factory.mktemp("after") / "three"), spark)


@pytest.fixture
def pipeline(after_two: Path, tmp_path: Path) -> Definition:
    return copy(after_two, tmp_path / "pipeline")


def copy(pipeline: Path, folder: Path) -> Definition:
    shutil.copytree(pipeline, folder)
    return clicks(folder, 0)


def run(definition: Definition, spark: SparkSession) -> Definition:
    advance(definition, lambda: spark, clock=clock)
    return definition


def kinds(definition: Definition) -> list[str]:
    rows = read_table(definition, "ledger").sort_by("sequence").to_pylist()
    return [row["kind"] for row in rows if row["kind"] not in ("claim", "release", "heartbeat")]


def versions(definition: Definition) -> dict[str, int | None]:
    opened = Tables(definition.store)
    return {name: opened[name].version() for name in COMMIT_ORDER}


def users(definition: Definition, table: str = "results") -> set[str]:
    return set(read_table(definition, table)["user"].to_pylist())


def windows(definition: Definition) -> set[tuple[object, ...]]:
    named = ("user", "window_start", "window_end", "clicks", "total")
    return {tuple(row[name] for name in named) for row in read_table(definition, "results").to_pylist()}


def erase(definition: Definition, table: str = "results") -> int:
    """Deletes the rows of a user as another program would. Returns their number."""
    rows = sum(row["user"] == "u1" for row in read_table(definition, table).to_pylist())
    DeltaTable(folder_of(definition) / table).delete("user = 'u1'")
    assert rows > 0
    return rows


# -- backup -----------------------------------------------------------------------------------------------------------


@pytest.mark.fault(
    "the warehouse is copied, log of the ledger first, while a run publishes",
    "on the copy, the next run undoes the batch and repeats it",
)
def test_runs_continue_on_a_copy_taken_during_a_run(
    spark: SparkSession, pipeline: Definition, undisturbed: Definition, tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(folder_of(pipeline) / "ledger" / "_delta_log", backup / "ledger" / "_delta_log")
    run(pipeline, spark)
    ledger, left_out = folder_of(pipeline) / "ledger", shutil.ignore_patterns("_delta_log")
    shutil.copytree(ledger, backup / "ledger", ignore=left_out, dirs_exist_ok=True)
    shutil.copytree(folder_of(pipeline), backup, ignore=shutil.ignore_patterns("ledger"), dirs_exist_ok=True)
    shutil.rmtree(folder_of(pipeline))
    backup.rename(folder_of(pipeline))
    assert len(tables(pipeline)["source_files"]) == FILES - 1
    assert tables(run(pipeline, spark)) == tables(undisturbed)


# -- restore ----------------------------------------------------------------------------------------------------------


def test_what_another_program_deleted_is_taken_back(
    spark: SparkSession, pipeline: Definition, undisturbed: Definition
) -> None:
    before, rows = tables(pipeline), erase(pipeline)
    with pytest.raises(
        ForeignChange,
        match=r"windowlib restore PIPELINE.toml .* undoes the change, .*windowlib adopt PIPELINE.toml .* keeps it",
    ):
        run(pipeline, spark)
    [change] = forecast_restore(pipeline, clock).rows
    assert (change.table, change.added, change.removed) == ("results", rows, 0)
    assert restore(pipeline, "ann", "by mistake", clock) == ["results"]
    assert tables(pipeline) == before
    assert tables(run(pipeline, spark)) == tables(undisturbed)
    with pytest.raises(NothingToDo):
        restore(pipeline, "ann", "again", clock)


@pytest.mark.fault(
    "another program deletes rows while a prepared batch waits",
    "`restore` undoes the deletion; the next run publishes the batch as prepared",
)
def test_a_prepared_batch_is_published_after_a_restore(
    spark: SparkSession, pipeline: Definition, undisturbed: Definition
) -> None:
    with stopped("commit:results"):
        run(pipeline, spark)
    for table in ("open_windows", "results"):  # one that the batch has committed, one that it has not
        DeltaTable(folder_of(pipeline) / table).delete("user = 'u1'")
    with pytest.raises(ForeignChange):
        run(pipeline, spark)
    assert restore(pipeline, "ann", "by mistake", clock) == ["open_windows", "results"]
    assert tables(run(pipeline, spark)) == tables(undisturbed)


@pytest.mark.long("two tables are restored in make test, and tests/world/schedules kills that at each step")
def test_a_restore_is_killed_between_two_tables(
    spark: SparkSession, pipeline: Definition, undisturbed: Definition
) -> None:
    for table in ("open_windows", "results"):
        erase(pipeline, table)
    with stopped("restore:results"):
        restore(pipeline, "ann", "by mistake", clock)
    with pytest.raises(ForeignChange, match="table results"):
        run(pipeline, spark)
    assert restore(pipeline, "ann", "by mistake", clock) == ["results"]
    assert tables(run(pipeline, spark)) == tables(undisturbed)


@pytest.mark.fault(
    "VACUUM has deleted files that a restore needs", "`restore` names them and changes nothing; `adopt` is possible"
)
def test_deleted_files_cannot_be_restored(pipeline: Definition) -> None:
    erase(pipeline)
    DeltaTable(folder_of(pipeline) / "results").vacuum(0, enforce_retention_duration=False, dry_run=False)
    before = versions(pipeline)
    with pytest.raises(CannotUndo, match=r"no way back to version \d+ of table results: .* deleted file"):
        restore(pipeline, "ann", "by mistake", clock)
    assert versions(pipeline) == before
    assert adopt(pipeline, "ann", "no way back", clock) == 3


# -- adopt ------------------------------------------------------------------------------------------------------------


@pytest.mark.fault(
    "another program deletes rows on purpose", "`adopt` keeps the deletion; the next run continues from there"
)
def test_adopt_keeps_the_deletion_of_another_program(spark: SparkSession, pipeline: Definition) -> None:
    rows = {name: erase(pipeline, name) for name in ("open_windows", "results")}
    forecast = forecast_adopt(pipeline, clock)
    assert {one.table: (one.added, one.removed) for one in forecast.rows} == {n: (0, r) for n, r in rows.items()}
    assert any(note.startswith("open_windows: removed rows never fire") for note in forecast.notes)
    assert adopt(pipeline, "ann", "request 4711", clock) == 3
    assert "u1" not in users(pipeline) | users(pipeline, "open_windows")
    state = ledger_of(pipeline, clock).state()
    assert state.commit is not None
    assert state.commit.decision is not None
    assert (state.commit.decision.kind, state.commit.decision.who) == ("adopt", "ann")
    [report] = advance(pipeline, lambda: spark, clock=clock)
    assert report.batch_id == 4
    assert all(check.success for check in report.checks if check.severity == "critical")
    assert "u2" in users(pipeline)


@pytest.mark.parametrize(
    "moment",
    [
        "commit:open_windows",
        pytest.param("commit:results", marks=pytest.mark.long("before the first commit, in make test, is as good")),
    ],
)
def test_a_prepared_batch_is_abandoned_before_the_change_is_kept(
    spark: SparkSession, pipeline: Definition, undisturbed: Definition, moment: str
) -> None:
    with stopped(moment):
        run(pipeline, spark)
    DeltaTable(folder_of(pipeline) / "seen_ids").delete("event_id = '1-0'")
    assert "batch 3, which is not finished, is abandoned first" in forecast_adopt(pipeline, clock).notes
    before = tables(pipeline)
    assert adopt(pipeline, "ann", "forget it", clock) == 4
    changed = {name for name, rows in tables(pipeline).items() if rows != before[name]}
    assert changed == {"seen_ids"}
    assert not any(row["event_id"] == "1-0" for row in read_table(pipeline, "seen_ids").to_pylist())
    run(pipeline, spark)
    assert windows(pipeline) == windows(undisturbed)


def test_a_change_on_top_of_an_unfinished_batch_cannot_be_kept(spark: SparkSession, pipeline: Definition) -> None:
    with stopped("commit:results"):
        run(pipeline, spark)
    DeltaTable(folder_of(pipeline) / "open_windows").delete()
    before = versions(pipeline)
    with pytest.raises(CannotUndo, match="rewrote rows of an unfinished batch"):
        adopt(pipeline, "ann", "why", clock)
    assert versions(pipeline) == before


def test_a_change_on_top_of_an_unfinished_batch_is_taken_back_and_the_batch_given_up(
    spark: SparkSession, pipeline: Definition, undisturbed: Definition
) -> None:
    """After the restore the table holds the changes of the unfinished batch again, which no command may name."""
    with stopped("commit:results"):
        run(pipeline, spark)
    DeltaTable(folder_of(pipeline) / "open_windows").delete()
    assert restore(pipeline, "ann", "by mistake", clock) == ["open_windows"]
    with pytest.raises(NothingToDo):
        restore(pipeline, "ann", "once more", clock)
    assert rollback(pipeline, 1, "ann", "all of it again", clock) == 4
    run(pipeline, spark)
    assert windows(pipeline) == windows(undisturbed)


@pytest.mark.fault(
    "another program deletes rows by deletion vectors, so file names stay",
    "the run stops, names the version, and says how Spark undoes it",
)
def test_a_deletion_vector_stops_the_run(spark: SparkSession, pipeline: Definition, undisturbed: Definition) -> None:
    log, version = folder_of(pipeline) / "results" / "_delta_log", DeltaTable(folder_of(pipeline) / "results").version()
    actions = map(json.loads, (log / f"{version:020}.json").read_text().splitlines())
    before = next(action["add"] for action in actions if "add" in action)
    inline = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
    marked = {**before, "dataChange": True, "deletionVector": {**inline, "cardinality": 1}}

    def commit(number: int, operation: str, gone: dict[str, Any], new: dict[str, Any]) -> None:
        removed = {name: gone[name] for name in ("path", "dataChange", "deletionVector") if name in gone}
        entry = [{"commitInfo": {"operation": operation}}, {"remove": removed}, {"add": new}]
        (log / f"{number:020}.json").write_text("\n".join(map(json.dumps, entry)))

    commit(version + 1, "DELETE", before, marked)
    takes_back = rf"RESTORE TABLE delta.`\S*results` TO VERSION AS OF {version}"
    with pytest.raises(ForeignChange, match=rf"version {version + 1}, DELETE, .* deletion vectors .*{takes_back}"):
        run(pipeline, spark)
    for decide in (restore, adopt):
        with pytest.raises(CannotUndo, match=rf"version {version + 1} .* changed its deletion vectors"):
            decide(pipeline, "ann", "why", clock)
    commit(version + 2, "RESTORE", marked, before)
    assert tables(run(pipeline, spark)) == tables(undisturbed)


# -- roll back --------------------------------------------------------------------------------------------------------


def renumbered(rows: list[str], by: int) -> list[str]:
    """Rows of batches 2 and 3 with the batch ids that later batches would have given them."""
    pattern = re.compile(r"('batch_id': |'figure': 'batch_id', 'value': )([23])\b")
    return sorted(pattern.sub(lambda found: found[1] + str(int(found[2]) + by), row) for row in rows)


def test_a_rollback_and_the_runs_after_it_are_exact(
    spark: SparkSession, pipeline: Definition, undisturbed: Definition
) -> None:
    forecast = forecast_rollback(pipeline, 1, clock)
    assert "undone: batch 2" in forecast.notes
    assert "1 source file will be read again by the next run" in forecast.notes
    assert rollback(pipeline, 1, "ann", "a wrong file", clock) == 3
    state = ledger_of(pipeline, clock).state()
    assert state.commit is not None
    assert (state.commit.to_sequence, state.plan) == (1, None)
    assert {row["batch_id"] for row in read_table(pipeline, "source_files").to_pylist()} == {1}
    run(pipeline, spark)
    assert tables(pipeline) == {name: renumbered(rows, 2) for name, rows in tables(undisturbed).items()}
    assert not list(folder_of(pipeline).glob("_prepared/*"))


@pytest.mark.long("what an operator has kept is rolled back in make test, and a rollback is exact there")
def test_a_rollback_is_rolled_back(pipeline: Definition) -> None:
    before = tables(pipeline)
    rollback(pipeline, 1, "ann", "a wrong file", clock)
    assert rollback(pipeline, 2, "ann", "it was right", clock) == 4
    assert tables(pipeline) == before


@pytest.mark.fault(
    "the process that rolls back is killed", "nothing has changed, or the next run finishes the rollback"
)
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(moment, marks=BETWEEN)
        for moment in ("ledger:plan", "commit:open_windows", "commit:results", "ledger:commit")
    ],
)
def test_a_rollback_is_killed(spark: SparkSession, pipeline: Definition, undisturbed: Definition, moment: str) -> None:
    before = tables(pipeline)
    with stopped(moment):
        rollback(pipeline, 1, "ann", "a wrong file", clock)
    assert tables(pipeline) == before
    run(pipeline, spark)
    by = 0 if moment == "ledger:plan" else 2
    assert tables(pipeline) == {name: renumbered(rows, by) for name, rows in tables(undisturbed).items()}


def test_a_rollback_that_was_killed_is_abandoned_and_no_file_is_lost(
    spark: SparkSession, pipeline: Definition, undisturbed: Definition
) -> None:
    with stopped("commit:results"):
        rollback(pipeline, 1, "ann", "a wrong file", clock)
    before = tables(pipeline)
    assert abandon(pipeline, "ann", "it was right", clock) == 3
    assert tables(pipeline) == before
    assert rollback(pipeline, 1, "ann", "it was wrong", clock) == 4


@pytest.mark.long("a change that is kept abandons one by the same step, in make test")
def test_a_waiting_batch_is_abandoned_by_a_rollback(
    spark: SparkSession, pipeline: Definition, undisturbed: Definition
) -> None:
    with stopped("commit:results"):
        run(pipeline, spark)
    assert "batch 3, which is not finished, is abandoned first" in forecast_rollback(pipeline, 1, clock).notes
    assert rollback(pipeline, 1, "ann", "a wrong file", clock) == 4
    assert kinds(pipeline)[-4:] == ["abandon", "plan", "prepare", "commit"]
    run(pipeline, spark)
    assert tables(pipeline) == {name: renumbered(rows, 3) for name, rows in tables(undisturbed).items()}


@pytest.mark.parametrize(("to", "why"), [(2, "batch 2 is the newest"), (7, "no batch 7 is committed")])
def test_a_rollback_to_the_newest_or_an_unknown_batch_is_refused(pipeline: Definition, to: int, why: str) -> None:
    with pytest.raises(NothingToDo, match=why):
        rollback(pipeline, to, "ann", "why", clock)


def test_a_batch_whose_files_are_deleted_cannot_be_rolled_back_to(pipeline: Definition) -> None:
    for name in ("open_windows", "results"):
        DeltaTable(folder_of(pipeline) / name).vacuum(0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(
        CannotUndo, match=r"no way back to batch 1: .* deleted files? of table \w+, such as .* VACUUM deletes"
    ):
        forecast_rollback(pipeline, 1, clock)


@pytest.mark.fault(
    "VACUUM has deleted files of a prepared batch",
    "the run names them; after `abandon` the next run computes the batch again",
)
def test_a_prepared_file_that_vacuum_deleted_is_named(spark: SparkSession, pipeline: Definition) -> None:
    with stopped("commit:open_windows"):
        run(pipeline, spark)
    prepared = ledger_of(pipeline, clock).state().prepared
    assert prepared is not None
    [change] = [one for one in prepare.read(pipeline.store, prepared).changes if one.name == "results"]
    (folder_of(pipeline) / "results" / change.add[0].path).unlink()
    with pytest.raises(
        prepare.Unreadable, match=r"deleted file.* VACUUM with a short retention .* `\S*windowlib abandon PIPELINE"
    ):
        run(pipeline, spark)
    assert abandon(pipeline, "ann", "the files are gone", clock) == 3
    run(pipeline, spark)


# -- the commands -----------------------------------------------------------------------------------------------------


@pytest.fixture
def call(
    pipeline: Definition, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)

    def calls(command: str, *options: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(command, str(pipeline.file), *options)
        return (int(ended.value.code or 0), *capsys.readouterr())

    return calls


def test_a_dry_run_changes_nothing_and_yes_needs_a_reason(
    pipeline: Definition, call: Callable[..., tuple[int, str, str]]
) -> None:
    before = kinds(pipeline)
    code, out, _ = call("rollback", "--to-batch", "1", "--dry-run")
    assert (code, out.splitlines()[0]) == (0, "roll back to batch 1")
    assert "undone: batch 2" in out
    assert call("rollback", "--to-batch", "1", "--yes")[0] == 2
    assert call("rollback", "--to-batch", "1", "--reason", "why")[0] == 2  # no operator can be asked
    assert kinds(pipeline) == before


def test_each_command_records_who_and_why(pipeline: Definition, call: Callable[..., tuple[int, str, str]]) -> None:
    said = ("--yes", "--reason", "a test", "--who", "ann", "--json")
    erase(pipeline)
    assert json.loads(call("restore", *said)[1].splitlines()[-1])["tables"] == ["results"]
    erase(pipeline)
    assert json.loads(call("adopt", *said)[1].splitlines()[-1])["batch_id"] == 3
    assert json.loads(call("rollback", "--to-batch", "2", *said)[1].splitlines()[-1])["batch_id"] == 4
    rows = [row for row in read_table(pipeline, "ledger").sort_by("sequence").to_pylist() if row["who"]]
    assert [(row["kind"], row["who"], row["reason"]) for row in rows] == [
        ("restore", "ann", "a test"),
        ("commit", "ann", "a test"),
        ("commit", "ann", "a test"),
    ]
    code, out, _ = call("status")
    assert code == 0
    assert "roll back to batch 2. Reason: a test (ann)" in out
