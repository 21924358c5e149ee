"""Command `windowlib run`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from windowlib.cli.batch_text import batch_text
from windowlib.cli.display import console
from windowlib.cli.exits import load_pipeline, print_error, set_pipeline, worst_exit_code
from windowlib.cli.nothing_new import nothing_new
from windowlib.cli.notifying import build_page, notify_of, notifying, update_metrics
from windowlib.cli.options import Json, OnEngine, Pipelines, Since, Wait, duration_ms
from windowlib.cli.outcomes import no_text, print_page, print_report, show_note
from windowlib.cli.progress import progress
from windowlib.cli.several import PipelineEnd, load_each
from windowlib.cli.unusable import without_usable_rows
from windowlib.model.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from windowlib.definition.definition import Definition
    from windowlib.runs.attempt import BatchReport
    from windowlib.runs.run import RunRequest, Say

NO_WAIT = "0s"


def run(
    pipelines: Pipelines,
    finish: Annotated[
        bool, typer.Option("--finish", help="The input is complete: fire every window; any later event is late.")
    ] = False,
    max_batches: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many batches (of each pipeline).", show_default=False)
    ] = None,
    engine: OnEngine = None,
    wait: Wait = NO_WAIT,
    since: Since = None,
    report: Annotated[
        bool, typer.Option("--report", help="Also build the page of the pipeline, as windowlib report does.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read all new input, fire the windows that the watermark has passed, check and publish the results.

    If nothing is new and nothing is due, a run does nothing. The next run finishes a run that was killed.

    Several pipelines over one source read it once, together. An error of one pipeline does not stop the others; the
    exit code is the code of the worst error.

    [dim]windowlib run clicks.toml[/dim]   or   [dim]windowlib run sessions.toml hours.toml[/dim]
    """
    chosen = {"engine": engine.value} if engine else {}
    limits = Limits(max_batches, finish, duration_ms("--wait", wait), since, report)
    if len(pipelines) > 1:
        if since or wait != NO_WAIT:
            raise InvalidSpec("--wait and --since are for the run of one pipeline; give one definition")
        raise typer.Exit(_run_several(pipelines, chosen, limits, as_json))
    from windowlib.runs.run import RunRequest

    definition = load_pipeline(pipelines[0]).model_copy(update=chosen)
    with progress(console(quiet=as_json)) as say:
        shown = _run_shown(RunRequest.of(definition, finish=finish, note=show_note, say=say), limits, as_json)
    if not shown and not as_json:
        typer.echo(nothing_new(definition))


@dataclass(frozen=True, slots=True)
class Limits:
    """Options of a run: its end, the wait for another run, the earlier batches to report, and the page."""

    max_batches: int | None
    finish: bool
    wait_ms: int
    since: str | None
    report: bool


def _run_shown(request: RunRequest, limits: Limits, as_json: bool) -> bool:
    """Runs one pipeline and sends notices. Updates metrics and page if the run did something or failed.

    A superseded run leaves the metrics and the page to the other run.
    """
    from windowlib.ledger.ledger import Superseded

    try:
        with notifying(request.definition, command="run"):
            shown = _run_one(request, limits, as_json)
    except Superseded:
        raise
    except Exception:
        _update_metrics_and_page(request, limits, as_json, failed=True)
        raise
    if shown:
        _update_metrics_and_page(request, limits, as_json)
    return shown


def _update_metrics_and_page(ended: RunRequest, limits: Limits, as_json: bool, *, failed: bool = False) -> None:
    """Updates the metrics, and the page if requested. After a success the ledger of the run is current."""
    ledger = None if failed else ended.ledger
    if not limits.report:
        update_metrics(ended.definition, ledger)
        return
    ended.say(f"building the page of {ended.definition.name}")
    if page := build_page(ended.definition, ledger):
        print_page(page, as_json)


def _run_one(request: RunRequest, limits: Limits, as_json: bool) -> bool:
    """Runs one pipeline. Returns True if there was a batch to report."""
    from windowlib.ledger.rerun_request import time_ms
    from windowlib.runs.recent_batches import committed_since
    from windowlib.runs.start import run, waiting

    definition = request.definition
    since_ms = None if limits.since is None else time_ms("since", limits.since)
    shown: set[int] = set()
    advised: list[str] = []  # once per run, about the first batch without usable rows

    def show(report: BatchReport) -> None:
        if report.batch_id not in shown:
            shown.add(report.batch_id)
            print_report(report, batch_text, as_json)
            advice = without_usable_rows(report, definition.file, definition.store)
            if advice and not advised:
                advised.append(advice)
                show_note(advice)

    def show_others(before: int | None = None) -> None:
        for report in committed_since(definition, since_ms) if since_ms is not None else ():
            if before is None or report.batch_id < before:
                show(report)

    def on_batch(report: BatchReport) -> None:
        show_others(before=report.batch_id)
        show(report)

    waiting(lambda: run(request, on_batch=on_batch, max_batches=limits.max_batches), limits.wait_ms, request.say)
    show_others()
    return bool(shown)


def _run_several(pipelines: Sequence[Path], chosen: Mapping[str, str], limits: Limits, as_json: bool) -> int:
    """Runs the pipelines whose definitions can be used. Returns the worst exit code of all."""
    from windowlib.engines.choice import check_engine

    def on_chosen_engine(definition: Definition) -> Definition:
        adapted = definition.model_copy(update=chosen)
        check_engine(adapted.engine, adapted.source, adapted.uses)
        return adapted

    loaded = load_each(pipelines, "run", on_chosen_engine)
    for unusable in loaded.unusable:
        print_report(unusable, no_text, as_json)
    if not loaded.definitions:
        return worst_exit_code(loaded.codes)
    with progress(console(quiet=as_json)) as say:
        return worst_exit_code([*loaded.codes, *_run_together(loaded.definitions, limits, as_json, say)])


def _run_together(definitions: list[Definition], limits: Limits, as_json: bool, say: Say) -> list[int]:
    """Runs several pipelines and returns the exit code of each."""
    from windowlib.ledger.ledger import ApprovalPending, Superseded
    from windowlib.runs.run import RunRequest
    from windowlib.runs.start import run_together

    def on_batch(definition: Definition, report: BatchReport) -> None:
        print_report(replace(report, pipeline=definition.name), batch_text, as_json)

    runs = [RunRequest.of(definition, finish=limits.finish, note=show_note, say=say) for definition in definitions]
    ends = run_together(runs, on_batch=on_batch, max_batches=limits.max_batches)
    codes = []
    for request, end in zip(runs, ends, strict=True):
        name = end.definition.name
        set_pipeline(end.definition, end.definition.file)
        error = end.error if isinstance(end.error, Exception) else None
        notify_of(end.definition, error, is_well=end.error is None, command="run")
        if end.reports or (end.error and not isinstance(end.error, Superseded)):
            _update_metrics_and_page(request, limits, as_json, failed=end.error is not None)
        codes.append(print_error(end.error, "run", name) if isinstance(end.error, Exception) else 0)
        waits = end.error.batch_id if isinstance(end.error, ApprovalPending) else None
        text = no_text if end.reports or end.error else partial(_idle_text, end.definition)
        print_report(PipelineEnd(name, len(end.reports), codes[-1], waits), text, as_json)
    return codes


def _idle_text(definition: Definition, end: PipelineEnd) -> str:
    """Line about a pipeline without new input."""
    return f"{end.pipeline}  {nothing_new(definition)}"
