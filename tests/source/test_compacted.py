"""OPTIMIZE and VACUUM on a Delta source before it was read: no event is lost, and none counts twice."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.source.changed_table import (
    BY_ITSELF,
    HOUR_MS,
    IN_TIME,
    Changes,
    append,
    check,
    ended,
    published,
    run,
    sessions,
    table_of,
)
from tests.support.clicks import SCHEMA, START_MS, clicks, clock, events
from tests.support.log_files import file_of
from windowlib.batches.planning import plan
from windowlib.decisions.set_aside import set_aside, take_back
from windowlib.definition.definition import Definition
from windowlib.inspection.status import status
from windowlib.ledger.rerun_request import Rerun, RerunRefused, time_range
from windowlib.plans.partitions import DAY_MS
from windowlib.publication.readers import read_table
from windowlib.source.listed import SourceError

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

SKIPPING = IN_TIME.replace("[watermark]", 'removals = "skip"\n[watermark]')
ONE_BY_ONE = IN_TIME.replace("[watermark]", "max_files_per_run = 1\n[watermark]")
WHOLE = Rerun(START_MS - DAY_MS, START_MS + DAY_MS, "a test", "ann")


def held(folder: Path) -> set[str]:
    return {*pa.table(table_of(folder).get_add_actions())["path"].to_pylist()}


def compact(folder: Path) -> set[str]:
    """Runs OPTIMIZE and VACUUM; returns the deleted files."""
    before, changes = held(folder), Changes(folder, 1)
    changes.compact()
    changes.vacuum()
    gone = {path for path in before if not (folder / "incoming" / path).exists()}
    assert gone
    return gone


def read(definition: Definition) -> set[str]:
    return {row["path"] for row in read_table(definition, "source_files").to_pylist()}


@pytest.mark.fault(
    "OPTIMIZE and VACUUM delete unread files of a Delta source",
    "a run reads the files that replaced them, for any `source.removals`",
)
@pytest.mark.parametrize(
    "text",
    [
        IN_TIME,
        *(pytest.param(t, marks=pytest.mark.long("which names are read is alike")) for t in (SKIPPING, BY_ITSELF)),
    ],
)
def test_files_compacted_before_they_were_read(spark: SparkSession, tmp_path: Path, text: str) -> None:
    """For a new pipeline, and for one that has read other partitions."""
    definition = clicks(tmp_path, 0, text)
    for part, numbers in enumerate(((1, 2), (3, 4))):
        for number in numbers:
            rows = pa.Table.from_pylist(events(number), schema=SCHEMA)
            rows = rows.append_column("part", pa.array([part] * len(rows)))
            write_deltalake(tmp_path / "incoming", rows, mode="append", partition_by=["part"])
        assert compact(tmp_path)
        assert run(definition, spark) == [None]
        assert read(definition) == held(tmp_path)
    assert run(definition, spark) == []
    ended(definition, spark, sessions(tmp_path))


@pytest.mark.fault(
    "OPTIMIZE and VACUUM delete files of a Delta source between a plan and its batch", "the batch is planned again"
)
def test_a_batch_whose_files_were_compacted_is_planned_again(spark: SparkSession, tmp_path: Path) -> None:
    """Both the original files and their replacements change: the first of several, and all."""
    definition = clicks(tmp_path, 0, ONE_BY_ONE)
    append(tmp_path, 1)
    append(tmp_path, 2)
    planned = plan(definition, clock)
    assert planned
    assert compact(tmp_path) > {file.path for file in planned.files}
    append(tmp_path, 3)
    planned = plan(definition, clock)
    assert compact(tmp_path)
    assert run(definition, spark) == [None]
    assert read(definition) == held(tmp_path)
    ended(definition, spark, sessions(tmp_path))


@pytest.mark.long("what was read and not is mixed, and read as it was, in make test, by tables drawn by chance")
def test_originals_of_files_compacted_with_read_ones_are_read(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, ONE_BY_ONE)
    for number in (1, 2, 3):
        append(tmp_path, number)
    files = held(tmp_path)
    run(definition, spark, max_batches=1)
    table_of(tmp_path).optimize.compact()
    append(tmp_path, 4)
    assert run(definition, spark) == [None] * 3
    assert read(definition) > files
    assert len(read(definition)) == 4
    compact(tmp_path)
    assert run(definition, spark) == []
    assert run(definition, spark, rerun=WHOLE)
    assert read(definition) == held(tmp_path)
    ended(definition, spark, sessions(tmp_path))


def mixed(folder: Path, text: str, spark: SparkSession) -> Definition:
    """A pipeline whose table had an unread file compacted with a file that was read."""
    definition = clicks(folder, 0, text)
    append(folder, 1)
    run(definition, spark)
    append(folder, 2)
    compact(folder)
    return definition


@pytest.mark.fault(
    "OPTIMIZE joins read and unread rows in one file, and VACUUM deletes the unread file",
    'the run stops and gives the rerun that reads them; with `removals = "rerun"` the run does it',
)
@pytest.mark.parametrize(
    "text",
    [IN_TIME, pytest.param(SKIPPING, marks=pytest.mark.long("it stops as one that does not skip, in make test"))],
)
def test_a_rerun_reads_rows_compacted_with_read_ones(spark: SparkSession, tmp_path: Path, text: str) -> None:
    definition = mixed(tmp_path, text, spark)
    append(tmp_path, 3)
    run(definition, spark, max_batches=1)  # what came after is read, since nothing was removed
    with pytest.raises(
        SourceError, match=r"has moved already read rows into other files together with unread rows"
    ) as stopped:
        run(definition, spark)
    [bounds] = re.findall(r"windowlib rerun \S+ --from (\S+) --to ([^\s`]+)`", str(stopped.value))
    assert " --to ".join(bounds) in str(status(definition, clock()).removal)
    whole = time_range(*bounds, clock())
    part = Rerun(whole.from_ms, whole.to_ms - HOUR_MS, "a test", "ann")
    with pytest.raises(RerunRefused, match=r"Rerun the whole range"):
        run(definition, spark, rerun=part)
    assert run(definition, spark, rerun=Rerun(whole.from_ms, whole.to_ms, "a test", "ann"))
    assert read(definition) == held(tmp_path)
    append(tmp_path, 4)
    assert run(definition, spark) == [None]
    ended(definition, spark, sessions(tmp_path))


def test_a_run_reruns_rows_compacted_with_read_ones(spark: SparkSession, tmp_path: Path) -> None:
    definition = mixed(tmp_path, BY_ITSELF, spark)
    assert [rerun is not None for rerun in run(definition, spark)] == [True]
    assert read(definition) == held(tmp_path)
    ended(definition, spark, sessions(tmp_path))


def test_rows_compacted_with_read_ones_can_be_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    """After the file is taken back, the rows are requested again."""
    definition = mixed(tmp_path, IN_TIME, spark)
    with pytest.raises(SourceError, match=r"until a rerun needs a file that has them: ") as stopped:
        run(definition, spark)
    [lost] = re.findall(r"set-aside \S+ (\S+) --reason", str(stopped.value))
    set_aside(definition, lost, "ann", "a test", clock)
    assert run(definition, spark) == []
    append(tmp_path, 3)
    assert run(definition, spark) == [None]
    check(definition, spark)
    take_back(definition, lost, "ann", "a test", clock)
    with pytest.raises(SourceError, match=r"has moved already read rows into other files together with unread rows"):
        run(definition, spark)
    assert run(definition, spark, rerun=WHOLE)
    ended(definition, spark, sessions(tmp_path))


def test_a_rerun_requires_compacted_files_to_be_read_first(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, IN_TIME)
    append(tmp_path, 1)
    append(tmp_path, 2)
    run(definition, spark)
    append(tmp_path, 3)
    [new] = {path.name for path in (tmp_path / "incoming").glob("*.parquet")} - read(definition)
    kept = (tmp_path / "incoming" / new).read_bytes()
    compact(tmp_path)
    (tmp_path / "incoming" / new).write_bytes(kept)  # as where VACUUM keeps what is younger
    with pytest.raises(RerunRefused, match=r"Read them first: `\S*windowlib run "):
        run(definition, spark, rerun=WHOLE)
    assert run(definition, spark) == [None]
    assert run(definition, spark, rerun=WHOLE)
    assert read(definition) == held(tmp_path)
    ended(definition, spark, sessions(tmp_path))


@pytest.mark.fault(
    "rows of a Delta source are deleted, and their new files compacted and deleted before a run read them",
    "the requested rerun covers all of it",
)
def test_a_removal_followed_by_a_compaction(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, BY_ITSELF)
    append(tmp_path, 1)
    run(definition, spark)
    table_of(tmp_path).delete("user = 'u1'")
    append(tmp_path, 2)
    compact(tmp_path)
    append(tmp_path, 3)
    assert [rerun is not None for rerun in run(definition, spark)] == [False, True]
    assert read(definition) == held(tmp_path)
    ended(definition, spark, sessions(tmp_path))


@pytest.mark.fault(
    'unread rows of a Delta source are updated and their files deleted, with `removals = "skip"`',
    "nothing is skipped: the run reads the updated rows",
)
def test_files_updated_before_they_were_read_are_not_skipped(spark: SparkSession, tmp_path: Path) -> None:
    definition, changes = clicks(tmp_path, 0, SKIPPING), Changes(tmp_path, 1)
    append(tmp_path, 1)
    table_of(tmp_path).update(updates={"value": "value + 1"}, predicate="user = 'u1'")
    append(tmp_path, 2)
    changes.vacuum()
    assert run(definition, spark) == [None]
    before = published(definition)
    table_of(tmp_path).update(updates={"value": "value + 1"}, predicate="user = 'u1'")
    assert run(definition, spark) == []
    assert published(definition) == before


def test_deletion_vectors_are_settled_after_a_rewrite(spark: SparkSession, tmp_path: Path) -> None:
    """Other files arrive in between. A file that was set aside cannot be rerun yet."""
    definition = clicks(tmp_path, 0, BY_ITSELF)
    append(tmp_path, 1)
    [path] = held(tmp_path)
    size = (tmp_path / "incoming" / path).stat().st_size
    add = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
    remove = {"path": path, "dataChange": True, "deletionTimestamp": 1}
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
    marked = {"deletionVector": {**vector, "cardinality": 6}}
    _write(tmp_path, "DELETE", {"remove": remove}, {"add": {**add, **marked}})
    set_aside(definition, path, "ann", "a test", clock)
    refused = r"deletion vectors mark .* does not read them.*APPLY \(PURGE\)"
    with pytest.raises(SourceError, match=refused):
        plan(definition, clock)
    take_back(definition, path, "ann", "a test", clock)
    run(definition, spark, max_batches=1)
    append(tmp_path, 2)
    with pytest.raises(SourceError, match=refused):
        run(definition, spark)
    (tmp_path / "incoming" / path).rename(tmp_path / "incoming" / "purged.parquet")
    _write(
        tmp_path,
        "REORG",
        {"remove": {**remove, **marked, "dataChange": False}},
        {"add": {**add, "path": "purged.parquet", "dataChange": False}},
    )
    assert [rerun is not None for rerun in run(definition, spark)] == [False, True]
    ended(definition, spark, sessions(tmp_path))


def _write(folder: Path, operation: str, *actions: dict[str, object]) -> None:
    entries = sorted((folder / "incoming" / "_delta_log").glob("*.json"))
    entry = [{"commitInfo": {"operation": operation}}, *actions]
    file_of(folder / "incoming", len(entries)).write_text("\n".join(map(json.dumps, entry)))
