"""The control plane: who may run, what a run will read, and which runs exist.

The ledger is one append-only Delta table whose every append is a compare-and-set, so that its rows are totally
ordered, on a local disk too. Two rules make a run safe to kill and safe to start twice:

* **A plan is frozen.** Before any work a `plan` row fixes the batch: files, watermark, plan time, and the terms under
  which it is computed. A retry finds that row and does the same work again, or, under other terms, replaces it.
* **A claim fences.** A `claim` row names its owner and raises the epoch; a writer whose epoch is not the highest any
  more is refused its next row (`Superseded`). A claim lives while its process is at work, or, where that cannot be
  seen, while heartbeats come in (`windowlib.tables.owner`).

A `commit` row, written last, names the version of every table: from then on the run exists.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from windowlib.model.errors import ExpectationsFailed, StateMismatch, WindowError
from windowlib.tables import delta, owner
from windowlib.tables.decision import Decision
from windowlib.tables.meaning import LEDGER
from windowlib.tables.opened import Table, Tables
from windowlib.tables.owner import Life, Owner, shows_life
from windowlib.tables.prepare import Prepared
from windowlib.tables.rerun import Rerun

Clock = Callable[[], int]  # milliseconds since the epoch


def wall_clock_ms() -> int:
    """The clock of the control plane. A run's own time is its plan's."""
    return time.time_ns() // 1_000_000


class Superseded(WindowError):
    """Another run holds this pipeline, or has taken it over."""


class NothingToDecide(WindowError):
    """`approve` or `abandon`, but no batch waits for it."""


class Rejected(ExpectationsFailed):
    """The checks refused this batch; it waits for `windowlib approve` or `windowlib abandon`."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the source at its place in arrival order (`sequence` from 1)."""

    path: str
    size_bytes: int
    modified_ns: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What one batch will do, frozen before any work. The source range is `(from_sequence, to_sequence]`."""

    batch_id: int
    plan_time_ms: int
    watermark_in_ms: int | None
    from_sequence: int
    files: tuple[SourceFile, ...]
    fingerprint: str
    definition: str
    finished: bool = False  # no more events will come: every window fires
    rerun: Rerun | None = None  # a rerun: reads no new file
    terms: str | None = None  # JSON of what else decides its outcome; None where an earlier release planned it
    decision: Decision | None = None  # an operator's, that computes nothing

    @property
    def to_sequence(self) -> int:
        return self.from_sequence + len(self.files)


@dataclass(frozen=True, slots=True)
class Commit:
    """A run that exists: the versions of all tables, the watermark and the source position it left."""

    batch_id: int
    versions: Mapping[str, int]
    watermark_out_ms: int | None
    to_sequence: int
    fingerprint: str
    definition: str
    counts: Mapping[str, int]
    at_ms: int
    rerun: Rerun | None = None  # of a rerun
    plan_time_ms: int | None = None
    decision: Decision | None = None  # of what an operator decided


@dataclass(frozen=True, slots=True)
class Claim:
    """Who runs now, or ran last.

    `alive_at_ms` is the time of the claim's row or of its newest heartbeat's by its own machine's clock, `sign` that
    row's place in the ledger.
    """

    epoch: int
    owner: str
    alive_at_ms: int
    sign: int
    released: bool = False


@dataclass(frozen=True, slots=True)
class LedgerState:
    """The ledger's tail, read back to its newest commit row."""

    version: int | None = None
    sequence: int = 0
    last_batch_id: int = 0
    commit: Commit | None = None
    time_ms: int | None = None  # when the newest batch was planned, or what an operator has accepted as right since
    claim: Claim | None = None
    plan: Plan | None = None  # frozen, not committed, not abandoned
    prepared: Prepared | None = None  # what that plan came to, fixed before the first table changes
    rejection: str | None = None  # why the checks refused it
    approved_by: str | None = None

    def pinned(self, table: str) -> int | None:
        """The version of a table that the newest commit row names; None where it names none."""
        return self.commit.versions.get(table) if self.commit else None

    @property
    def left_by_a_dead_run(self) -> bool:
        """Whether the run that claimed last did not release: it may be dead, or only slow."""
        return self.claim is not None and not self.claim.released


@dataclass(slots=True)
class Ledger:
    """The ledger of one pipeline, and its `tables`, which a run opens once and passes on.

    `root` is the pipeline's folder; `clock` stamps rows and judges leases. Several threads may write to one ledger.
    """

    root: Path
    clock: Clock
    lease_timeout_ms: int = 120_000
    tables: Tables = field(init=False)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _state: LedgerState = field(default_factory=LedgerState)  # as it was last read

    def __post_init__(self) -> None:
        self.tables = Tables(self.root)

    def state(self) -> LedgerState:
        """What holds now."""
        with self._lock:
            table = self.tables[LEDGER.name]
            if delta.version(table) != self._state.version:
                self._state = _fold(table)
            return self._state

    def claim(self, note: Callable[[str], None] = lambda what: None) -> tuple[LedgerState, Claim]:
        """Claims the pipeline; tells what held before. Raises `Superseded` when a run that is at work holds it.

        Where that run cannot be seen from here, this waits for a heartbeat of it, at most `lease_timeout`.
        """
        tries = delta.Tries()
        while True:
            tries.next()
            state = self.state()
            if state.claim and not state.claim.released and not self._is_free(state.claim, note):
                continue  # released meanwhile
            epoch = (state.claim.epoch if state.claim else 0) + 1
            mine = owner.this_process().to_json()
            try:
                self._append(state, {"kind": "claim", "epoch": epoch, "owner": mine})
            except delta.Conflict:
                continue  # a planner, an operator or another claim was faster: look again
            return state, Claim(epoch, mine, self.clock(), state.sequence + 1)

    def write(self, row: Mapping[str, Any], epoch: int | None = None) -> None:
        """Appends a row. With `epoch`, only while no later claim exists: else raises `Superseded`."""
        self.decide(lambda state: row, epoch)

    def decide(self, make: Callable[[LedgerState], Mapping[str, Any]], epoch: int | None = None) -> None:
        """Appends the row that `make` gives for exactly the state that the row then follows. Raises as `write`."""
        tries = delta.Tries()
        while True:
            tries.next()
            with self._lock:
                state = self.state()
                if epoch is not None:
                    self.check(epoch)
                current = state.claim.epoch if state.claim else 0
                row = make(state)
                try:
                    return self._append(state, {"epoch": current, **row})
                except delta.Conflict:
                    continue  # an operator, a planner or a heartbeat was faster: look again

    def write_together(self, rows: Sequence[Mapping[str, Any]], after: LedgerState, epoch: int) -> None:
        """Appends all of some rows or none, if nothing but heartbeats came after a state. Raises as `write`."""
        tries = delta.Tries()
        while True:
            tries.next()
            with self._lock:
                state = self.state()
                self.check(epoch)
                if (state.plan, state.prepared, state.commit) != (after.plan, after.prepared, after.commit):
                    raise Superseded("the pipeline was planned or decided about meanwhile: look again")
                try:
                    return self._append(state, *({"epoch": epoch, **row} for row in rows))
                except delta.Conflict:
                    continue

    def check(self, epoch: int) -> None:
        """Raises `Superseded` unless the claim with this epoch is the newest."""
        claim = self.state().claim
        if claim is None or claim.epoch != epoch:
            raise Superseded(
                f"another run took this pipeline over (claim {claim.epoch if claim else 0}, this run has {epoch})"
            )

    def batch_of_preview(self, preview_id: str) -> int | None:
        """The batch that did the rerun which a dry run said; None where none has, or a rollback has undone it."""
        table, found, decided = self.tables[LEDGER.name], None, list[tuple[int, Decision]]()
        for file in delta.files(table, delta.version(table)):
            for row in _rows(table.folder / file.path):
                if row["kind"] == "commit" and (done := _correction(row)) and done.preview_id == preview_id:
                    found = int(row["batch_id"])
                if row["kind"] == "commit" and row["decision"]:
                    decided.append((int(row["batch_id"]), Decision.from_json(row["decision"])))
        if found is not None and any(one.undoes(found) for batch_id, one in decided if batch_id > found):
            return None
        return found

    def commits(self) -> list[Commit]:
        """Every batch that was committed, oldest first; those that a rollback has undone among them."""
        table = self.tables[LEDGER.name]
        rows = (row for f in delta.files(table, delta.version(table)) for row in _rows(table.folder / f.path))
        found = [_commit(row, _at_ms(row)) for row in rows if row["kind"] == "commit"]
        return sorted(found, key=lambda commit: commit.batch_id)

    def freeze(self, make: Callable[[LedgerState], Plan | None]) -> tuple[LedgerState, Plan | None]:
        """The plan to work on: the frozen one, or what `make` gives, frozen now; None when there is nothing to do."""
        tries = delta.Tries()
        while True:
            tries.next()
            with self._lock:
                state = self.state()
                if state.plan:
                    return state, state.plan
                plan = make(state)
                if plan is None:
                    return state, None
                try:
                    self._append(
                        state, {"kind": "plan", "epoch": state.claim.epoch if state.claim else 0, **plan_row(plan)}
                    )
                except delta.Conflict:
                    continue
                return replace(state, plan=plan), plan

    def replace_plan(
        self, stale: Plan, make: Callable[[LedgerState], Plan | None], epoch: int
    ) -> tuple[LedgerState, Plan | None]:
        """Freezes what `make` gives in the place of a plan that is not prepared, under the same batch id.

        Where `make` finds nothing to do any more, the batch is abandoned. Raises `Superseded` when a later claim
        exists.
        """
        tries = delta.Tries()
        while True:
            tries.next()
            with self._lock:
                state = self.state()
                self.check(epoch)
                if state.plan != stale or state.prepared:
                    return state, state.plan
                before = replace(state, plan=None, rejection=None, approved_by=None, last_batch_id=stale.batch_id - 1)
                plan = make(before)
                row = {"kind": "plan", **plan_row(plan)} if plan else _without_work(stale)
                try:
                    self._append(state, {"epoch": epoch, **row})
                except delta.Conflict:
                    continue
                return replace(before, plan=plan), plan

    def _append(self, state: LedgerState, *rows: Mapping[str, Any]) -> None:
        """Appends rows in one commit. Raises `Conflict`."""
        table, version = self.tables[LEDGER.name], state.version
        if version is None:
            version = delta.create(table, LEDGER.schema())
        else:
            version = delta.add_columns(table, version, LEDGER.schema())  # of an earlier release of windowlib
        at = datetime.fromtimestamp(self.clock() / 1000, UTC)
        numbered = [{"sequence": state.sequence + n, "at": at, **row} for n, row in enumerate(rows, 1)]
        delta.append_rows(table, version, numbered)

    def holder(self, claim: Claim) -> str | None:
        """Who holds the claim, in words, or None when no run does any more. By the clocks: only to be shown."""
        by = Owner.of_json(claim.owner)
        match by.life():
            case Life.AT_WORK:
                return str(by)
            case Life.ENDED:
                return None
        age_ms = self.clock() - claim.alive_at_ms
        return None if age_ms >= self.lease_timeout_ms else f"{by}, last heard of {age_ms // 1000} s ago"

    def _is_free(self, claim: Claim, note: Callable[[str], None]) -> bool:
        """Whether the run that made the claim has ended; False once it is released. Raises `Superseded`."""
        by = Owner.of_json(claim.owner)
        life = by.life()
        if life is Life.OUT_OF_SIGHT:
            note(f"waiting up to {self.lease_timeout_ms // 1000} s for a sign of {by}, which holds this pipeline")
            if shows_life(lambda: self.state().claim, self.lease_timeout_ms):
                if (now := self.state().claim) is None or now.released:
                    return False
                life = Life.AT_WORK
        if life is Life.AT_WORK:
            raise Superseded(f"another run holds this pipeline ({by}); it continues, this one leaves")
        return True


def plan_row(plan: Plan) -> dict[str, Any]:
    """What a `plan` row says."""
    return {
        "batch_id": plan.batch_id,
        "plan_time_ms": plan.plan_time_ms,
        "watermark_in_ms": plan.watermark_in_ms,
        "from_sequence": plan.from_sequence,
        "to_sequence": plan.to_sequence,
        "files": [{name: getattr(f, name) for name in SourceFile.__dataclass_fields__} for f in plan.files],
        "fingerprint": plan.fingerprint,
        "definition": plan.definition,
        "finished": plan.finished,
        "correction": plan.rerun.to_json() if plan.rerun else None,
        "terms": plan.terms,
        "decision": plan.decision.to_json() if plan.decision else None,
    }


def _without_work(plan: Plan) -> dict[str, Any]:
    reason = "planned under other terms; under those of now there is nothing to do"
    return {"kind": "abandon", "batch_id": plan.batch_id, "who": "windowlib", "reason": reason}


def _fold(table: Table) -> LedgerState:
    version = delta.version(table)
    if version is None:
        return LedgerState()
    state = LedgerState(version=version)
    for row in _tail(table, version):
        state = _apply(replace(state, sequence=row["sequence"]), row)
    return state


def _tail(table: Table, version: int) -> Sequence[Mapping[str, Any]]:
    """The rows from the newest commit row on, and the newest claim before it, oldest first.

    Files are read newest first and only as far as needed, so the ledger's length does not matter.
    """
    rows: list[Mapping[str, Any]] = []
    newest_first = sorted(delta.files(table, version), key=lambda f: -f.high["sequence"])
    for file in newest_first:
        rows += _rows(table.folder / file.path)
        kinds = {row["kind"] for row in rows}
        if {"claim", "commit"} <= kinds:
            break
    return sorted(rows, key=lambda row: row["sequence"])


@lru_cache(maxsize=256)
def _rows(file: Path) -> Sequence[Mapping[str, Any]]:
    """The rows of one of the ledger's files, which never change."""
    return delta.rows_of(delta.read_parquet(file, LEDGER.columns))


def _apply(state: LedgerState, row: Mapping[str, Any]) -> LedgerState:
    at_ms = _at_ms(row)
    if row["batch_id"] is not None:
        state = replace(state, last_batch_id=max(state.last_batch_id, row["batch_id"]))
    match row["kind"]:
        case "claim":
            return replace(state, claim=Claim(row["epoch"], row["owner"], at_ms, row["sequence"]))
        case "heartbeat" if state.claim:
            return replace(state, claim=replace(state.claim, alive_at_ms=at_ms, sign=row["sequence"]))
        case "release" if state.claim:
            return replace(state, claim=replace(state.claim, released=True))
        case "plan":
            return replace(state, plan=_plan(row), prepared=None, rejection=None, approved_by=None)
        case "prepare":
            prepared = Prepared(row["prepared"], row["sha256"])
            return replace(state, prepared=prepared, rejection=row["reason"], approved_by=None)
        case "reject":  # of earlier releases, whose approved batches are computed again
            return replace(state, rejection=row["reason"], approved_by=None)
        case "approve":
            return replace(state, approved_by=row["who"])
        case "abandon":
            return replace(state, plan=None, prepared=None, rejection=None, approved_by=None)
        case "commit":
            commit = _commit(row, at_ms)
            state = replace(state, commit=commit, time_ms=row["plan_time_ms"])
            return replace(state, plan=None, prepared=None, rejection=None, approved_by=None)
        case "restore":
            return state  # what was taken back stands in the tables' logs
        case "clock":
            return replace(state, time_ms=row["plan_time_ms"])
        case "heartbeat" | "release":
            return state  # the claim itself is further back than was read
    raise StateMismatch(
        f"row {row['sequence']} of the ledger is of a kind that this version of windowlib does not know:"
        f" {row['kind']}. A newer version has written it: use that one"
    )


def _at_ms(row: Mapping[str, Any]) -> int:
    return int(row["at"].timestamp() * 1000)


def _plan(row: Mapping[str, Any]) -> Plan:
    return Plan(
        batch_id=row["batch_id"],
        plan_time_ms=row["plan_time_ms"],
        watermark_in_ms=row["watermark_in_ms"],
        from_sequence=row["from_sequence"],
        files=tuple(SourceFile(**f) for f in row["files"] or ()),
        fingerprint=row["fingerprint"],
        definition=row["definition"],
        finished=bool(row["finished"]),
        rerun=_correction(row),
        terms=row["terms"],
        decision=_decision(row),
    )


def _commit(row: Mapping[str, Any], at_ms: int) -> Commit:
    return Commit(
        batch_id=row["batch_id"],
        versions=dict(row["versions"]),
        watermark_out_ms=row["watermark_out_ms"],
        to_sequence=row["to_sequence"],
        fingerprint=row["fingerprint"],
        definition=row["definition"],
        counts=dict(row["counts"]),
        at_ms=at_ms,
        rerun=_correction(row),
        plan_time_ms=row["plan_time_ms"],
        decision=_decision(row),
    )


def _decision(row: Mapping[str, Any]) -> Decision | None:
    return Decision.from_json(row["decision"]) if row["decision"] else None


def _correction(row: Mapping[str, Any]) -> Rerun | None:
    return Rerun.from_json(row["correction"]) if row["correction"] else None
