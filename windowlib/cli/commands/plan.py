"""Command `windowlib plan`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowlib.cli.display import left_out_sentences
from windowlib.cli.exits import load_pipeline
from windowlib.cli.nothing_new import young_files_text
from windowlib.cli.notifying import planning
from windowlib.cli.options import Json, Pipeline
from windowlib.cli.outcomes import no_text, print_report
from windowlib.definition.instants import instant
from windowlib.definition.toml.durations import format_duration

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition
    from windowlib.inspection.next_batch import PlanReport


@dataclass(frozen=True, slots=True)
class UndecidedBatch:
    """Report of a refused batch that still waits, so that nothing was planned."""

    batch_id: int
    waits: bool = True


def plan(pipeline: Pipeline, as_json: Json = False) -> None:
    """Plan the next batch without running it, or report that there is nothing to do.

    [dim]windowlib plan clicks.toml[/dim]
    """
    from windowlib.batches.planning import plan as freeze
    from windowlib.inspection.next_batch import plan_report
    from windowlib.ledger.ledger import ApprovalPending

    definition = load_pipeline(pipeline)
    with planning(definition, lambda: frozen is None):
        try:
            frozen = freeze(definition)
        except ApprovalPending as waits:
            print_report(UndecidedBatch(waits.batch_id), no_text, as_json)
            raise
    print_report(plan_report(definition, frozen), plan_text, as_json)


def plan_text(report: PlanReport) -> str:
    """Text of a plan: the batch, the rows that it rejects, and other changes that take effect with the batch."""
    changes = [
        f"{formula}, from this batch on: what is published stays as it is" for formula in report.formulas_changed
    ]
    sentences = [
        *_guards(report.definition),
        *left_out_sentences(report.left_out),
        report.listing,
        *changes,
        *report.columns_added,
        report.lateness_changed,
        *report.notes,
    ]
    return "\n".join([_batch(report), *(f"  {sentence}" for sentence in sentences if sentence)])


def _batch(report: PlanReport) -> str:
    definition, plan = report.definition, report.plan
    if plan is None:
        new = young_files_text(definition.source, report.files_waiting) if report.files_waiting else "no new file"
        return f"nothing to do: {new}, and no window that the watermark has passed"
    count = len(plan.files)
    files = f"{count} new {'file' if count == 1 else 'files'}" if count else "no new file, but time advances"
    if count and count == definition.source.max_files_per_run:
        files += " (a batch takes no more: source.max_files_per_run)"
    if plan.rerun:
        files = f"unfinished: {plan.rerun.title}"
    return f"batch {plan.batch_id}: {files}, watermark {instant(plan.watermark_in_ms)}"


def _guards(definition: Definition) -> list[str]:
    """Sentences about the rows that a batch rejects, including rules that the definition does not mention."""
    skew = format_duration(definition.watermark.max_future_skew_ms)
    sentences = [f"events more than {skew} ahead of the clock go to quarantine (watermark.max_future_skew)"]
    if not definition.source.event_id:
        return sentences
    horizon_ms, safe_ms = definition.dedup_horizon_ms, definition.safe_horizon_ms
    if horizon_ms is None:
        why = "no event is late for these windows, so one may always come again"
        return [*sentences, f"event ids are remembered for ever: {why} (source.dedup_horizon bounds it)"]
    ids = f"event ids are remembered for {format_duration(horizon_ms)} behind the watermark (source.dedup_horizon)"
    if safe_ms is None or horizon_ms < safe_ms:
        enough = "no horizon is long enough" if safe_ms is None else f"{format_duration(safe_ms)} is long enough"
        ids += f"; an event that comes again after that is counted twice if it is not late: {enough}"
    return [*sentences, ids]
