"""Erasure of a key from every table and file. Other keys stay, and later batches do not bring the key back."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.erasure.erased_user import USER, asked, check_only_new, maintain_all
from tests.erasure.everywhere import places
from tests.support.clicks import CLICKS, START_MS, arrive, clicks, clock, events, tables
from tests.support.disks import folder_of
from tests.support.killed import stopped
from tests.support.simple_batches import no_spark
from windowlib.batches.plan_time import ClockRefused
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.rollback import rollback
from windowlib.decisions.verdicts import approve
from windowlib.definition.definition import Definition
from windowlib.delta import log
from windowlib.erasure.certificates import certificates
from windowlib.erasure.forget import ForgetRefused, NothingToForget, forecast, forget
from windowlib.inspection.lineage.explain_window import explain_window
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger import lease
from windowlib.ledger.ledger import Rejected, Superseded
from windowlib.ledger.rerun_request import Rerun
from windowlib.maintenance.maintain import maintain
from windowlib.migrations.batch import MigrationRequest
from windowlib.migrations.switch import build, switch
from windowlib.migrations.undo import undo
from windowlib.publication.foreign_changes import CannotUndo
from windowlib.publication.key import CannotLook
from windowlib.publication.readers import read_table
from windowlib.reruns.dry_run import dry_run
from windowlib.reruns.findings import DIFFERENCE
from windowlib.reruns.previews import FOLDER
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
FILES = 3
HOUR_MS = 3_600_000
GAP = CLICKS.replace('gap = "10m"', 'gap = "25m"')
CHANGED = ("open_windows", "late_events", "seen_ids", "results", "result_changes")  # which hold the key here
ASKED = MigrationRequest("ann", "sessions were cut too early", clock)


def of_others(definition: Definition, table: str) -> list[str]:
    """Rows of other keys in a table, without rows that report erasures."""
    rows = read_table(definition, table).to_pylist()
    return sorted(str(row) for row in rows if USER not in str(row) and row.get("cause") != "forget")


def all_others(definition: Definition) -> dict[str, list[str]]:
    names = [name for name in COMMIT_ORDER if name not in ("watermarks", "source_files", "run_metrics", "dq_results")]
    return {name: of_others(definition, name) for name in names}


def test_forget_removes_the_key_from_every_table_and_keeps_other_keys(spark: SparkSession, folder: Path) -> None:
    definition = clicks(folder, 0)
    before = all_others(definition)
    held = places(folder_of(definition), USER)
    assert len([one for one in held if one.endswith(".parquet")]) > 12
    assert any("_delta_log" in one for one in held)
    ids = {row["event_id"] for row in read_table(definition, "seen_ids").to_pylist()}
    shown = forecast(definition, lambda: spark, asked())
    made = forget(definition, lambda: spark, asked())
    assert made.is_published
    assert not made.old_files_gone
    assert made.erasure.removed == shown.removed
    assert {"results", "result_changes", "open_windows", "late_events", "seen_ids"} <= {*shown.removed}
    assert made.erasure.source == shown.source
    after = all_others(definition)
    seen = {name: rows for name, rows in after.items() if name != "seen_ids"}
    assert seen == {name: before[name] for name in seen}
    left = {row["event_id"] for row in read_table(definition, "seen_ids").to_pylist()}
    gone = {row["id"] for number in range(1, FILES + 1) for row in events(number) if row["user"] == USER}
    assert ids - left == ids & gone
    removals = [row for row in read_table(definition, "result_changes").to_pylist() if row["user"] == USER]
    assert {(row["change"], row["cause"], row["batch_id"]) for row in removals} == {("removed", "forget", 4)}
    check_a_stream_gets_nothing_else(definition)
    assert verify(definition, VerifyRequest(), spark, clock).differing == {}
    maintain_all(definition)
    assert places(folder_of(definition), USER) == []


def check_a_stream_gets_nothing_else(definition: Definition) -> None:
    """Checks that a stream reads only removal rows from the newest commit to `result_changes`."""
    table = ledger_of(definition).tables["result_changes"]
    newest = table.version()
    assert newest is not None
    entry = log.actions(table.store, newest)
    files = [one for action in entry for kind, one in action.items() if kind in ("add", "remove")]
    assert {(one["dataChange"], "cause=forget" in one["path"]) for one in files} == {(True, True), (False, False)}


@pytest.mark.long("the ledger's row of such a rerun loses the key in test_in_words, in make test")
def test_forget_removes_the_key_from_rerun_rows_in_the_ledger(spark: SparkSession, folder: Path) -> None:
    definition = clicks(folder, 0)
    mine = Rerun(START_MS, START_MS + 48 * HOUR_MS, "they called", "ann", late_only=True, key=(USER,))
    [report] = advance(definition, lambda: spark, clock=clock, rerun=mine)
    assert forget(definition, lambda: spark, asked()).is_published
    assert verify(definition, VerifyRequest(), spark, clock).differing == {}
    cut = ledger_of(definition).state().commit
    assert cut is not None
    assert cut.batch_id == report.batch_id + 1
    maintain_all(definition)
    assert places(folder_of(definition), USER) == []


# -- and does not come back -------------------------------------------------------------------------------------------


def later() -> int:
    return clock() + 24 * HOUR_MS


def test_no_batch_brings_the_key_back_and_later_events_count(spark: SparkSession, folder: Path) -> None:
    definition, century = clicks(folder, 0), clock() + 876_000 * HOUR_MS
    future = {"id": "future", "user": USER, "at_ms": century, "value": 1}
    arrive(folder, 4, [future])
    advance(definition, lambda: spark, clock=clock)
    assert forget(definition, lambda: spark, asked()).erasure.later_ms == [century]
    late = {"id": "old", "user": USER, "at_ms": START_MS + 5 * HOUR_MS, "value": 1}
    new = [{"id": f"new-{n}", "user": USER, "at_ms": clock() + n * HOUR_MS, "value": n} for n in (1, 2, 3)]
    timeless = {"id": "timeless", "user": USER, "at_ms": None, "value": 1}
    arrive(folder, 5, [late, *new, timeless, future, *events(4)])
    advance(definition, lambda: spark, clock=later)
    check_only_new(definition)
    span = Rerun(START_MS, START_MS + 48 * HOUR_MS, "look again", "ann")
    advance(definition, lambda: spark, clock=later, rerun=span)
    check_only_new(definition)
    assert verify(definition, VerifyRequest(), spark, later).differing == {}
    explained = explain_window(definition, [USER], START_MS + 5 * HOUR_MS)
    assert not [event for window in explained.windows for event in window.events if event.time_ms < clock()]
    with pytest.raises(CannotUndo, match=r"batch 5 erased a key, and a rollback cannot cross it"):
        rollback(definition, 2, "ann", "why", later)


@pytest.mark.long("a rerun reads the same files by the same rule, in make test")
def test_a_migration_does_not_bring_the_key_back(spark: SparkSession, folder: Path) -> None:
    new = clicks(folder, 0, GAP)
    shadow = build(new, lambda: spark, ASKED)  # holds the key, and is given up
    old = clicks(folder, 0)
    forget(old, lambda: spark, asked())
    assert not folder_of(shadow.definition).exists()
    new = clicks(folder, 0, GAP)
    switch(new, build(new, lambda: spark, ASKED), lambda: spark, ASKED)
    check_only_new(new)
    with pytest.raises(ForgetRefused, match="the migration of batch 5 can still be undone"):
        forget(new, lambda: spark, asked(key=["u4"]))
    undo(new, lambda: spark, ASKED)
    check_only_new(clicks(folder, 0))


# -- killed, refused, at once -----------------------------------------------------------------------------------------

BEFORE = ("ledger:claim", "row:erasures")  # nothing is done yet
FIXED = (*(f"commit:{name}" for name in CHANGED), "ledger:commit")  # the next command finishes it
STEPS = (*BEFORE, "ledger:prepare", *FIXED)
OFTEN = ("commit:results",)
RARELY = pytest.mark.long("in make test it is killed between tables, and tests/world/schedules kills it at each step")


def test_verify_leaves_out_a_half_erased_key(spark: SparkSession, folder: Path) -> None:
    definition = clicks(folder, 0)
    whole = verify(definition, VerifyRequest(), spark, clock)
    with stopped("ledger:prepare"):
        forget(definition, lambda: spark, asked())
    assert verify(definition, VerifyRequest(), spark, clock).compared["results"] < whole.compared["results"]
    for _ in range(2):
        half = verify(definition, VerifyRequest(), spark, clock)
        assert half.differing == {}
        assert "1 key with an unfinished erasure: `windowlib status` shows the next step" in half.not_compared
        arrive(folder, 4, events(4))
        advance(definition, lambda: spark, clock=clock)
    forget(definition, lambda: spark, asked())
    after = verify(definition, VerifyRequest(), spark, clock)
    assert (after.differing, [one for one in after.not_compared if "erasure" in one]) == ({}, [])


@pytest.mark.fault("`windowlib forget` is killed at any step", "the next run or the same command finishes it")
@pytest.mark.parametrize("step", [pytest.param(one, marks=[] if one in OFTEN else RARELY) for one in STEPS])
def test_a_killed_forget_is_finished(spark: SparkSession, folder: Path, step: str) -> None:
    definition = clicks(folder, 0)
    before = all_others(definition)
    with stopped(step):
        forget(definition, lambda: spark, asked())
    made = [one.is_published for one in certificates(definition)]
    assert made == ([] if step in BEFORE else [False])
    advance(definition, lambda: spark, clock=clock)
    if step not in FIXED:  # nothing was fixed, but for the key being read no more
        forget(definition, lambda: spark, asked())
    assert certificates(definition)[-1].is_published
    check_only_new(definition)
    after = all_others(definition)
    assert {name: rows for name, rows in after.items() if name != "seen_ids"} == {
        name: rows for name, rows in before.items() if name != "seen_ids"
    }
    maintain_all(definition)
    assert places(folder_of(definition), USER) == []


@pytest.mark.long("a maintenance by itself is killed at each step in make test, and an erasure too")
@pytest.mark.parametrize("step", ["row:erasures", "row:maintenance"])
def test_an_erasure_killed_while_it_deletes_old_cuts_is_finished(spark: SparkSession, folder: Path, step: str) -> None:
    definition = clicks(folder, 0)
    with stopped(step):
        forget(definition, lambda: spark, asked(now=True))
    if certificates(definition) and certificates(definition)[-1].is_published:
        maintain(definition, "ann", clock, only_newest=True)
    else:
        forget(definition, lambda: spark, asked(now=True))
    check_only_new(definition)
    assert places(folder_of(definition), USER) == []


OWN = """
[checks]
results_suite = "own.json"
"""


@pytest.mark.long("each place where a key stands in words is looked at by itself, in make test")
def test_forget_removes_a_key_that_a_refused_batch_named_in_many_places(spark: SparkSession, tmp_path: Path) -> None:
    users = {
        "type": "expect_column_values_to_be_in_set",
        "kwargs": {"column": "user", "value_set": [f"u{n}" for n in range(8) if f"u{n}" != USER]},
    }
    (tmp_path / "own.json").write_text(json.dumps({"name": "own", "expectations": [users]}))
    advance(clicks(tmp_path, 1), lambda: spark, clock=clock)
    definition = clicks(tmp_path, 2, CLICKS + OWN)
    with pytest.raises(Rejected):
        advance(definition, lambda: spark, clock=clock)
    with pytest.raises(ForgetRefused, match=r"batch \d is not finished, and may hold the key: `\S*windowlib approve"):
        forget(definition, lambda: spark, asked())
    approve(definition, "ann", "one is new", clock=clock)
    (tmp_path / "own.json").write_text(json.dumps({"name": "own", "expectations": [{**users, "severity": "warning"}]}))
    advance(definition, lambda: spark, clock=clock)
    assert {"ledger", "checks"} <= {one.partition("/")[0] for one in places(folder_of(definition), USER)}
    made = forget(definition, lambda: spark, asked())
    assert {"ledger", "dq_results"} <= {*made.erasure.removed}
    maintain_all(definition)
    assert places(folder_of(definition), USER) == []


def test_forget_now_deletes_every_older_file(spark: SparkSession, folder: Path) -> None:
    definition = clicks(folder, 0)
    assert forecast(definition, lambda: spark, asked(now=True)).cuts_lost == [1, 2, 3]
    made = forget(definition, lambda: spark, asked(now=True))
    assert made.old_files_gone
    assert made.cuts_lost == [1, 2, 3]
    assert places(folder_of(definition), USER) == []
    with pytest.raises(CannotUndo, match="erased a key"):
        rollback(definition, 3, "ann", "why", clock)
    arrive(folder, 4, events(4))
    advance(definition, lambda: spark, clock=clock)
    assert verify(definition, VerifyRequest(), spark, clock).differing == {}
    check_only_new(definition)


def test_an_unknown_key_is_refused_and_a_key_only_in_a_dry_run_is_erased(spark: SparkSession, folder: Path) -> None:
    definition = clicks(folder, 0)
    dry_run(definition, Rerun(START_MS, START_MS + 6 * HOUR_MS, "a test", "ann"), clock).preview(spark)
    before = tables(definition)
    with pytest.raises(NothingToForget, match="neither the tables nor the source hold the key eve"):
        forget(definition, lambda: spark, asked(key=["eve"]))
    assert tables(definition) == before
    place, *_ = (folder_of(definition) / FOLDER).glob(f"*/{DIFFERENCE}/**/*.parquet")
    rows = pq.read_table(place)
    pq.write_table(rows.set_column(rows.schema.get_field_index("user"), "user", pa.array(["eve"] * len(rows))), place)
    assert forget(definition, lambda: spark, asked(key=["eve"])).erasure.removed["previews"] == 1
    assert not (folder_of(definition) / FOLDER).exists()


def test_keys_that_cannot_be_erased_are_refused(spark: SparkSession, folder: Path) -> None:
    definition = clicks(folder, 0)
    for mistake, raised, said in (
        (asked(key=["eve"]), NothingToForget, "neither the tables nor the source hold the key eve"),
        (
            asked(key=[]),
            CannotLook,
            "this pipeline has 1 key column; give --key once for each of user, in this order",
        ),
        (asked(reason="u3 has asked"), ForgetRefused, "the reason contains the key"),
        (
            asked(clock=lambda: clock() + 1000 * HOUR_MS),
            ClockRefused,
            r"41d ahead of .* Nothing was erased: the erasure would",
        ),
        (
            asked(clock=lambda: clock() - 1000 * HOUR_MS),
            ClockRefused,
            r"41d behind .* Nothing was erased: the erasure would",
        ),
    ):
        with pytest.raises(raised, match=said):
            forget(definition, lambda: spark, mistake)
    ledger = ledger_of(definition, clock)
    _, claim = ledger.claim()
    with lease.lease(ledger, claim), pytest.raises(Superseded, match="another run holds this pipeline"):
        forget(definition, no_spark, asked())
    arrive(folder, 4, events(4))
    with stopped("write:windows"):
        advance(definition, lambda: spark, clock=clock)
    with pytest.raises(ForgetRefused, match=r"batch 4 is not finished, and may hold the key: `\S*windowlib run"):
        forget(definition, lambda: spark, asked())
    assert certificates(definition) == []
    advance(definition, lambda: spark, clock=clock)
    forget(definition, lambda: spark, asked())
    again = forget(definition, lambda: spark, asked())  # the source still has it; the tables do not
    assert again.erasure.removed == {}
    assert again.erasure.batch_id == 6
    check_only_new(definition)
