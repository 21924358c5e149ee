"""A Delta table as a source: each event counts once, despite changes of the table and its log."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction
from pyspark.sql import SparkSession

from tests.source import checkpoints_v2
from tests.support.clicks import CLICKS, SCHEMA, START_MS, clicks, clock, events
from tests.support.log_files import file_of
from windowlib.batches.planning import ledger_of, plan
from windowlib.decisions.set_aside import set_aside, take_back
from windowlib.definition.definition import Definition
from windowlib.delta import log
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.source.listed import SourceError
from windowlib.storage.disk import Disk

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

DELTA = CLICKS.replace('"parquet"', '"delta"')
ALL_AT_ONCE = DELTA.replace("max_files_per_run = 1\n", "")
HOUR_MS = 3_600_000
AS_DELETED = pytest.mark.long("rows that are deleted, in make test, are removed by the same actions of the log")


def append(folder: Path, number: int) -> None:
    write_deltalake(folder / "incoming", pa.Table.from_pylist(events(number), schema=SCHEMA), mode="append")


def table_of(folder: Path) -> DeltaTable:
    return DeltaTable(folder / "incoming")


def clean_up(folder: Path) -> int:
    """Writes a checkpoint and deletes the log before it, as after `delta.logRetentionDuration`. Returns its version."""
    table = table_of(folder)
    table.create_checkpoint()
    for version in range(table.version()):
        (folder / "incoming" / "_delta_log" / f"{version:020}.json").unlink(missing_ok=True)
    return table.version()


def run(definition: Definition, spark: SparkSession, **how: Any) -> int:
    """Advances and returns the number of rows read."""
    return sum(report.figures["rows_read"] or 0 for report in advance(definition, lambda: spark, clock=clock, **how))


def rows(*numbers: int) -> int:
    return sum(len(events(number)) for number in numbers)


@pytest.mark.fault("the log of a Delta source is cleaned up", "runs and reruns continue after the last version read")
def test_the_log_before_the_cursor_may_be_cleaned_up(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, ALL_AT_ONCE)
    append(tmp_path, 1)
    append(tmp_path, 2)
    assert run(definition, spark) == rows(1, 2)
    clean_up(tmp_path)
    assert run(definition, spark) == 0
    append(tmp_path, 3)
    assert run(definition, spark) == rows(3)
    span = Rerun(START_MS, START_MS + 3 * HOUR_MS, "a test", "ann")
    [report] = advance(definition, lambda: spark, clock=clock, rerun=span)
    assert report.figures["files_missing"] == 0
    assert verify(definition, VerifyRequest(), spark, clock).differences == []


def test_a_pipeline_starts_on_a_table_with_a_cleaned_log(spark: SparkSession, tmp_path: Path) -> None:
    """The pipeline reads file by file while others are appended, compacted and cleaned up."""
    definition = clicks(tmp_path, 0, DELTA)
    append(tmp_path, 1)
    append(tmp_path, 2)
    clean_up(tmp_path)
    assert run(definition, spark, max_batches=1) == rows(1)
    append(tmp_path, 3)
    table_of(tmp_path).optimize.compact()
    assert run(definition, spark, max_batches=1) == rows(2)
    assert run(definition, spark) == rows(3)
    clean_up(tmp_path)
    append(tmp_path, 4)
    assert run(definition, spark) == rows(4)
    read = Counter(row["path"] for row in read_table(definition, "source_files").to_pylist())
    assert set(read.values()) == {1}
    assert len(read) == 4


@pytest.mark.fault("the log of a Delta source is cleaned up before a run read it", "the run names the gap")
def test_a_gap_in_the_log_is_named(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, ALL_AT_ONCE)
    append(tmp_path, 1)
    assert run(definition, spark) == rows(1)
    append(tmp_path, 2)
    append(tmp_path, 3)
    clean_up(tmp_path)
    append(tmp_path, 4)
    with pytest.raises(SourceError, match=r"version 1 of the Delta table .* so rows may be missing"):
        plan(definition, clock)
    assert ledger_of(definition).state().plan is None


@pytest.mark.fault("a Delta source is deleted and created again", "the run says so; nothing is read")
def test_a_recreated_table_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """The new table has fewer versions than were read, or more."""
    definition = clicks(tmp_path, 0, ALL_AT_ONCE)
    for number in (1, 2, 3):
        append(tmp_path, number)
    assert run(definition, spark) == rows(1, 2, 3)
    for versions in (1, 5):
        shutil.rmtree(tmp_path / "incoming")
        for number in range(versions):
            append(tmp_path, number)
        with pytest.raises(SourceError, match=r"not the Delta table that clicks has read up to version 2"):
            plan(definition, clock)
        assert ledger_of(definition).state().plan is None


@pytest.mark.long("without a removal before, in make test, it is another by the same id")
def test_a_table_recreated_after_a_removal_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, ALL_AT_ONCE.replace("[source]", '[source]\nremovals = "rerun"'))
    append(tmp_path, 1)
    run(definition, spark)
    table_of(tmp_path).delete("user = 'u1'")
    advance(definition, lambda: spark, clock=clock)
    shutil.rmtree(tmp_path / "incoming")
    for number in range(5):
        append(tmp_path, number)
    with pytest.raises(SourceError, match=r"not the Delta table that clicks has read up to version 1"):
        plan(definition, clock)


def test_texts_with_line_ends(spark: SparkSession, tmp_path: Path) -> None:
    """The log also has them, as the least and greatest text of a file."""
    definition = clicks(tmp_path, 0, ALL_AT_ONCE)
    users = ("a\u2028b", "a\x85b", "a\x0bb\x1cc", "a\r\nb")
    for number, user in enumerate(users):
        rows = [{**event, "id": f"{number}-{event['id']}", "user": user} for event in events(1)]
        for _ in range(2):
            write_deltalake(tmp_path / "incoming", pa.Table.from_pylist(rows, schema=SCHEMA), mode="append")
    assert run(definition, spark, finish=True) == 2 * len(rows) * len(users)
    assert {row["user"] for row in read_table(definition, "results").to_pylist()} == {*users}


@pytest.mark.long("a version that removes rows, in make test, is passed over by the same setting")
def test_a_table_replaced_in_its_own_log_is_read_further(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, ALL_AT_ONCE.replace("[source]", '[source]\nremovals = "skip"'))
    append(tmp_path, 1)
    assert run(definition, spark) == rows(1)
    DeltaTable.create(str(tmp_path / "incoming"), table_of(tmp_path).schema(), mode="overwrite")
    append(tmp_path, 2)
    assert run(definition, spark) == rows(2)
    append(tmp_path, 3)
    assert run(definition, spark) == rows(3)


def test_column_mapping_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, ALL_AT_ONCE)
    append(tmp_path, 1)
    assert run(definition, spark) == rows(1)
    entry = file_of(tmp_path / "incoming", 0)
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    about = next(one["metaData"] for one in actions if "metaData" in one)
    schema = json.loads(about["schemaString"])
    for number, field in enumerate(schema["fields"], 1):  # as Spark writes it for DROP COLUMN value, ADD COLUMN value
        own = "col-1" if field["name"] == "value" else field["name"]
        field["metadata"] = {"delta.columnMapping.physicalName": own, "delta.columnMapping.id": number}
    about |= {"schemaString": json.dumps(schema), "configuration": {"delta.columnMapping.mode": "name"}}
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    mapped = file_of(tmp_path / "incoming", 1)
    mapped.write_text(
        "\n".join(map(json.dumps, ({"commitInfo": {"operation": "ALTER"}}, protocol, {"metaData": about})))
    )
    with pytest.raises(SourceError, match=r"uses column mapping, .* its column 'value' is 'col-1' in the files"):
        plan(definition, clock)


@pytest.mark.fault(
    "a Delta source has V2 checkpoints with sidecars, and its log is cleaned up", "each file is read once"
)
@pytest.mark.parametrize(
    "read_before",
    [0, pytest.param(5, marks=pytest.mark.long("where none was read, in make test, such checkpoints are read alike"))],
)
def test_checkpoints_v2_are_read(spark: SparkSession, tmp_path: Path, read_before: int) -> None:
    definition = clicks(tmp_path, 0, ALL_AT_ONCE)
    (tmp_path / "incoming").rmdir()
    checkpoints_v2.unpack(tmp_path / "incoming")
    if read_before:
        few = clicks(tmp_path, 0, DELTA.replace("max_files_per_run = 1", f"max_files_per_run = {read_before}"))
        assert run(few, spark, max_batches=1) == rows(*range(1, 1 + read_before))
        definition = clicks(tmp_path, 0, ALL_AT_ONCE)
    entries = tmp_path / "incoming" / "_delta_log"
    newest = max(int(path.name.partition(".")[0]) for path in entries.glob("*.checkpoint.*.json"))
    for version in range(newest):
        (entries / f"{version:020}.json").unlink()
    assert run(definition, spark) == rows(*range(1 + read_before, 1 + checkpoints_v2.FILES))
    assert verify(definition, VerifyRequest(), spark, clock).differences == []


def test_other_files_of_a_log_are_left_to_the_library(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, ALL_AT_ONCE)
    append(tmp_path, 1)
    append(tmp_path, 2)
    log = tmp_path / "incoming" / "_delta_log"
    both = "".join((log / f"{version:020}.json").read_text() for version in (0, 1))
    (log / f"{0:020}.{1:020}.compacted.json").write_text(both)
    assert plan(definition, clock)


@pytest.mark.parametrize("kind", ["DELETE", *(pytest.param(kind, marks=AS_DELETED) for kind in ("UPDATE", "WRITE"))])
@pytest.mark.fault(
    "rows of a Delta source are removed that should stay in windows", 'with `removals = "skip"` this version is skipped'
)
def test_a_version_that_removes_rows_is_skipped_if_asked(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    definition = clicks(tmp_path, 0, ALL_AT_ONCE)
    append(tmp_path, 1)
    assert run(definition, spark) == rows(1)
    table = table_of(tmp_path)
    match kind:
        case "DELETE":
            table.delete("value > 50")
        case "UPDATE":
            table.update(updates={"value": "0"}, predicate="value > 50")
        case "WRITE":
            other = pa.Table.from_pylist(events(4), schema=SCHEMA)
            write_deltalake(tmp_path / "incoming", other, mode="overwrite")
    append(tmp_path, 2)
    with pytest.raises(SourceError, match=rf'version 1 of .* \({kind}.*\) removes rows.*source.removals = "skip"'):
        plan(definition, clock)
    skipping = definition.model_copy(update={"source": definition.source.model_copy(update={"removals": "skip"})})
    assert run(skipping, spark) == rows(2)
    append(tmp_path, 3)
    assert run(definition, spark) == rows(3)  # what was passed over is behind the cursor


@pytest.mark.fault("a deleted version of a Delta source is restored", "each of its files is read once")
def test_a_file_that_is_added_again_is_read_once(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, ALL_AT_ONCE)
    append(tmp_path, 1)
    table = table_of(tmp_path)
    table.delete()
    table.restore(0)
    skipping = definition.model_copy(update={"source": definition.source.model_copy(update={"removals": "skip"})})
    assert run(skipping, spark) == rows(1)
    assert run(skipping, spark) == 0


def append_files(folder: Path, *numbers: int) -> None:
    """One version with a file of each number, the last written first."""
    table, adds = table_of(folder), []
    for age, number in enumerate(numbers):
        data, name = pa.Table.from_pylist(events(number), schema=SCHEMA), f"{number}.parquet"
        pq.write_table(data, folder / "incoming" / name)
        size = (folder / "incoming" / name).stat().st_size
        adds.append(AddAction(name, size, {}, (100 - age) * 1000, True, json.dumps({"numRecords": data.num_rows})))
    table.create_write_transaction(adds, mode="append", schema=table.schema())


@pytest.mark.fault("a version of a Delta source adds more files than a batch may read", "each file is read once")
def test_a_version_of_several_files_is_read_file_by_file(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, DELTA)
    append(tmp_path, 1)
    append_files(tmp_path, 2, 3)
    assert [run(definition, spark, max_batches=1) for _ in range(3)] == [rows(number) for number in (1, 2, 3)]
    assert run(definition, spark) == 0


def test_a_file_that_was_set_aside_is_read_once_it_is_taken_back(spark: SparkSession, tmp_path: Path) -> None:
    """Later runs have passed its version, and the log may be gone."""
    definition = clicks(tmp_path, 0, ALL_AT_ONCE)
    append(tmp_path, 1)
    before = {path.name for path in (tmp_path / "incoming").glob("*.parquet")}
    append(tmp_path, 2)
    [name] = {path.name for path in (tmp_path / "incoming").glob("*.parquet")} - before
    set_aside(definition, name, "ann", "a test", clock)
    append(tmp_path, 3)
    assert run(definition, spark) == rows(1, 3)
    clean_up(tmp_path)
    assert run(definition, spark) == 0
    take_back(definition, name, "ann", "a test", clock)
    assert run(definition, spark) == rows(2)
    assert run(definition, spark) == 0


def totals(definition: Definition) -> dict[Any, int]:
    rows = read_table(definition, "results").to_pylist()
    return {row["user"]: row["total"] for row in rows if row["user"] != "end"}


def stored(number: int, *values: str) -> pa.Table:
    """Events of these users, and one of a day later, which lets their windows fire."""
    rows = [{"id": f"{number} {n}", "user": value, "at_ms": START_MS, "value": n} for n, value in enumerate(values, 1)]
    end = {"id": f"{number} end", "user": "end", "at_ms": START_MS + 24 * HOUR_MS, "value": 0}
    return pa.Table.from_pylist([*rows, end], schema=SCHEMA)


def test_a_partition_has_the_type_of_the_schema(spark: SparkSession, tmp_path: Path) -> None:
    """The values are texts that look like numbers."""
    definition = clicks(tmp_path, 0, ALL_AT_ONCE)
    rows = stored(1, "1", "01", "007").filter(pa.array([True, True, True, False]))
    write_deltalake(tmp_path / "incoming", rows, mode="append", partition_by=["user"])
    run(definition, spark, finish=True)
    assert totals(definition) == {"1": 1, "01": 2, "007": 3}


@pytest.mark.both
def test_a_folder_s_column_stays_a_text_where_its_values_look_like_numbers(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, CLICKS.replace("max_files_per_run = 1\n", ""))
    for number, user in enumerate(("berlin", "007"), 1):
        folder = tmp_path / "incoming" / f"user={user}"
        folder.mkdir(parents=True)
        pq.write_table(stored(number, user).slice(0, 1).drop_columns("user"), folder / f"{number}.parquet")
        run(definition, spark, finish=number == 2)
    assert totals(definition) == {"berlin": 1, "007": 1}


@pytest.mark.parametrize("cleaned_up", [False, True], ids=["its log", "a checkpoint"])
def test_a_shallow_clone_is_refused(tmp_path: Path, cleaned_up: bool) -> None:
    """The log, written by hand as Delta writes it, names files of the cloned table."""
    definition, of = clicks(tmp_path, 0, DELTA), tmp_path / "cloned"
    write_deltalake(of, pa.Table.from_pylist(events(1), schema=SCHEMA))
    actions = log.actions(Disk(of), 0)
    for action in actions:
        if "add" in action:
            action["add"]["path"] = f"{of.as_uri()}/{action['add']['path']}"
    (tmp_path / "incoming" / "_delta_log").mkdir(parents=True)
    file_of(tmp_path / "incoming", 0).write_text("\n".join(map(json.dumps, actions)))
    if cleaned_up:
        append(tmp_path, 2)
        clean_up(tmp_path)
    with pytest.raises(SourceError, match=r"has files outside of its folder, such as file:/.*: it is a shallow clone"):
        plan(definition, clock)
    assert ledger_of(definition).state().plan is None
