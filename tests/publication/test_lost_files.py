"""Missing data files of a committed table: a run that needs one names it and stops."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.clicks import clicks, clock, tables
from tests.support.damage import damage_rows
from tests.support.disks import folder_of
from windowlib.batches import pinned
from windowlib.batches.planning import plan
from windowlib.cli.exits import USER, pipeline_tables, print_error
from windowlib.contract.tables import TABLES
from windowlib.decisions.rollback import forecast_rollback, rollback
from windowlib.decisions.verdicts import abandon
from windowlib.definition.definition import Definition
from windowlib.delta import data_files, log
from windowlib.delta.commits import LostFiles
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Tables
from windowlib.publication.damage import InspectionDepth, check_all, check_exist
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.runs.run import RunRequest
from windowlib.runs.together import advance_together
from windowlib.storage.disk import Disk

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
FILES = 3
OTHERS = pytest.mark.long("in make test each way is tried with other tables, whose files are read alike")
READ_BY_A_RUN = ("results", "open_windows", "source_files", "watermarks", "run_metrics", "ledger")


@pytest.fixture(scope="module")
def after_two(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pipeline that has committed two of its three files."""
    folder = tmp_path_factory.mktemp("after") / "two"
    advance(clicks(folder, FILES), lambda: spark, clock=clock, max_batches=2)
    return folder


@pytest.fixture
def pipeline(after_two: Path, tmp_path: Path) -> Definition:
    return clicks(Path(shutil.copytree(after_two, tmp_path / "pipeline")), 0)


def versions(definition: Definition) -> dict[str, int | None]:
    opened = Tables(definition.store)
    return {name: opened[name].version() for name in TABLES if name != "ledger"}


def lose(definition: Definition, table: str) -> list[str]:
    """Deletes the files that the newest entry of a table's log has added."""
    folder, newest = folder_of(definition) / table, DeltaTable(folder_of(definition) / table).version()
    gone = sorted(log.entry(Disk(folder), newest).added)
    for path in gone:
        (folder / path).unlink()
    return gone


@pytest.mark.promised("a deleted file of a table is named, and nothing is published", "disk")
@pytest.mark.fault(
    "data files of a committed table are missing",
    "the run names table, file, version, who ran VACUUM and what to do; nothing changes",
)
@pytest.mark.parametrize("table", READ_BY_A_RUN)
def test_a_missing_file_is_named(spark: SparkSession, pipeline: Definition, table: str) -> None:
    before, gone = versions(pipeline), lose(pipeline, table)
    with pytest.raises(
        LostFiles, match=rf"^a file of table {table} is gone: version \d+ names .+ \(\d+ such file"
    ) as said:
        advance(pipeline, lambda: spark, clock=clock)
    assert any(path in str(said.value) for path in gone)
    assert versions(pipeline) == before


def test_a_file_that_is_deleted_while_the_engine_reads_is_named(
    spark: SparkSession, pipeline: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sail would read it as no rows, and the windows in flight would end without an error."""
    before, gone = versions(pipeline), list[str]()

    def check_then_lose(opened: Tables, table: str, files: Sequence[DataFile]) -> None:
        check_exist(opened, table, files)
        if table == "open_windows" and not gone:
            gone.extend(lose(pipeline, table))

    monkeypatch.setattr(pinned, "check_exist", check_then_lose)
    with pytest.raises(LostFiles, match=r"^a file of table open_windows is gone"):
        advance(pipeline, lambda: spark, clock=clock)
    assert gone
    assert versions(pipeline) == before


def damage(definition: Definition, table: str, how: str) -> list[str]:
    """Cuts the files that the newest entry of a table's log has added, or overwrites their ends, or only their rows."""
    folder, newest = folder_of(definition) / table, DeltaTable(folder_of(definition) / table).version()
    damaged = sorted(log.entry(Disk(folder), newest).added)
    for path in (folder / path for path in damaged):
        if how == "rows":
            damage_rows(path)
            continue
        written = path.read_bytes()
        path.write_bytes(
            written[: len(written) // 2] + (b"" if how == "cut" else bytes(len(written) - len(written) // 2))
        )
    return damaged


@pytest.mark.fault(
    "data files of a committed table are cut or overwritten",
    "a run that reads them names table, file, version and what to do; nothing changes",
)
@pytest.mark.parametrize(
    ("table", "how"),
    [
        pytest.param("open_windows", "cut", marks=pytest.mark.both),
        ("open_windows", "overwritten"),
        pytest.param("open_windows", "rows", marks=pytest.mark.both),
        ("source_files", "cut"),
        ("run_metrics", "overwritten"),
        ("ledger", "rows"),
        *(pytest.param(*other, marks=OTHERS) for other in (("source_files", "rows"), ("ledger", "overwritten"))),
    ],
)
def test_a_damaged_file_is_named(spark: SparkSession, pipeline: Definition, table: str, how: str) -> None:
    before, damaged = versions(pipeline), damage(pipeline, table, how)
    with pytest.raises(LostFiles, match=rf"^a file of table {table} is damaged: version \d+ names .+ \(") as said:
        advance(pipeline, lambda: spark, clock=clock)
    assert any(path in str(said.value) for path in damaged)
    why = {"cut": "bytes, and had", "overwritten": "its footer cannot be read: ", "rows": "its rows cannot be read: "}
    assert why[how] in str(said.value)
    assert "from a backup of the warehouse" in str(said.value)
    assert versions(pipeline) == before


@pytest.mark.both
@pytest.mark.parametrize("how", ["gone", "rows"])
def test_of_several_pipelines_the_one_that_has_lost_a_file_names_it(
    spark: SparkSession, pipeline: Definition, after_two: Path, tmp_path: Path, how: str
) -> None:
    whole = clicks(Path(shutil.copytree(after_two, tmp_path / "whole")), 0).model_copy(update={"name": "whole"})
    lose(pipeline, "open_windows") if how == "gone" else damage(pipeline, "open_windows", how)
    lost, other = advance_together([RunRequest.of(one, clock) for one in (pipeline, whole)], lambda: spark)
    assert isinstance(lost.error, LostFiles)
    assert "a file of table open_windows is " in str(lost.error)
    assert (other.error, [report.batch_id for report in other.reports]) == (None, [3])


def test_a_file_of_ids_that_is_gone_is_named_once_a_batch_may_repeat_one(
    spark: SparkSession, pipeline: Definition
) -> None:
    """A batch reads only the id files that may hold one of its own ids."""
    before, arrived = versions(pipeline), sorted(pipeline.source.path.glob("*.parquet"))
    lose(pipeline, "seen_ids")
    pq.write_table(pq.read_table(arrived[1]).slice(1), arrived[-1])
    with pytest.raises(LostFiles, match=r"^a file of table seen_ids is gone: "):
        advance(pipeline, lambda: spark, clock=clock)
    assert versions(pipeline) == before


def test_the_vacuum_is_named(spark: SparkSession, pipeline: Definition) -> None:
    """Rows were deleted, VACUUM deleted the old files, and then the table was restored without them."""
    table = DeltaTable(folder_of(pipeline) / "results")
    left = table.version()
    table.delete("user = 'u1'")
    table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    table.restore(left, ignore_missing_files=True)
    with pytest.raises(LostFiles, match=r"its log has a VACUUM, version \d+, by .+ at 20\d\d-"):
        advance(pipeline, lambda: spark, clock=clock)


def test_how_to_continue_without_a_backup(spark: SparkSession, after_two: Path, pipeline: Definition) -> None:
    lose(pipeline, "results")
    with pytest.raises(LostFiles, match=r"`\S*windowlib rollback PIPELINE.toml --to-batch 1 --reason .….`"):
        advance(pipeline, lambda: spark, clock=clock)
    assert forecast_rollback(pipeline, 1, clock).rows
    rollback(pipeline, 1, "ann", "files are gone", clock)
    advance(pipeline, lambda: spark, clock=clock, max_batches=1)
    undisturbed = clicks(after_two, 0)
    for name in ("results", "open_windows", "late_events"):
        assert counted(pipeline, name) == counted(undisturbed, name)


def test_the_way_back_is_to_a_batch_that_was_committed(
    spark: SparkSession, pipeline: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batch 3 was abandoned and batch 4 wrote the file. The message once named batch 3."""
    plan(pipeline, clock)
    abandon(pipeline, "ann", "a wrong file", clock)
    assert [one.batch_id for one in advance(pipeline, lambda: spark, clock=clock)] == [4]
    lose(pipeline, "results")
    with pytest.raises(LostFiles, match=r"a batch before 4, .*`\S*windowlib rollback PIPELINE.toml --to-batch 2 "):
        check_all(Tables(pipeline.store), InspectionDepth())
    tables = Tables(pipeline.store)
    files = tables["results"].files(tables["results"].version())
    for file in (folder_of(pipeline) / "ledger").glob("*.parquet"):  # then there is no way back
        file.unlink()
    monkeypatch.setattr(data_files, "_CONTENTS", {})  # as in a new process
    with pytest.raises(LostFiles, match=r"^a file of table results is gone: .* from a backup of the warehouse$"):
        check_exist(tables, "results", files)


def counted(definition: Definition, table: str) -> list[str]:
    """Number of rows of a table, of all batches."""
    rows = read_table(definition, table).to_pylist()
    return sorted(str({name: value for name, value in row.items() if name != "batch_id"}) for row in rows)


def test_other_commands_name_it_too(pipeline: Definition, capsys: pytest.CaptureFixture[str]) -> None:
    lose(pipeline, "late_events")
    pipeline_tables.set(pipeline.store)
    with pytest.raises(FileNotFoundError) as error:
        tables(pipeline, ["late_events"])
    assert print_error(error.value, "read") == USER
    assert capsys.readouterr().err.startswith("error: a file of table late_events is gone: ")
