"""Versions of a window's result, each with its cause, from `result_changes` and the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windowlib.definition.instants import in_words
from windowlib.definition.plurals import counted
from windowlib.inspection.lineage.batch_runs import BatchRun
from windowlib.inspection.lineage.cuts import Cut
from windowlib.ledger.rerun_request import Rerun
from windowlib.plans.kinds.kind import Bounds


@dataclass(frozen=True, slots=True)
class ReplacedWindow:
    """A published window, superseded by an overlapping window of a later batch."""

    bounds_ms: Bounds
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResultVersion:
    """One change of a window's result. `why` explains the cause.

    `who` and `reason` come from the rerun, migration or approval behind the change.
    """

    batch_id: int
    change: str
    cause: str
    firing: int
    timing: str
    values: Mapping[str, Any]
    plan_time_ms: int
    watermark_in_ms: int
    watermark_out_ms: int
    why: str
    took_place_of: list[ReplacedWindow]
    who: str | None = None
    reason: str | None = None


def version_of(tables: Cut, row: Mapping[str, Any], changes: Sequence[Mapping[str, Any]]) -> ResultVersion:
    """Converts a row of `result_changes` to a version.

    `changes` are the rows of the key that overlap the window's bounds.
    """
    run = tables.batches[row["batch_id"]]
    together = [other for other in changes if other["batch_id"] == row["batch_id"] and other["bounds"] != row["bounds"]]
    replaced: list[ReplacedWindow] = []
    if row["change"] != "removed":
        merged = [old for old in together if old["change"] == "removed" and _overlap(old["bounds"], row["bounds"])]
        replaced = [
            ReplacedWindow(old["bounds"], values_of(tables.definition.outputs, old))
            for old in sorted(merged, key=lambda old: old["bounds"])
        ]
    who, reason = run.approved_by, run.approved_because
    if row["cause"] == "rerun" and run.rerun is not None:
        who, reason = run.rerun.who, run.rerun.reason
    if row["cause"] == "migrate" and run.decision is not None:
        who, reason = run.decision.who, run.decision.reason
    return ResultVersion(
        batch_id=run.batch_id,
        change=row["change"],
        cause=row["cause"],
        firing=row["firing"],
        timing=row["timing"],
        values=values_of(tables.definition.outputs, row),
        plan_time_ms=run.plan_time_ms,
        watermark_in_ms=run.watermark_in_ms,
        watermark_out_ms=run.watermark_out_ms,
        why=_why(row, run, replaced, together),
        took_place_of=replaced,
        who=who,
        reason=reason,
    )


def _why(
    row: Mapping[str, Any], run: BatchRun, replaced: Sequence[ReplacedWindow], together: Sequence[Mapping[str, Any]]
) -> str:
    """Cause of an addition, change or removal, as half a sentence."""
    match row["change"], row["cause"]:
        case "removed", "merge":
            into = [o for o in together if o["change"] != "removed" and _overlap(o["bounds"], row["bounds"])]
            return "merged" + "".join(f" into {in_words(other['bounds'])}" for other in into[:1])
        case change, "migrate":
            undone = run.decision is not None and run.decision.kind == "migrate_undo"
            return f"{change} as a migration was undone" if undone else f"{change} by a migration to another definition"
        case "removed", "forget":
            return "removed: this key was erased"
        case "removed", _:
            return f"removed by {_rerun(run.rerun)}"
        case _, "rerun":
            return f"{'recomputed' if row['change'] == 'changed' else 'made'} by {_rerun(run.rerun)}"
        case _, "firing":
            return "fired: the watermark passed its end" if row["timing"] == "on_time" else "fired before its end"
        case _, "merge":
            return f"events merged {counted(len(replaced), 'published window')} into this window"
        case "changed", _:
            return "changed by events that came after its end, within allowed_lateness"
    return "fired late: its first events came after its end, within allowed_lateness"


def _rerun(rerun: Rerun | None) -> str:
    return f"a rerun ({rerun.title})" if rerun else "a rerun"


def _overlap(first: Bounds, second: Bounds) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def values_of(outputs: Sequence[str], row: Mapping[str, Any]) -> dict[str, Any]:
    """Output values of a result."""
    return {name: row.get(name) for name in outputs}
