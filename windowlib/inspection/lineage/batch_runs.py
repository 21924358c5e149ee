"""Committed batches of a pipeline in its ledger, and the batches behind the current tables."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import LEDGER
from windowlib.definition.definition import Definition
from windowlib.ledger.decision import Decision, decision_of
from windowlib.ledger.reading import newest_of_batches
from windowlib.ledger.rerun_request import Rerun, rerun_of
from windowlib.ledger.rows import at_ms_of
from windowlib.model.watermark import MIN_WATERMARK

_COLUMNS = (
    *("at", "plan_time_ms", "watermark_in_ms", "watermark_out_ms", "late_in_ms", "late_out_ms"),
    *("rerun", "decision", "versions", "who", "reason"),
)


@dataclass(frozen=True, slots=True)
class BatchRun:
    """A committed batch. `versions` are the table versions after the batch. `rerun` is the request of a rerun, or None.

    A window is late at the start of the batch if its last ms is at most `late_in_ms`. It is late at the end of the
    batch if its last ms is at most `late_out_ms`.
    """

    batch_id: int
    plan_time_ms: int
    watermark_in_ms: int
    watermark_out_ms: int
    late_in_ms: int
    late_out_ms: int
    committed_at_ms: int
    versions: Mapping[str, int]
    rerun: Rerun | None = None
    approved_by: str | None = None
    approved_because: str | None = None
    decision: Decision | None = None
    part_of: int | None = None  # batch of the migration whose tables this batch built in part


def of_this_definition(batches: Sequence[BatchRun]) -> list[BatchRun]:
    """Batches behind the current tables.

    After a migration, these are the batches that built its tables, and all later batches. After an undo, these are the
    batches before the migration, the undo, and all later batches.
    """
    current, before = list[BatchRun](), list[BatchRun]()
    for run in batches:
        match run.decision:
            case Decision(kind="migrate"):
                before, current = current, [_cut_of(run, cut) for cut in run.decision.cuts[:-1]]
                last = run.decision.cuts[-1]
                current.append(replace(_cut_of(run, last), versions=run.versions, part_of=None))
            case Decision(kind="migrate_undo"):
                current = [*before, run]
            case _:
                current.append(run)
    return current


def history(batches: Mapping[int, BatchRun], batch_id: int) -> dict[int, BatchRun]:
    """The batch and its predecessors by id, without the batches that a rollback has undone."""
    numbers, runs = sorted(batches), dict[int, BatchRun]()
    at = bisect_right(numbers, batch_id)
    while at:
        run = batches[numbers[at - 1]]
        runs[run.batch_id] = run
        match run.decision:
            case Decision(kind="rollback", to_batch_id=int(to)):
                at = bisect_right(numbers, to)
            case _:
                at -= 1
    return dict(sorted(runs.items()))


def _cut_of(run: BatchRun, cut: Mapping[str, Any]) -> BatchRun:
    """Converts the record of a batch that built tables of a migration, from the migration's decision."""
    return BatchRun(
        batch_id=cut["batch_id"],
        plan_time_ms=cut["plan_time_ms"],
        watermark_in_ms=MIN_WATERMARK if cut["watermark_in_ms"] is None else cut["watermark_in_ms"],
        watermark_out_ms=cut["watermark_out_ms"],
        late_in_ms=cut["late_in_ms"],
        late_out_ms=cut["late_out_ms"],
        committed_at_ms=cut["committed_at_ms"],
        versions={},
        rerun=rerun_of(cut),
        decision=run.decision,
        part_of=run.batch_id,
    )


def batches_of(definition: Definition) -> list[BatchRun]:
    """Every committed batch in the ledger, oldest first."""
    ledger = ledger_of(definition)
    table, version = ledger.tables[LEDGER.name], ledger.state().version
    plans, approvals, commits = newest_of_batches(table, version, ("plan", "approve", "commit"), _COLUMNS).values()
    return [_batch(row, plans[number], approvals.get(number, {})) for number, row in sorted(commits.items())]


def _batch(row: Mapping[str, Any], plan: Mapping[str, Any], approval: Mapping[str, Any]) -> BatchRun:
    """The batch of a commit row and its plan. Ignores an approval of an earlier plan."""
    approval = approval if approval.get("sequence", 0) > plan["sequence"] else {}
    return BatchRun(
        batch_id=row["batch_id"],
        plan_time_ms=plan["plan_time_ms"],
        watermark_in_ms=MIN_WATERMARK if plan["watermark_in_ms"] is None else plan["watermark_in_ms"],
        watermark_out_ms=row["watermark_out_ms"],
        late_in_ms=row["late_in_ms"],
        late_out_ms=row["late_out_ms"],
        committed_at_ms=at_ms_of(row),
        versions=dict(row["versions"]),
        rerun=rerun_of(row) or rerun_of(plan),
        approved_by=approval.get("who"),
        approved_because=approval.get("reason"),
        decision=decision_of(row),
    )
