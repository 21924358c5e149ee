"""State of a ledger, row by row: the claim, the plan, the batch that waits, and the newest commit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.disks import folder_of
from tests.support.other_versions import written_by_another_version
from windowlib.contract.tables import LEDGER
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files
from windowlib.delta.log import DamagedLog
from windowlib.delta.log_writing import RefusedCommit
from windowlib.delta.tables import Table
from windowlib.ledger.decision import Decision
from windowlib.ledger.lease import lease
from windowlib.ledger.ledger import DecidedMeanwhile, Ledger, Superseded
from windowlib.ledger.moves import Moved
from windowlib.ledger.prepare import Prepared
from windowlib.ledger.reading import rows_of_kinds
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import FORMAT, Claim, Commit, LedgerState, Plan, SourceFile, plan_row
from windowlib.model.errors import StateMismatch
from windowlib.storage.disk import Disk

PLAN = Plan(
    batch_id=1,
    plan_time_ms=5_000,
    watermark_in_ms=None,
    from_sequence=3,
    files=(SourceFile("a.parquet", 10, 11, 4), SourceFile("b.parquet", 12, 13, 5)),
    fingerprint="f",
    definition="{}",
    finished=True,
    rerun=Rerun(1, 2, "why", "ann"),
    terms="{}",
    decision=Decision("adopt", "ann", "right"),
    replaces=("c.parquet",),
    late_in_ms=-7,
)
COMMIT: dict[str, Any] = {
    "kind": "commit",
    "batch_id": 1,
    "versions": {"results": 2},
    "watermark_out_ms": 70,
    "late_out_ms": 60,
    "to_sequence": 5,
    "fingerprint": "f",
    "definition": "{}",
    "counts": {"events": 9},
    "plan_time_ms": 5_000,
}
PREPARE = {"kind": "prepare", "batch_id": 1, "prepared": "_prepared/1", "sha256": "s"}


class Followed:
    """A ledger with a simulated clock, and the state expected after each row."""

    def __init__(self, root: Path) -> None:
        self.now_ms = 1_000
        self.ledger = Ledger(Disk(root), lambda: self.now_ms)
        self.expected = LedgerState()

    def wrote(self, **changes: Any) -> None:
        """The newest row made exactly these changes, both for this ledger and for one that reads all rows again."""
        before = self.expected
        fresh = Ledger(self.ledger.store, lambda: self.now_ms).state()
        self.expected = replace(before, version=fresh.version, sequence=before.sequence + 1, **changes)
        assert fresh == self.ledger.state() == self.expected


def test_the_life_of_a_batch(tmp_path: Path) -> None:
    followed = Followed(tmp_path)
    ledger = followed.ledger
    assert not ledger.state().left_by_a_dead_run
    _, claim = ledger.claim()
    followed.wrote(claim=Claim(1, claim.owner, 1_000, 1))
    assert ledger.state().left_by_a_dead_run
    ledger.freeze(lambda state: PLAN)
    followed.wrote(plan=PLAN, last_batch_id=1, is_begun=True)
    assert PLAN.to_sequence == 5
    followed.now_ms = 1_500
    ledger.write({"kind": "heartbeat"}, 1)
    followed.wrote(claim=Claim(1, claim.owner, 1_500, 3))
    ledger.write({**PREPARE, "reason": "too few"}, 1)
    followed.wrote(prepared=Prepared("_prepared/1", "s"), rejection="too few")
    ledger.write({"kind": "approve", "batch_id": 1, "who": "ann"})
    followed.wrote(approved_by="ann", is_begun=False)  # the next run publishes it
    ledger.write(PREPARE, 1)
    followed.wrote(rejection=None, approved_by=None)
    ledger.write(COMMIT, 1)
    commit = Commit(1, {"results": 2}, 70, 5, "f", "{}", {"events": 9}, 1_500, plan_time_ms=5_000, late_out_ms=60)
    done = {"plan": None, "prepared": None, "rejection": None, "approved_by": None}
    followed.wrote(commit=commit, time_ms=5_000, **done)
    assert (ledger.state().pinned("results"), ledger.state().pinned("quarantine")) == (2, None)
    ledger.write({"kind": "clock", "plan_time_ms": 4_000}, 1)
    followed.wrote(time_ms=4_000)
    for kind in ("acknowledge", "restore"):
        ledger.write({"kind": kind}, 1)
        followed.wrote()
    ledger.write({"kind": "migrate_finish", "batch_id": 1}, 1)
    followed.wrote(kept_migration=1)
    ledger.write({"kind": "release"}, 1)
    followed.wrote(claim=Claim(1, claim.owner, 1_500, 3, released=True))
    assert not ledger.state().left_by_a_dead_run
    ledger.write({"kind": "move", "decision": '{"to": "s3://shop/clicks"}'})
    followed.wrote(moved_to="s3://shop/clicks")
    with pytest.raises(Moved, match=r'were moved to s3://shop/clicks, and .*: set warehouse = "s3://shop" in PIPELINE'):
        ledger.claim()


def test_an_abandoned_batch_leaves_nothing_but_its_number(tmp_path: Path) -> None:
    followed = Followed(tmp_path)
    followed.ledger.freeze(lambda state: PLAN)
    followed.wrote(plan=PLAN, last_batch_id=1)
    followed.ledger.write({**PREPARE, "reason": "too few"})
    followed.wrote(prepared=Prepared("_prepared/1", "s"), rejection="too few")
    followed.ledger.write({"kind": "abandon", "batch_id": 1, "who": "ann"})
    followed.wrote(plan=None, prepared=None, rejection=None)
    followed.ledger.write({"kind": "heartbeat"})  # of a claim that no run made
    followed.wrote()
    plain = replace(PLAN, batch_id=7, finished=False, rerun=None, terms=None, decision=None, replaces=(), files=())
    followed.ledger.freeze(lambda state: plain)
    followed.wrote(plan=plain, last_batch_id=7)
    followed.ledger.write({"kind": "abandon", "batch_id": 6, "who": "ann"})  # numbers never go back
    followed.wrote(plan=None)


def test_rows_of_kinds_are_complete_and_in_order(tmp_path: Path) -> None:
    ledger = Followed(tmp_path).ledger
    ledger.claim()
    ledger.write({"kind": "clock", "plan_time_ms": 1})
    together = [{"kind": kind, "plan_time_ms": 2} for kind in ("restore", "clock", "clock", "restore")]
    ledger.write_together(together, ledger.state(), 1)
    table, version = ledger.tables[LEDGER.name], ledger.state().version
    written = ["claim", "clock", "restore", "clock", "clock", "restore"]
    for kinds in ({"clock"}, {"restore", "clock"}, {"claim"}, {"heartbeat"}, {"zebra"}):
        rows = sorted(rows_of_kinds(table, version, kinds, ("sequence",)), key=lambda row: row["sequence"])
        expected = [(number, kind) for number, kind in enumerate(written, 1) if kind in kinds]
        assert [(row["sequence"], row["kind"]) for row in rows] == expected


def test_files_without_later_batches_are_skipped(tmp_path: Path) -> None:
    ledger = Followed(tmp_path).ledger
    ledger.claim()
    for batch_ids in ([1, 2], [3, 2], [4]):
        rows = [{"kind": "clock", "plan_time_ms": 1, "batch_id": batch_id} for batch_id in batch_ids]
        ledger.write_together(rows, ledger.state(), 1)
    ledger.write({"kind": "restore"})
    table, version = ledger.tables[LEDGER.name], ledger.state().version
    for since, expected in ((0, [1, 2, 2, 3, 4]), (3, [2, 3, 4]), (4, [4]), (5, [])):
        rows = rows_of_kinds(table, version, {"clock"}, ("batch_id",), since)
        assert sorted(row["batch_id"] for row in rows) == expected


NEW = replace(PLAN, rerun=None, decision=None)


@pytest.mark.parametrize(
    ("meanwhile", "stops"),
    [
        ([{"kind": "heartbeat"}], False),
        ([plan_row(NEW)], False),
        ([plan_row(replace(NEW, rerun=PLAN.rerun))], True),
        ([plan_row(replace(NEW, decision=PLAN.decision))], True),
        ([plan_row(NEW), PREPARE], True),
        ([COMMIT], True),
    ],
    ids=["heartbeat", "what is new", "a rerun", "a decision", "prepared", "committed"],
)
def test_only_a_plan_of_new_files_may_come_before_a_decision(
    tmp_path: Path, meanwhile: list[dict[str, Any]], stops: bool
) -> None:
    ledger = Followed(tmp_path).ledger
    ledger.claim()
    seen = ledger.state()
    for row in meanwhile:
        ledger.write(row)
    with pytest.raises(DecidedMeanwhile, match="another command planned") if stops else nullcontext():
        ledger.write_together([{"kind": "clock", "plan_time_ms": 9}], seen, 1)
    assert (ledger.state().time_ms == 9) is not stops


def test_a_deleted_ledger_counts_as_none(tmp_path: Path) -> None:
    ledger = Followed(tmp_path).ledger
    ledger.write({"kind": "clock", "plan_time_ms": 1})
    assert ledger.state().time_ms == 1
    rmtree(folder_of(ledger.tables[LEDGER.name]))
    assert ledger.state() == LedgerState()


def test_a_row_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    ledger = Followed(tmp_path).ledger
    ledger.write({"kind": "clock", "plan_time_ms": 1})
    written_by_another_version(ledger, {"kind": "zebra"})
    with pytest.raises(StateMismatch, match=r"row 2 of the ledger has the unknown kind zebra"):
        ledger.state()


@pytest.mark.fault(
    "another version of windowlib has written a ledger row in another format",
    "the run stops before it reads the row and names both formats",
)
@pytest.mark.parametrize("written", [FORMAT - 1, FORMAT + 1])
@pytest.mark.parametrize("row", [plan_row(PLAN), PREPARE, COMMIT], ids=["plan", "prepare", "commit"])
def test_a_row_of_another_format_is_refused(tmp_path: Path, row: dict[str, Any], written: int) -> None:
    ledger = Followed(tmp_path).ledger
    written_by_another_version(ledger, {**row, "format": written})
    with pytest.raises(
        StateMismatch, match=rf"has format {written} \(row 1 of the ledger, .*\), .* reads format {FORMAT}\."
    ):
        ledger.state()


def test_plan_prepare_and_commit_rows_have_the_format(tmp_path: Path) -> None:
    ledger = Followed(tmp_path).ledger
    ledger.write(plan_row(PLAN))
    ledger.write({"kind": "heartbeat"})
    version = ledger.state().version
    rows = [*rows_of_kinds(ledger.tables[LEDGER.name], version, {"plan", "heartbeat"}, ("sequence", "format"))]
    assert {row["kind"]: row["format"] for row in rows} == {"plan": FORMAT, "heartbeat": None}


def test_a_row_without_a_format_is_not_read(tmp_path: Path) -> None:
    ledger = Followed(tmp_path).ledger
    written_by_another_version(ledger, COMMIT)
    with pytest.raises(StateMismatch, match="has format 0"):
        ledger.state()


@pytest.mark.parametrize("said", [{"kind": "advance", "who": "ann", "reason": ""}, {"hidden_until": 7}])
def test_a_decision_of_a_newer_version_is_refused(tmp_path: Path, said: dict[str, Any]) -> None:
    ledger, known = Followed(tmp_path).ledger, {"kind": "adopt", "who": "ann", "reason": ""}
    decision = json.dumps({**known, **said})
    written_by_another_version(ledger, {**COMMIT, "format": FORMAT, "decision": decision})
    with pytest.raises(StateMismatch, match=r"(hidden_until|advance).* A newer version of windowlib wrote it"):
        ledger.state()


@pytest.mark.fault(
    "another program deletes a row of the ledger",
    "every command stops and names it; otherwise files would be read twice",
)
@pytest.mark.parametrize("gone", ["commit", "plan"])
def test_a_row_deleted_by_another_program_stops_every_command(tmp_path: Path, gone: str) -> None:
    ledger = Followed(tmp_path).ledger
    _, claim = ledger.claim()
    for row in ({"kind": "commit", **COMMIT, "batch_id": 1}, plan_row(replace(PLAN, batch_id=2))):
        ledger.write(row, claim.epoch)
    ledger.write({**PREPARE, "batch_id": 2}, claim.epoch)
    ledger.write({**COMMIT, "batch_id": 2} if gone == "commit" else {"kind": "heartbeat"}, claim.epoch)
    ledger.write({"kind": "release"}, claim.epoch)
    DeltaTable(folder_of(ledger.tables[LEDGER.name])).delete(f"kind = '{gone}' and batch_id = 2")
    number = {"commit": 5, "plan": 3}[gone]
    with pytest.raises(DamagedLog, match=rf"row {number} of the ledger is gone, .*RESTORE TABLE"):
        ledger.state()
    DeltaTable(folder_of(ledger.tables[LEDGER.name])).restore(ledger.tables[LEDGER.name].newest().version() - 1)  # type: ignore[union-attr]
    assert ledger.state().sequence == 6


@pytest.mark.fault(
    "another program deletes the first row of the ledger before the first commit",
    "every command stops and names it; otherwise the first batch could be planned twice",
)
def test_the_first_row_deleted_by_another_program_stops_every_command(tmp_path: Path) -> None:
    ledger = Followed(tmp_path).ledger
    ledger.freeze(lambda state: PLAN)
    ledger.write({"kind": "heartbeat"})
    DeltaTable(folder_of(ledger.tables[LEDGER.name])).delete("kind = 'plan'")
    with pytest.raises(DamagedLog, match="row 1 of the ledger is gone"):
        ledger.state()


# -- several rows in one entry ----------------------------------------------------------------------------------------

KINDS: dict[str, dict[str, Any]] = {
    "claim": {"kind": "claim", "owner": "{}", "epoch": 9},
    **{kind: {"kind": kind} for kind in ("heartbeat", "release", "acknowledge", "restore")},
    "clock": {"kind": "clock", "plan_time_ms": 4_000},
    "plan": plan_row(PLAN),
    "plan without files": plan_row(replace(PLAN, rerun=None, decision=None, files=(), terms="{1}")),
    "prepare": PREPARE,
    "refused": {**PREPARE, "reason": "too few"},
    "approve": {"kind": "approve", "batch_id": 1, "who": "ann"},
    "abandon": {"kind": "abandon", "batch_id": 1, "who": "ann"},
    "commit": {**COMMIT, "rerun": plan_row(PLAN)["rerun"]},
    "commit without tables": {**COMMIT, "versions": {}, "watermark_out_ms": None},
    "migrate_finish": {"kind": "migrate_finish", "batch_id": 1},
}
ENTRIES = st.lists(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4), min_size=1, max_size=5)


@settings(max_examples=20, deadline=None)
@given(ENTRIES)
def test_the_state_after_an_entry_is_that_of_reading_its_rows(entries: list[list[str]]) -> None:
    with TemporaryDirectory() as folder:
        now, batch_id = iter(range(1_000, 2_000)), 1
        ledger = Ledger(Disk(Path(folder)), lambda: next(now))
        for names in entries:
            rows = list[dict[str, Any]]()
            for name in names:
                rows.append({**KINDS[name], "batch_id": batch_id} if "batch_id" in KINDS[name] else KINDS[name])
                batch_id += name.startswith("commit")
            ledger.write(rows[0], follow=lambda state, further=rows[1:]: further)  # type: ignore[misc]
            assert ledger._state.version == Table(ledger.tables[LEDGER.name].store).version()
            assert ledger._state == Ledger(Disk(Path(folder)), lambda: 0).state()


def test_rows_follow_from_the_state_after_the_first(tmp_path: Path) -> None:
    followed = Followed(tmp_path)
    ledger, seen = followed.ledger, list[LedgerState]()

    def follow(state: LedgerState) -> list[dict[str, Any]]:
        seen.append(state)
        return [plan_row(replace(PLAN, batch_id=state.last_batch_id + 1))]

    before, claim = ledger.claim(follow=follow)
    assert (before, ledger.state().version) == (LedgerState(), 1)
    assert seen[0] == LedgerState(sequence=1, claim=claim)
    assert (ledger.state().plan, ledger.state().is_begun) == (PLAN, True)
    table = ledger.tables[LEDGER.name]
    assert {row["epoch"] for row in rows_of_kinds(table, 1, {"claim", "plan"}, ("epoch",))} == {claim.epoch}
    ledger.write(COMMIT, claim.epoch, follow)
    assert (ledger.state().version, ledger.state().plan) == (2, replace(PLAN, batch_id=2))
    assert seen[1].commit
    assert seen[1].commit == ledger.state().commit


def test_a_released_claim_writes_no_more(tmp_path: Path) -> None:
    ledger = Followed(tmp_path).ledger
    _, claim = ledger.claim()
    with lease(ledger, claim):
        ledger.write(COMMIT, claim.epoch, lambda state: [{"kind": "release"}])
        released = ledger.state()
        with pytest.raises(Superseded):
            ledger.write({"kind": "heartbeat"}, claim.epoch)
    assert ledger.state() == released


# -- others are faster ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        lambda ledger: ledger.claim(),
        lambda ledger: ledger.write({"kind": "heartbeat"}),
        lambda ledger: ledger.write_together([{"kind": "heartbeat"}], ledger.state(), 1),
        lambda ledger: ledger.freeze(lambda state: replace(PLAN, batch_id=2)),
        lambda ledger: ledger.replace_plan(PLAN, lambda state: replace(PLAN, terms="{1}"), 1),
    ],
    ids=["claim", "write", "write_together", "freeze", "replace_plan"],
)
def test_writing_fails_after_repeated_conflicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, write: Callable[[Ledger], object]
) -> None:
    ledger = Followed(tmp_path).ledger
    _, claim = ledger.claim()
    if "replace_plan" in request.node.name:
        ledger.freeze(lambda state: PLAN)
    if "claim" in request.node.name:
        ledger.write({"kind": "release"}, claim.epoch)
    before, tried = ledger.state(), []

    def faster(*_: object) -> None:
        tried.append(1)
        raise delta_commits.Conflict("another run was faster")

    monkeypatch.setattr(delta_commits, "again_on_conflict", partial(delta_commits.again_on_conflict, at_most=3))
    monkeypatch.setattr(Ledger, "_append", faster)
    with pytest.raises(RefusedCommit, match="other writers were faster"):
        write(ledger)
    assert len(tried) == 3
    assert ledger.state() == before


def test_a_plan_that_is_prepared_or_has_been_replaced_is_not_replaced(tmp_path: Path) -> None:
    ledger = Followed(tmp_path).ledger
    _, claim = ledger.claim()
    ledger.freeze(lambda state: PLAN)
    other, made = replace(PLAN, terms="{1}"), replace(PLAN, terms="{2}")
    assert ledger.replace_plan(other, lambda state: made, claim.epoch) == (ledger.state(), PLAN)
    assert ledger.replace_plan(PLAN, lambda state: other, claim.epoch)[1] == other
    assert ledger.state().plan == other
    ledger.write(PREPARE, claim.epoch)
    assert ledger.replace_plan(other, lambda state: made, claim.epoch) == (ledger.state(), other)
    assert ledger.state().plan == other


def test_holder_names_this_process(tmp_path: Path) -> None:
    ledger = Followed(tmp_path).ledger
    _, claim = ledger.claim()
    assert ledger.holder(claim) == f"process {os.getpid()} on this machine"


@pytest.mark.parametrize("heartbeats", [0, 3, 9, 20])
def test_a_state_that_began_many_rows_ago_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heartbeats: int
) -> None:
    """However many row groups of its file lie between."""
    monkeypatch.setattr(data_files, "ROWS_PER_GROUP", 4)
    followed = Followed(tmp_path)
    ledger = followed.ledger
    _, claim = ledger.claim()
    rows: list[dict[str, Any]] = [
        plan_row(PLAN),
        COMMIT,
        plan_row(replace(PLAN, batch_id=2)),
    ]
    ledger.write_together([*rows, *({"kind": "heartbeat"} for _ in range(heartbeats))], ledger.state(), claim.epoch)
    state = Ledger(Disk(tmp_path), lambda: 0).state()
    assert (state.commit and state.commit.batch_id, state.last_batch_id) == (1, 2)
    assert (state.plan and state.plan.batch_id, state.sequence) == (2, 4 + heartbeats)
    assert state.claim
    assert (state.claim.epoch, state.claim.sign) == (1, 4 + heartbeats if heartbeats else 1)
