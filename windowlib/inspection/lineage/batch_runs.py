"""The batches of a pipeline, as its ledger has them, and which of them the tables of now come from."""

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
    """A batch that exists: its times, in ms, the versions of the tables that it left, and its rerun, if it is one.

    Windows whose last ms is not above `late_in_ms` were late when it began, those not above `late_out_ms` at its end.
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
    part_of: int | None = None  # the migration of whose tables it has built a part


def of_this_definition(batches: Sequence[BatchRun]) -> list[BatchRun]:
    """Those that today's tables come from: since the newest migration, or from before one that was undone."""
    found, before = list[BatchRun](), list[BatchRun]()
    for run in batches:
        match run.decision:
            case Decision(kind="migrate"):
                before, found = found, [_cut_of(run, cut) for cut in run.decision.cuts[:-1]]
                last = run.decision.cuts[-1]
                found.append(replace(_cut_of(run, last), versions=run.versions, part_of=None))
            case Decision(kind="migrate_undo"):
                found = [*before, run]
            case _:
                found.append(run)
    return found


def history(batches: Mapping[int, BatchRun], batch_id: int) -> dict[int, BatchRun]:
    """The batch and those before it that its tables come from, by id: what a rollback has undone is not among them."""
    numbers, found = sorted(batches), dict[int, BatchRun]()
    at = bisect_right(numbers, batch_id)
    while at:
        run = batches[numbers[at - 1]]
        found[run.batch_id] = run
        match run.decision:
            case Decision(kind="rollback", to_batch_id=int(to)):
                at = bisect_right(numbers, to)
            case _:
                at -= 1
    return dict(sorted(found.items()))


def _cut_of(run: BatchRun, cut: Mapping[str, Any]) -> BatchRun:
    """A batch in which a migration has built its tables."""
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
    """Every committed batch, from the ledger, oldest first."""
    ledger = ledger_of(definition)
    table, version = ledger.tables[LEDGER.name], ledger.state().version
    plans, approvals, commits = newest_of_batches(table, version, ("plan", "approve", "commit"), _COLUMNS).values()
    return [_batch(row, plans[number], approvals.get(number, {})) for number, row in sorted(commits.items())]


def _batch(row: Mapping[str, Any], plan: Mapping[str, Any], approval: Mapping[str, Any]) -> BatchRun:
    """The batch of a commit row, and of its plan; that an earlier plan of it was approved does not count."""
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
