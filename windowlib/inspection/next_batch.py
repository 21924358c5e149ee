"""Report on the next batch: its files, and the changes that take effect with it. `windowlib plan` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from windowlib.batches.may_run import columns_added, columns_to_add, formulas_changed, lateness_changed
from windowlib.batches.planning import ledger_of
from windowlib.definition import explosion
from windowlib.definition.definition import Definition
from windowlib.definition.instants import iso_instant
from windowlib.definition.toml.durations import format_duration
from windowlib.ledger.rows import Plan
from windowlib.source.folder import left_out
from windowlib.source.listing import WAITS_MS, waiting_files
from windowlib.source.marker import marker_of, words


@dataclass(frozen=True, slots=True)
class PlanReport:
    """The next batch of a pipeline. `plan` is None if there is nothing to do.

    `files_waiting` counts the files that are too young to be read. `left_out` lists the files excluded by patterns and
    names. The other fields are sentences about the source, formulas, columns, lateness and windows.
    """

    definition: Definition
    plan: Plan | None
    files_waiting: int
    left_out: Sequence[str]
    listing: str | None
    formulas_changed: Sequence[str]
    columns_added: Sequence[str]
    lateness_changed: str | None
    notes: Sequence[str]

    def json_fields(self) -> dict[str, Any]:
        """Fields of the report's JSON. Optional fields are present only if they have a value."""
        definition, plan = self.definition, self.plan
        fields: dict[str, Any] = {"batch_id": plan and plan.batch_id, "files": len(plan.files) if plan else 0}
        if plan:
            fields |= {"plan_time": iso_instant(plan.plan_time_ms), "watermark": iso_instant(plan.watermark_in_ms)}
        fields["max_future_skew"] = format_duration(definition.watermark.max_future_skew_ms)
        if definition.source.event_id:
            horizon_ms = definition.dedup_horizon_ms
            fields["dedup_horizon"] = None if horizon_ms is None else format_duration(horizon_ms)
        names = ("notes", "left_out", "listing", "files_waiting", "formulas_changed", "columns_added")
        return fields | {name: value for name in (*names, "lateness_changed") if (value := getattr(self, name))}


def plan_report(definition: Definition, plan: Plan | None) -> PlanReport:
    """Report on the plan that was frozen for the next batch."""
    commit = ledger_of(definition).state().commit
    marker = marker_of(definition.source, definition.store, plan or commit)
    return PlanReport(
        definition=definition,
        plan=plan,
        files_waiting=0 if plan else files_waiting(definition),
        left_out=left_out(definition.source, marker),
        listing=words(definition.source, marker) if marker else None,
        formulas_changed=formulas_changed(definition, commit),
        columns_added=(columns_added(plan) if plan else []) or columns_to_add(definition, commit),
        lateness_changed=lateness_changed(plan, commit) if plan else None,
        notes=explosion.notes(definition.window),
    )


def files_waiting(definition: Definition) -> int:
    """Number of files that are too young to be read, if no other file is waiting."""
    if definition.source.min_file_age_ms <= WAITS_MS:
        return 0  # planning has waited for such files, so no listing is needed
    ledger = ledger_of(definition)
    return len(waiting_files(definition.source, definition.uses, ledger.tables, ledger.state().commit, check=False))
