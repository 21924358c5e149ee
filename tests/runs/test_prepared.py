"""A prepared batch is published as it was prepared, whatever was edited, refused or done by other programs
meanwhile.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, clicks, clock, tables
from tests.support.disks import folder_of
from tests.support.killed import stopped
from tests.support.log_files import file_of
from tests.support.other_versions import written_by_another_version
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.verdicts import abandon, approve
from windowlib.definition.definition import Definition
from windowlib.delta import log
from windowlib.delta.log_writing import RefusedCommit
from windowlib.delta.tables import Tables
from windowlib.ledger.ledger import Rejected
from windowlib.publication.readers import read_table
from windowlib.publication.roll_forward import ForeignChange, LostRows
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

NEVER = """
{"name": "never", "expectations": [{"type": "expect_column_values_to_be_between",
 "kwargs": {"column": "rows_read", "max_value": 1}, "severity": "critical", "description": "one row a batch",
 "id": null, "meta": {}}], "meta": {}, "notes": null}
"""


def no_spark() -> SparkSession:
    raise AssertionError("nothing is computed")


def versions(definition: Definition) -> dict[str, int | None]:
    opened = Tables(definition.store)
    return {name: opened[name].version() for name in COMMIT_ORDER}


@pytest.fixture(scope="module")
def after_one(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pipeline that has read one file."""
    folder = tmp_path_factory.mktemp("after") / "one"
    advance(clicks(folder, files=1), lambda: spark, clock=clock)
    return folder


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, after_one: Path, tmp_path_factory: pytest.TempPathFactory) -> Definition:
    """The same pipeline after its second file."""
    definition = clicks(Path(shutil.copytree(after_one, tmp_path_factory.mktemp("after") / "two")), files=2)
    advance(definition, lambda: spark, clock=clock)
    return definition


@pytest.fixture
def begun(after_one: Path, tmp_path: Path) -> Definition:
    """A copy of that folder, for one test."""
    shutil.copytree(after_one, tmp_path, dirs_exist_ok=True)
    return clicks(tmp_path, 0)


@pytest.mark.fault(
    "a setting is edited between the death of a run and the next run",
    "the prepared batch is published unchanged; the edit holds from the next batch",
)
def test_a_setting_edited_after_a_kill_holds_from_the_next_batch(
    spark: SparkSession, undisturbed: Definition, tmp_path: Path
) -> None:
    definition = clicks(tmp_path / "edited", files=2)
    with stopped("commit:results"):
        advance(definition, lambda: spark, clock=clock, max_batches=1)
    edited = CLICKS.replace('out_of_orderness = "5m"', 'out_of_orderness = "5h"')
    advance(clicks(tmp_path / "edited", 0, edited), no_spark, clock=clock, max_batches=1)
    advance(clicks(tmp_path / "edited", 0), lambda: spark, clock=clock)
    assert tables(definition) == tables(undisturbed)


def test_the_next_attempt_reports_the_batch_as_the_first_would_have(
    spark: SparkSession, undisturbed: Definition, tmp_path: Path
) -> None:
    definition = clicks(tmp_path / "killed", files=1)
    with stopped("ledger:commit"):
        advance(definition, lambda: spark, clock=clock)
    [report] = advance(definition, no_spark, clock=clock)
    counted = read_table(undisturbed, "run_metrics").to_pylist()
    known = {row["figure"]: row["value"] for row in counted if row["batch_id"] == 1 and row["value"] is not None}
    assert (report.batch_id, report.figures) == (1, known)
    assert report.checks
    assert all(check.success for check in report.checks)


def refused(folder: Path, spark: SparkSession) -> Definition:
    """A pipeline whose only batch was refused by a check of the user."""
    folder.mkdir(parents=True)
    (folder / "never.json").write_text(NEVER)
    definition = clicks(
        folder, 2, CLICKS.replace("max_files_per_run = 1\n", "") + '[checks]\nfigures_suite = "never.json"\n'
    )
    with pytest.raises(Rejected, match="one row a batch"):
        advance(definition, lambda: spark, clock=clock)
    return definition


@pytest.mark.fault(
    "a refused batch is approved after its source files are gone",
    "exactly the judged rows are published; nothing is read again",
)
def test_an_approved_batch_is_published_as_judged(spark: SparkSession, tmp_path: Path) -> None:
    definition = refused(tmp_path / "refused", spark)
    with pytest.raises(Rejected):
        advance(definition, no_spark, clock=clock)
    assert not (folder_of(definition) / "results" / "_delta_log").exists()
    approve(definition, "ann", "a busy day", clock)
    for file in (definition.file.parent / "incoming").iterdir():
        file.unlink()  # nothing is read again
    [report] = advance(definition, no_spark, clock=clock, max_batches=1)
    assert report.figures["rows_read"] == 164
    assert read_table(definition, "results").num_rows == report.figures["results_rows_after"]


def test_what_is_abandoned_leaves_no_file(spark: SparkSession, tmp_path: Path) -> None:
    definition = refused(tmp_path / "refused", spark)
    assert abandon(definition, "ann", "too many", clock) == 1
    left = [file.relative_to(folder_of(definition)).parts[0] for file in folder_of(definition).rglob("*.parquet")]
    assert set(left) == {"ledger"}
    assert not (folder_of(definition) / "_prepared").exists()


@pytest.mark.fault(
    "another program deletes rows of `results`",
    "the run stops before any table changes and names version, operation and user",
)
def test_rows_deleted_by_another_program_stop_the_run(spark: SparkSession, begun: Definition, tmp_path: Path) -> None:
    definition = begun
    DeltaTable(folder_of(definition) / "results").delete("user = 'u1'")
    clicks(tmp_path, files=2)
    before = versions(definition)
    with pytest.raises(ForeignChange, match=r"another program changed table results: version \d+, DELETE, by"):
        advance(definition, lambda: spark, clock=clock)
    assert versions(definition) == before
    DeltaTable(folder_of(definition) / "results").restore(before["results"] - 1 if before["results"] else 0)
    assert [report.batch_id for report in advance(definition, lambda: spark, clock=clock)] == [2]


@pytest.mark.long("one that leaves no statistics, which says less, is accepted in make test")
def test_a_compaction_is_accepted(
    spark: SparkSession, undisturbed: Definition, begun: Definition, tmp_path: Path
) -> None:
    definition = begun
    for name in ("results", "watermarks", "run_metrics", "open_windows"):
        DeltaTable(folder_of(definition) / name).optimize.compact()
        DeltaTable(folder_of(definition) / name).vacuum(0, enforce_retention_duration=False, dry_run=False)
    clicks(tmp_path, files=2)
    advance(definition, lambda: spark, clock=clock)
    assert tables(definition) == tables(undisturbed)


@pytest.mark.fault(
    "another program's compaction leaves no statistics in the log", "row counts come from the footers of its files"
)
def test_a_compaction_without_statistics_is_accepted(
    spark: SparkSession, undisturbed: Definition, tmp_path: Path
) -> None:
    shutil.copytree(undisturbed.file.parent, tmp_path, dirs_exist_ok=True)
    definition = clicks(tmp_path, 0)
    for name in ("results", "source_files"):
        DeltaTable(folder_of(definition) / name).optimize.compact()
        entry = file_of(folder_of(definition) / name, DeltaTable(folder_of(definition) / name).version())
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        assert [action["add"].pop("stats") for action in actions if "add" in action]
        entry.write_text("\n".join(map(json.dumps, actions)))
    clicks(tmp_path, files=3)
    assert [report.batch_id for report in advance(definition, lambda: spark, clock=clock)] == [3]
    assert read_table(definition, "source_files").num_rows == 3


@pytest.mark.fault("another program puts a constraint on a table", "the run stops and names it until it is dropped")
def test_a_constraint_added_by_another_program_stops_the_run(
    spark: SparkSession, begun: Definition, tmp_path: Path
) -> None:
    definition = begun
    results = DeltaTable(folder_of(definition) / "results")
    results.alter.add_constraint({"few": "clicks < 20"})
    clicks(tmp_path, files=2)
    with pytest.raises(RefusedCommit, match=r"another program gave table results delta\.constraints\.few = clicks"):
        advance(definition, lambda: spark, clock=clock)
    assert DeltaTable(folder_of(definition) / "results").version() == results.version()
    results.alter.drop_constraint("few")
    assert [report.batch_id for report in advance(definition, lambda: spark, clock=clock)] == [2]


@pytest.mark.parametrize(
    "left",
    [
        pytest.param("", id="empty", marks=pytest.mark.long("one that is cut, in make test, is as unreadable")),
        pytest.param('{"add": {"pa', id="cut"),
    ],
)
@pytest.mark.fault("a power cut leaves a log entry empty or cut", "the error names the entry and how to recover")
def test_a_log_entry_cut_by_a_power_cut_is_named(
    spark: SparkSession, begun: Definition, tmp_path: Path, left: str
) -> None:
    definition = begun
    clicks(tmp_path, files=2)
    newest = versions(definition)["open_windows"]
    assert newest is not None
    file_of(folder_of(definition) / "open_windows", newest).write_text(left)
    with pytest.raises(log.DamagedLog, match=r"open_windows/_delta_log/0+1\.json is .* Restore the file from a backup"):
        advance(definition, lambda: spark, clock=clock)


def test_rows_that_are_gone_although_the_ledger_counted_them_stop_the_run(
    spark: SparkSession, begun: Definition, tmp_path: Path
) -> None:
    definition = begun
    clicks(tmp_path, files=2)
    newest = versions(definition)["open_windows"]
    assert newest is not None
    entry = file_of(folder_of(definition) / "open_windows", newest)
    actions = [one for one in map(json.loads, entry.read_text().splitlines()) if "add" not in one]
    for one in actions:
        one.get("commitInfo", {}).pop("windowlib_actions", None)  # else the entry itself says what it lacks
    entry.write_text("\n".join(map(json.dumps, actions)))
    with pytest.raises(LostRows, match=r"open_windows holds 0 rows at version 1, but batch 1 recorded \d+"):
        advance(definition, lambda: spark, clock=clock)


@pytest.mark.fault(
    "another program's commit claims to change no row but loses a file", "the run stops; the error says how to recover"
)
def test_a_foreign_commit_that_loses_a_file_stops_the_run(
    spark: SparkSession, begun: Definition, tmp_path: Path
) -> None:
    definition = begun
    clicks(tmp_path, files=2)
    newest = versions(definition)["source_files"]
    assert newest is not None
    DeltaTable(folder_of(definition) / "source_files").delete()
    entry = file_of(folder_of(definition) / "source_files", newest + 1)
    entry.write_text(entry.read_text().replace('"dataChange":true', '"dataChange":false'))
    with pytest.raises(LostRows, match=r"source_files holds 0 rows at version \d+, but the newest batch recorded 1 "):
        advance(definition, lambda: spark, clock=clock)


@pytest.mark.fault("a newer version of windowlib has written to the ledger", "the run stops and says so")
def test_an_unknown_kind_of_ledger_row_stops_the_run(spark: SparkSession, begun: Definition, tmp_path: Path) -> None:
    definition = begun
    written_by_another_version(ledger_of(definition, clock), {"kind": "migrate"})
    with pytest.raises(Exception, match="has the unknown kind migrate"):
        ledger_of(definition, clock).state()
