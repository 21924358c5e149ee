"""Batches that compute nothing: the outcome of a decision, of maintenance, a migration or an erasure.

One commit writes the plan and the prepared publication to the ledger. If the process dies before that commit, nothing
has changed. If the process dies later, the next run publishes the batch.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from windowlib.ledger import prepare
from windowlib.ledger.decision import Decision
from windowlib.ledger.prepare import Publication, TableChange
from windowlib.ledger.rows import (
    Commit,
    LedgerState,
    Plan,
    abandon_row,
    commit_row,
    plan_row,
    prepare_row,
)
from windowlib.runs.deadline import FAILED
from windowlib.runs.operation import HeldPipeline

NOTHING_READ = ("rows_read", "rows_admitted", "rows_late", "windows_fired_on_time")  # the figures of every batch


@dataclass(frozen=True, slots=True)
class DecisionBatch:
    """Table changes that a decision publishes as the newest batch. `changes` are in commit order.

    target:       the pipeline gets the definition, terms, watermark and source position of this commit
    counts:       figures of the rows that the tables hold after the batch
    of_rows:      some change adds or removes rows
    written:      the files to add were written for this batch alone, and are deleted if it is abandoned; without
                  `of_rows` this is always so
    plan_time_ms: plan time of the batch, or None for the plan time of the newest batch
    batch_id:     id of the batch, or None for the next batch id
    """

    decision: Decision
    target: Commit
    changes: tuple[TableChange, ...]
    counts: Mapping[str, int]
    of_rows: bool = True
    written: bool = False
    plan_time_ms: int | None = None
    batch_id: int | None = None


def publish_decision(pipeline: HeldPipeline, batch: DecisionBatch) -> int:
    """Publishes a decision as the newest batch, and returns its id. Abandons an unfinished batch.

    Raises `DecidedMeanwhile` if a plan or a decision was written after the claim, and the errors of
    `HeldPipeline.publish`.
    """
    ledger, state, decision = pipeline.ledger, pipeline.state, batch.decision
    plan = _plan(state, batch)
    publication = _publication(plan, batch, pipeline.attempt(plan.batch_id))
    prepared = prepare.write(ledger.store, publication)
    rows = [plan_row(plan), prepare_row(plan.batch_id, prepared)]
    if state.plan:
        why = f"{decision.title}: {decision.reason}"
        rows.insert(0, abandon_row(state.plan.batch_id, decision.who, why))
    ledger.write_together(rows, state, pipeline.claim.epoch)
    pipeline.publish(publication)
    return plan.batch_id


@contextmanager
def discarded_unless_fixed(pipeline: HeldPipeline, batch_id: int, discard: Callable[[], None]) -> Iterator[None]:
    """Calls `discard`, which deletes the files of a batch, if the block fails before the ledger contains the batch."""
    try:
        yield
    except FAILED:
        if pipeline.ledger.state().last_batch_id < batch_id:
            discard()
        raise


def _plan(state: LedgerState, batch: DecisionBatch) -> Plan:
    assert state.commit is not None, "there is a batch to go on from"
    return Plan(
        batch_id=state.last_batch_id + 1 if batch.batch_id is None else batch.batch_id,
        plan_time_ms=(state.time_ms or 0) if batch.plan_time_ms is None else batch.plan_time_ms,
        watermark_in_ms=state.commit.watermark_out_ms,
        from_sequence=batch.target.to_sequence,
        files=(),
        fingerprint=batch.target.fingerprint,
        definition=batch.target.definition,
        terms=batch.target.terms,
        decision=batch.decision,
        late_in_ms=state.commit.late_out_ms,
    )


def _publication(plan: Plan, batch: DecisionBatch, attempt: str) -> Publication:
    decision, target = batch.decision, batch.target
    counts = {**dict.fromkeys(NOTHING_READ, 0), **batch.counts}
    row = commit_row(plan, target.watermark_out_ms, target.late_out_ms, counts)
    return Publication(
        f"{attempt}-{uuid.uuid4()}",
        plan.batch_id,
        batch.changes,
        {**row, "who": decision.who, "reason": decision.reason},
        computed=batch.written or not batch.of_rows,
        of_rows=batch.of_rows,
    )
