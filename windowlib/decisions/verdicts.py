"""What an operator says: publish a batch in spite of its checks; give it up; this machine's clock is right."""

from __future__ import annotations

import shutil

from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.ledger import prepare
from windowlib.ledger.ledger import Clock, Ledger, NothingToDecide, wall_clock_ms
from windowlib.ledger.prepare import Publication
from windowlib.ledger.rows import LedgerState, Plan, abandon_row
from windowlib.publication.publish import staging_folder
from windowlib.publication.start_versions import check_own, give_up
from windowlib.runs.operation import held


def approve(
    definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms, *, batch_id: int | None = None
) -> int:
    """Lets the refused batch be published by the next run, in spite of its checks. Returns its id.

    With `batch_id` only that batch. Raises `NothingToDecide` where none waits, or another one.
    """
    approved: list[int] = []

    def row(state: LedgerState) -> dict[str, object]:
        plan = _meant(state, batch_id, "waits for approval", waits=bool(state.rejection))
        approved[:] = [plan.batch_id]
        return {"kind": "approve", "batch_id": plan.batch_id, "who": who, "reason": reason}

    ledger_of(definition, clock).decide(row)
    return approved[0]


def abandon(
    definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms, *, batch_id: int | None = None
) -> int:
    """Abandons the frozen batch: tables go back to the newest commit, the next run makes a new plan. Returns its id.

    With `batch_id` only that batch. Raises `NothingToDecide` where none is planned, or another one; `Superseded` while
    a run is at work; `ForeignChange` where another program has changed a table that would have to go back, `LostFiles`
    where it has deleted what would have to come back, `StateMismatch` where a newer release has prepared the batch.
    """
    ledger = ledger_of(definition, clock)
    _meant(ledger.state(), batch_id, "is planned")
    with held(ledger) as pipeline:
        state = pipeline.state
        frozen = _meant(state, batch_id, "is planned")
        made = _readable(ledger, state)
        if state.prepared:
            check_own(ledger.tables, state.versions)
        ledger.write(abandon_row(frozen.batch_id, who, reason), pipeline.claim.epoch)
        # Should this process die here, the next run does it: `windowlib.publication.start_versions`.
        if state.prepared:
            give_up(ledger.tables, state.versions, made, pipeline.check)
        if made:
            prepare.drop(ledger.root, made)
    for folder in staging_folder(definition.root).glob(f"{frozen.batch_id}-*"):
        shutil.rmtree(folder, ignore_errors=True)
    return frozen.batch_id


def _readable(ledger: Ledger, state: LedgerState) -> Publication | None:
    """The prepared publication that is given up; None without one, and where its file is damaged or gone."""
    try:
        return prepare.read(ledger.root, state.prepared) if state.prepared else None
    except prepare.Unreadable:
        return None


def _meant(state: LedgerState, batch_id: int | None, how: str, *, waits: bool = True) -> Plan:
    """The batch that there is, if it is the one that is meant."""
    plan, newest = state.plan if waits else None, state.last_batch_id
    if plan is None:
        if batch_id is None:
            raise NothingToDecide(f"no batch of this pipeline {how}")
        was = "is done or given up" if batch_id <= newest else f"was never planned, the newest is {newest}"
        raise NothingToDecide(f"batch {batch_id} {was}: none {how}")
    if batch_id not in (None, plan.batch_id):
        raise NothingToDecide(
            f"batch {plan.batch_id} {how}, not batch {batch_id}: look at its status, then say --batch"
            f" {plan.batch_id} if you mean it"
        )
    return plan


def accept_clock(definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Lets batches be planned by this machine's clock, however far it is from the newest one. Gives its time, in ms."""
    ledger, now_ms = ledger_of(definition, clock), clock()
    ledger.write({"kind": "clock", "plan_time_ms": now_ms, "who": who, "reason": reason})
    return now_ms
