"""The versions of a window's result, each with why it came about, as `result_changes` and the ledger have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windowlib.definition.instants import in_words
from windowlib.inspection.lineage.batch_runs import BatchRun
from windowlib.inspection.lineage.cuts import Cut
from windowlib.ledger.rerun_request import Rerun
from windowlib.plans.kinds.kind import Bounds


@dataclass(frozen=True, slots=True)
class ReplacedWindow:
    """A published window whose place another one took."""

    bounds_ms: Bounds
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResultVersion:
    """One change of a window's result. `why` in a sentence; `who` and `reason` of a rerun, or of an approval."""

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
    """A row of `result_changes` in words; `changes` are those of the key's windows around it."""
    run = tables.batches[row["batch_id"]]
    together = [one for one in changes if one["batch_id"] == row["batch_id"] and one["bounds"] != row["bounds"]]
    taken: list[ReplacedWindow] = []
    if row["change"] != "removed":
        merged = [one for one in together if one["change"] == "removed" and _overlap(one["bounds"], row["bounds"])]
        taken = [
            ReplacedWindow(one["bounds"], values_of(tables.definition.outputs, one))
            for one in sorted(merged, key=lambda one: one["bounds"])
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
        why=_why(row, run, taken, together),
        took_place_of=taken,
        who=who,
        reason=reason,
    )


def _why(
    row: Mapping[str, Any], run: BatchRun, taken: Sequence[ReplacedWindow], together: Sequence[Mapping[str, Any]]
) -> str:
    """Why a result was added, changed or removed, in half a sentence."""
    match row["change"], row["cause"]:
        case "removed", "merge":
            into = [o for o in together if o["change"] != "removed" and _overlap(o["bounds"], row["bounds"])]
            return "merged" + "".join(f" into {in_words(one['bounds'])}" for one in into[:1])
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
            return f"events joined {len(taken)} published {'window' if len(taken) == 1 else 'windows'} to this one"
        case "changed", _:
            return "changed by events that came after its end, within allowed_lateness"
    return "fired late: its first events came after its end, within allowed_lateness"


def _rerun(rerun: Rerun | None) -> str:
    return f"a rerun ({rerun.title})" if rerun else "a rerun"


def _overlap(one: Bounds, other: Bounds) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def values_of(outputs: Sequence[str], row: Mapping[str, Any]) -> dict[str, Any]:
    """What a result says."""
    return {name: row.get(name) for name in outputs}
