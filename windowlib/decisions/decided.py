"""A batch that computes nothing: what an operator has decided, or maintenance, as a plan and a prepared publication.

Both are written to the ledger together, so that a process which dies before has done nothing, and one that dies later
is finished by the next run.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from windowlib.ledger import prepare
from windowlib.ledger.decision import Decision
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.prepare import Publication, TableChange
from windowlib.ledger.rows import (
    Claim,
    Commit,
    LedgerState,
    Plan,
    abandon_row,
    commit_row,
    plan_row,
    prepare_row,
)
from windowlib.source import marker

NOTHING_READ = ("rows_read", "rows_admitted", "rows_late", "windows_fired_on_time")  # the figures of every batch


@dataclass(frozen=True, slots=True)
class DecisionBatch:
    """What such a batch does: `changes` in commit order, the `commit` whose place it takes, rows left by figure.

    Where its files were `written` for it, as they are where no change is `of_rows`, they go when it is given up.
    """

    decision: Decision
    commit: Commit
    changes: tuple[TableChange, ...]
    counts: Mapping[str, int]
    of_rows: bool = True
    written: bool = False


def fixed(ledger: Ledger, claim: Claim, state: LedgerState, decided: DecisionBatch) -> Publication:
    """The publication of a decision, written down together with its plan; an unfinished batch is abandoned.

    Raises `DecidedMeanwhile` where the pipeline was planned or decided about since `state`.
    """
    assert state.commit is not None, "there is a batch to go on from"
    commit, decision = decided.commit, decided.decision
    plan = Plan(
        batch_id=state.last_batch_id + 1,
        plan_time_ms=(commit.plan_time_ms if decision.kind == "rollback" else state.time_ms) or 0,
        watermark_in_ms=state.commit.watermark_out_ms,
        from_sequence=commit.to_sequence,
        files=(),
        fingerprint=commit.fingerprint,
        definition=commit.definition if decision.kind == "maintain" else marker.without(commit.definition),
        decision=decision,
        late_in_ms=state.commit.late_out_ms,
    )
    counts = {**dict.fromkeys(NOTHING_READ, 0), **decided.counts}
    row = commit_row(plan, commit.watermark_out_ms, commit.late_out_ms, counts)
    row |= {"who": decision.who, "reason": decision.reason}
    identity, of_rows = f"{plan.batch_id}-{uuid.uuid4()}", decided.of_rows
    computed = decided.written or not of_rows
    made = Publication(identity, plan.batch_id, decided.changes, row, computed=computed, of_rows=of_rows)
    rows: list[Mapping[str, object]] = []
    if state.plan:
        why = f"{decision.title}: {decision.reason}"
        rows.append(abandon_row(state.plan.batch_id, decision.who, why))
    prepared = prepare.write(ledger.root, made)
    ledger.write_together([*rows, plan_row(plan), prepare_row(plan.batch_id, prepared)], state, claim.epoch)
    return made
