"""Operations `approve` and `abandon` for a refused batch, and `accept-clock` for the clock of the machine."""

from __future__ import annotations

from contextlib import suppress

from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.ledger import prepare
from windowlib.ledger.ledger import Clock, Ledger, NothingToDecide, wall_clock_ms
from windowlib.ledger.prepare import Publication
from windowlib.ledger.rows import LedgerState, Plan, abandon_row
from windowlib.publication.publish import STAGING
from windowlib.publication.start_versions import check_own, give_up
from windowlib.runs.operation import held


def approve(
    definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms, *, batch_id: int | None = None
) -> int:
    """Lets the next run publish the refused batch, in spite of its checks. Returns the id of the batch.

    Raises `NothingToDecide` if no batch waits, or if the waiting batch is not the given `batch_id`.
    """
    approved: list[int] = []

    def row(state: LedgerState) -> dict[str, object]:
        plan = _expected_batch(state, batch_id, "waits for approval", waits=bool(state.rejection))
        approved[:] = [plan.batch_id]
        return {"kind": "approve", "batch_id": plan.batch_id, "who": who, "reason": reason}

    ledger_of(definition, clock).decide(row)
    return approved[0]


def abandon(
    definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms, *, batch_id: int | None = None
) -> int:
    """Abandons the planned batch and returns its id. Tables return to the newest commit; the next run plans again.

    Raises:

    * `NothingToDecide` if no batch is planned, or if the planned batch is not the given `batch_id`;
    * `Superseded` while a run is in progress;
    * `ForeignChange` if another program has changed a table that must return;
    * `LostFiles` if another program has deleted files that must come back;
    * `StateMismatch` if a newer release has prepared the batch.
    """
    ledger = ledger_of(definition, clock)
    _expected_batch(ledger.state(), batch_id, "is planned")
    with held(ledger) as pipeline:
        state = pipeline.state
        frozen = _expected_batch(state, batch_id, "is planned")
        publication = _prepared_publication(ledger, state)
        if state.prepared:
            check_own(ledger.tables, state.versions)
        ledger.write(abandon_row(frozen.batch_id, who, reason), pipeline.claim.epoch)
        # If this process dies here, the next run continues: `windowlib.publication.start_versions`.
        if state.prepared:
            give_up(ledger.tables, state.versions, publication, pipeline.check)
        if publication:
            prepare.drop(ledger.store, publication)
        with suppress(OSError):  # maintenance deletes what the storage refuses
            staged = ledger.store.list(f"{STAGING}/{frozen.batch_id}-")
            ledger.store.delete([file.path for file in staged])
    return frozen.batch_id


def _prepared_publication(ledger: Ledger, state: LedgerState) -> Publication | None:
    """Prepared publication of the planned batch; None if there is none, or if its file is damaged or missing."""
    try:
        return prepare.read(ledger.store, state.prepared) if state.prepared else None
    except prepare.Unreadable:
        return None


def _expected_batch(state: LedgerState, batch_id: int | None, condition: str, *, waits: bool = True) -> Plan:
    """Plan of the planned batch. Raises `NothingToDecide` if no batch is planned, or if `waits` is False.

    Raises `NothingToDecide` also if the planned batch is not `batch_id`. A `batch_id` of None accepts any batch.
    `condition` completes the message.
    """
    plan, newest = state.plan if waits else None, state.last_batch_id
    if plan is None:
        if batch_id is None:
            raise NothingToDecide(f"no batch of this pipeline {condition}")
        outcome = (
            "is already committed or abandoned" if batch_id <= newest else f"was never planned, the newest is {newest}"
        )
        raise NothingToDecide(f"batch {batch_id} {outcome}; no batch {condition}")
    if batch_id not in (None, plan.batch_id):
        raise NothingToDecide(
            f"batch {plan.batch_id} {condition}, not batch {batch_id}. Check its status, then give --batch"
            f" {plan.batch_id} if you mean that batch"
        )
    return plan


def accept_clock(definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Lets runs use this machine's clock, however far it is ahead of the newest batch. Returns its time in ms."""
    ledger, now_ms = ledger_of(definition, clock), clock()
    ledger.write({"kind": "clock", "plan_time_ms": now_ms, "who": who, "reason": reason})
    return now_ms
