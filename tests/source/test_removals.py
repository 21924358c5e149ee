"""Removed rows of a Delta source: a rerun recomputes their windows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
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
    ended,
    hours,
    run,
    sessions,
    table_of,
)
from tests.support.clicks import SCHEMA, START_MS, clicks, clock, events
from tests.support.from_scratch import Window
from windowlib.batches.planning import ledger_of, plan, rerun_plan
from windowlib.definition.definition import Definition
from windowlib.delta.tables import Tables
from windowlib.inspection.status import status
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun, RerunRefused, time_range
from windowlib.plans.partitions import DAY_MS
from windowlib.reruns.dry_run import dry_run
from windowlib.source.listed import SourceError

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

HOURLY = BY_ITSELF.replace('type = "session"\ngap = "10m"', 'type = "tumbling"\nsize = "1h"')


@pytest.mark.parametrize(
    ("text", "truth", "seed"),
    [
        pytest.param(BY_ITSELF, sessions, 4, marks=pytest.mark.long("the hourly windows of the next are drawn alike")),
        (HOURLY, hours, 6),
    ],
)
def test_after_any_table_change_windows_equal_its_rows(
    spark: SparkSession, tmp_path: Path, text: str, truth: Callable[[Path], list[Window]], seed: int
) -> None:
    definition, changes = clicks(tmp_path, 0, text), Changes(tmp_path, seed)
    for _ in range(8):
        changes.one()
        if changes.chance.random() < 0.5:
            run(definition, spark)
    ended(definition, spark, truth(tmp_path))


AS_DELETED = pytest.mark.long("rows that are deleted, in make test, are removed by the same actions of the log")
OVERWRITTEN, EMPTIED = (pytest.param(kind, marks=AS_DELETED) for kind in ("WRITE", "all"))


@pytest.mark.fault(
    "rows of a Delta source are deleted, updated or overwritten",
    "the run stops and gives the rerun that recomputes their windows; then runs continue",
)
@pytest.mark.parametrize("kind", ["DELETE", OVERWRITTEN, EMPTIED])
def test_a_rerun_recomputes_removed_rows(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    definition = clicks(tmp_path, 0, IN_TIME)
    for number in (1, 2):
        append(tmp_path, number)
    run(definition, spark)
    append(tmp_path, 3)
    match kind:
        case "DELETE":  # the files keep their other rows
            table_of(tmp_path).delete("user IN ('u1', 'u2')")
        case "WRITE":
            write_deltalake(tmp_path / "incoming", pa.Table.from_pylist(events(5), schema=SCHEMA), mode="overwrite")
        case "all":
            table_of(tmp_path).delete()
    append(tmp_path, 4)
    run(definition, spark, max_batches=1)  # what came before
    with pytest.raises(SourceError, match="removes rows") as stopped:
        run(definition, spark)
    [command] = re.findall(r"windowlib rerun \S+ --from (\S+) --to ([^\s`]+)`", str(stopped.value))
    said = status(definition, clock()).removal
    assert said is not None
    assert " ".join(("--from", command[0], "--to", command[1])) in said
    whole = time_range(*command, clock())
    before = ledger_of(definition).state()
    elsewhere = Rerun(whole.from_ms - 2 * DAY_MS, whole.from_ms - DAY_MS, "a test", "ann")
    assert not rerun_plan(definition, Tables(definition.store), before, elsewhere, clock).replaces
    with pytest.raises(RerunRefused, match=rf"Rerun the whole range: `\S*windowlib rerun .* --from {command[0]}"):
        dry_run(definition, Rerun(whole.from_ms + 1, whole.to_ms, "a test", "ann"), clock).preview(spark)
    asked = Rerun(whole.from_ms, whole.to_ms, "a test", "ann")
    dry = dry_run(definition, asked, clock).preview(spark)
    assert not dry.summary.is_empty
    assert run(definition, spark, rerun=asked.expecting(dry.preview_id))
    assert before.commit
    assert _watermark_ms(definition) == before.commit.watermark_out_ms
    assert status(definition, clock()).removal is None
    assert run(definition, spark) == [None]
    ended(definition, spark, sessions(tmp_path))


@pytest.mark.fault(
    "rows of a Delta source are deleted over a range longer than the 400 days of a rerun",
    'the error names the alternative, `source.removals = "rerun"`',
)
def test_a_removal_longer_than_a_rerun_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, IN_TIME)
    before = [{**row, "id": f"then {row['id']}", "at_ms": row["at_ms"] - 500 * DAY_MS} for row in events(1)]
    write_deltalake(tmp_path / "incoming", pa.Table.from_pylist([*before, *events(1)], schema=SCHEMA))
    run(definition, spark)
    watermark_ms = _watermark_ms(definition)
    table_of(tmp_path).delete("user IN ('u1', 'u2')")
    with pytest.raises(SourceError, match=r'removes rows.* recompute its windows, .* set source.removals = "rerun"'):
        run(definition, spark)
    part = Rerun(START_MS, START_MS + DAY_MS, "a test", "ann")
    with pytest.raises(RerunRefused, match=r'exceeds the 400 days of one rerun: set source.removals = "rerun" in'):
        dry_run(definition, part, clock).preview(spark)
    definition = clicks(tmp_path, 0, BY_ITSELF)
    assert [rerun is not None for rerun in run(definition, spark)] == [True]
    assert _watermark_ms(definition) == watermark_ms
    ended(definition, spark, sessions(tmp_path))


def _watermark_ms(definition: Definition) -> int | None:
    commit = ledger_of(definition).state().commit
    return commit and commit.watermark_out_ms


@pytest.mark.long("an UPDATE, drawn by chance in make test, removes events and adds them again")
def test_deleted_events_may_return(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, BY_ITSELF)
    append(tmp_path, 1)
    run(definition, spark)
    table_of(tmp_path).delete("user = 'u1'")
    again = [row for row in events(1) if row["user"] == "u1"]
    write_deltalake(tmp_path / "incoming", pa.Table.from_pylist(again, schema=SCHEMA), mode="append")
    reruns = [rerun is not None for rerun in run(definition, spark)]
    assert reruns == [True, False]
    ended(definition, spark, sessions(tmp_path))


@pytest.mark.long("removals that are passed over, and removals that are made good, are in make test")
def test_a_later_rerun_also_covers_a_skipped_removal(spark: SparkSession, tmp_path: Path) -> None:
    """The rerun counts no event twice although the table replaced the skipped files."""
    definition = clicks(tmp_path, 0, BY_ITSELF)
    skipping = definition.model_copy(update={"source": definition.source.model_copy(update={"removals": "skip"})})
    append(tmp_path, 1)
    run(definition, spark)
    table_of(tmp_path).update(updates={"value": "value + 1"}, predicate="user = 'u1'")
    append(tmp_path, 2)
    run(skipping, spark)
    table_of(tmp_path).update(updates={"value": "value + 1"}, predicate="user = 'u2'")
    assert [rerun is not None for rerun in run(definition, spark)] == [True]
    ended(definition, spark, sessions(tmp_path))


def test_deletion_vectors_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, BY_ITSELF)
    append(tmp_path, 1)
    run(definition, spark)
    [path] = pa.table(table_of(tmp_path).get_add_actions())["path"].to_pylist()
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    adds = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    removes = {"path": path, "dataChange": True, "deletionTimestamp": 1}
    entry = [
        {"commitInfo": {"operation": "DELETE"}},
        {"remove": removes},
        {"add": adds | {"deletionVector": {**vector, "cardinality": 6}}},
    ]
    log = tmp_path / "incoming" / "_delta_log" / f"{1:020}.json"
    log.write_text("\n".join(map(json.dumps, entry)))
    with pytest.raises(SourceError, match=r"deletion vectors mark .* does not read them.*APPLY \(PURGE\)"):
        plan(definition, clock)


@pytest.mark.fault(
    "OPTIMIZE and VACUUM delete files of a Delta source that were read",
    "a rerun of all their events reads the new files; a smaller range is refused",
)
def test_a_rerun_reads_compacted_files(spark: SparkSession, tmp_path: Path) -> None:
    definition, changes = clicks(tmp_path, 0, BY_ITSELF), Changes(tmp_path, 1)
    append(tmp_path, 1)
    append(tmp_path, 2)
    run(definition, spark)
    changes.compact()
    changes.vacuum()
    part = Rerun(START_MS, START_MS + HOUR_MS, "a test", "ann")
    with pytest.raises(RerunRefused, match=r"moved rows of events from .*Rerun the whole range") as refused:
        run(definition, spark, rerun=part)
    [bounds] = re.findall(r"--from (\S+) --to ([^\s`]+)", str(refused.value))
    whole = time_range(*bounds, clock())
    assert run(definition, spark, rerun=Rerun(whole.from_ms, whole.to_ms, "a test", "ann"))
    found = verify(definition, VerifyRequest(), spark, clock)
    assert (found.differences, [one for one in found.not_compared if "gone" in one]) == ([], [])
    ended(definition, spark, sessions(tmp_path))


@pytest.mark.long("a rerun of files that were compacted, and removals that are drawn by chance, are in make test")
def test_rows_that_are_deleted_after_files_were_compacted(spark: SparkSession, tmp_path: Path) -> None:
    definition, changes = clicks(tmp_path, 0, BY_ITSELF), Changes(tmp_path, 1)
    for number in (1, 2, 3):
        append(tmp_path, number)
        run(definition, spark)
    changes.compact()
    changes.vacuum()
    append(tmp_path, 4)
    table_of(tmp_path).delete("id LIKE '4-%' AND user = 'u1'")
    append(tmp_path, 5)
    run(definition, spark)
    table_of(tmp_path).delete("id LIKE '5-%' AND user = 'u2'")  # the others, near it, are deleted too
    assert [rerun is not None for rerun in run(definition, spark)] == [True]
    ended(definition, spark, sessions(tmp_path))


@pytest.mark.long("files compacted and deleted are followed, and a restored version is read once, in make test")
def test_a_restored_compaction_is_traced_to_its_first_files(spark: SparkSession, tmp_path: Path) -> None:
    definition, changes = clicks(tmp_path, 0, BY_ITSELF), Changes(tmp_path, 1)
    append(tmp_path, 1)
    append(tmp_path, 2)
    run(definition, spark)
    changes.compact()
    append(tmp_path, 3)
    changes.compact()
    changes.restore()
    append(tmp_path, 4)
    run(definition, spark)
    table_of(tmp_path).delete("user = 'u1'")
    changes.vacuum()
    assert [rerun is not None for rerun in run(definition, spark)] == [True]
    ended(definition, spark, sessions(tmp_path))
