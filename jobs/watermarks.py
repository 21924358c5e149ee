"""How a run moves time: the rule is `windowlib.watermark`; here are its inputs, and the row that explains each step."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jobs import delta
from jobs.definition import Definition
from jobs.intake import Seen
from jobs.ledger import Commit, Plan
from jobs.tables import WATERMARKS
from windowlib.watermark import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    SourceState,
    SourceWatermark,
    WatermarkPolicy,
    combine,
    observe,
)

SOURCE = "source"  # the name of a pipeline's one source in `watermarks`


def utc(time_ms: int) -> datetime:
    """A TIMESTAMP of whole milliseconds."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)


def policy_of(definition: Definition) -> WatermarkPolicy:
    """The core's policy of a definition."""
    return WatermarkPolicy(definition.watermark.out_of_orderness_ms, definition.watermark.idle_timeout_ms)


def last(root: Path, before: Commit | None) -> dict[str, Any] | None:
    """The newest row of `watermarks` as of a commit."""
    version = before.versions.get(WATERMARKS.name) if before else None
    files = delta.files(root / WATERMARKS.name, version)
    if not files:
        return None
    newest = max(files, key=lambda f: f.high["batch_id"])
    rows = delta.rows_of(delta.read_parquet(root / WATERMARKS.name / newest.path, WATERMARKS.columns))
    return max(rows, key=lambda row: row["batch_id"])


def move(definition: Definition, plan: Plan, before: Commit | None, seen: Seen) -> tuple[int, dict[str, Any]]:
    """The watermark after a batch, and its row in `watermarks`."""
    policy = policy_of(definition)
    earlier = last(definition.root, before)
    known = SourceWatermark(
        earlier["applied_ms"] if earlier else MIN_WATERMARK,
        SourceState.ACTIVE,
        earlier["active_at_ms"] if earlier else None,
    )
    newest_ms = seen.newest.timestamp_ms if seen.newest else None
    now = observe(known, newest_ms, plan.plan_time_ms, policy)
    candidate_ms = None if newest_ms is None else policy.candidate_ms(newest_ms)
    if plan.finished:
        now, candidate_ms = replace(now, state=SourceState.FINISHED), MAX_WATERMARK
    applied_ms = combine(known.watermark_ms, [now], plan.plan_time_ms, policy)
    row = {
        "batch_id": plan.batch_id,
        "source": SOURCE,
        "plan_time": utc(plan.plan_time_ms),
        "state": now.state.value,
        "candidate_ms": candidate_ms,
        "applied_ms": applied_ms,
        "clamped": candidate_ms is not None and candidate_ms < applied_ms,
        "max_event_time_ms": newest_ms,
        "source_file": seen.newest.file if seen.newest else None,
        "source_row": seen.newest.row if seen.newest else None,
        "active_at_ms": now.heard_ms,
    }
    return applied_ms, row
