"""Movement of the watermark by a run: inputs of the rule in `model.watermark`, and the row that records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from windowlib.contract.tables import WATERMARKS
from windowlib.definition.instants import utc
from windowlib.definition.toml.file import WatermarkSection
from windowlib.delta import small_tables as small
from windowlib.delta.tables import Tables
from windowlib.ledger.rows import Commit, Plan
from windowlib.model.watermark import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    SourceState,
    SourceWatermark,
    WatermarkPolicy,
    combine,
    observe,
)
from windowlib.source.intake import BatchIntake

SOURCE = "source"  # name of the only source of a pipeline, in `watermarks`


def policy_of(watermark: WatermarkSection) -> WatermarkPolicy:
    """Policy of the model for the section [watermark] of a definition."""
    return WatermarkPolicy(watermark.out_of_orderness_ms, watermark.idle_timeout_ms)


def last(tables: Tables, before: Commit | None) -> dict[str, Any] | None:
    """Newest row of `watermarks` at a commit; None before the first batch."""
    table, version = tables[WATERMARKS.name], before.versions.get(WATERMARKS.name) if before else None
    return small.newest_of(table, table.files(version), WATERMARKS.columns, "batch_id")


@dataclass(frozen=True, slots=True)
class WatermarkMove:
    """Movement of the watermark by a batch; `row` is its row in `watermarks`."""

    row: Mapping[str, Any]

    @property
    def applied_ms(self) -> int:
        return int(self.row["applied_ms"])

    @property
    def candidate_ms(self) -> int | None:
        candidate_ms: int | None = self.row["candidate_ms"]
        return candidate_ms


def move(
    policy: WatermarkPolicy, plan: Plan, earlier: Mapping[str, Any] | None, batch_intake: BatchIntake
) -> WatermarkMove:
    """Moves the watermark. `earlier` is the newest row of `watermarks` before the batch.

    A source is idle only if nothing is left to read: other files may follow a batch of files without an event. If an
    operator moves the watermark, silence does not move it further.
    """
    before = SourceWatermark(
        earlier["applied_ms"] if earlier else MIN_WATERMARK,
        SourceState.ACTIVE,
        earlier["active_at_ms"] if earlier else None,
    )
    newest_ms = batch_intake.newest.timestamp_ms if batch_intake.newest else None
    to_ms = plan.decision.to_ms if plan.decision else None
    now = observe(before, newest_ms, plan.plan_time_ms, policy)
    if plan.files or to_ms is not None:
        now = replace(now, state=SourceState.ACTIVE)
    candidate_ms = None if newest_ms is None else policy.candidate_ms(newest_ms)
    if plan.finished:
        now, candidate_ms = replace(now, state=SourceState.FINISHED), MAX_WATERMARK
    applied_ms = combine(before.watermark_ms, [now], plan.plan_time_ms, policy)
    if to_ms is not None:
        candidate_ms, applied_ms = to_ms, max(applied_ms, to_ms)
    row = {
        "batch_id": plan.batch_id,
        "source": SOURCE,
        "plan_time": utc(plan.plan_time_ms),
        "state": now.state.value,
        "candidate_ms": candidate_ms,
        "applied_ms": applied_ms,
        "clamped": candidate_ms is not None and candidate_ms < applied_ms,
        "max_event_time_ms": newest_ms,
        "source_file": batch_intake.newest.file if batch_intake.newest else None,
        "source_row": batch_intake.newest.row if batch_intake.newest else None,
        "active_at_ms": now.heard_ms,
    }
    return WatermarkMove(row)
