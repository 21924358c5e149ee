"""The command `windowlib run`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from windowlib.cli.batch_text import batch_text
from windowlib.cli.display import console
from windowlib.cli.exits import about, load_pipeline, print_error, worst
from windowlib.cli.nothing_new import nothing_new
from windowlib.cli.notifying import keep_metrics, keep_page, notify_of, notifying
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
        bool, typer.Option("--report", help="Then also write the page of the pipeline, like windowlib report.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read all new files, fire the windows that the watermark has passed, check and publish the results.

    Without new files the command does nothing. It first finishes the batch of a killed run.

    Several pipelines over one source read it once. An error of one pipeline does not stop the others. The exit code is
    the worst.

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
    """How much a run does, how long it waits for another one, since when it reports what others have committed, and
    whether it builds the page.
    """

    max_batches: int | None
    finish: bool
    wait_ms: int
    since: str | None
    report: bool


def _run_shown(asked: RunRequest, limits: Limits, as_json: bool) -> bool:
    """As `_run_one`; then notices are sent, and what shows the pipeline is brought up to date where the run did
    something or failed. A run that leaves the pipeline to another one leaves that to it, too.
    """
    from windowlib.ledger.ledger import Superseded

    try:
        with notifying(asked.definition, command="run"):
            shown = _run_one(asked, limits, as_json)
    except Superseded:
        raise
    except Exception:
        _show(asked, limits, as_json, failed=True)
        raise
    if shown:
        _show(asked, limits, as_json)
    return shown


def _show(ended: RunRequest, limits: Limits, as_json: bool, *, failed: bool = False) -> None:
    """Brings metrics up to date, and where it is asked for the page. What a run has open is as good as its end."""
    ledger = None if failed else ended.ledger
    if not limits.report:
        keep_metrics(ended.definition, ledger)
        return
    ended.say(f"building the page of {ended.definition.name}")
    if page := keep_page(ended.definition, ledger):
        print_page(page, as_json)


def _run_one(asked: RunRequest, limits: Limits, as_json: bool) -> bool:
    """Runs one pipeline; whether there was a batch to report."""
    from windowlib.ledger.rerun_request import time_ms
    from windowlib.runs.recent_batches import committed_since
    from windowlib.runs.start import run, waiting

    definition = asked.definition
    since_ms = None if limits.since is None else time_ms("since", limits.since)
    shown: set[int] = set()
    advised: list[str] = []  # once a run: the first such batch is the one to go back before

    def show(report: BatchReport) -> None:
        if report.batch_id not in shown:
            shown.add(report.batch_id)
            print_report(report, batch_text, as_json)
            advice = without_usable_rows(report, definition.file, definition.root)
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

    waiting(lambda: run(asked, on_batch=on_batch, max_batches=limits.max_batches), limits.wait_ms, asked.say)
    show_others()
    return bool(shown)


def _run_several(pipelines: Sequence[Path], chosen: Mapping[str, str], limits: Limits, as_json: bool) -> int:
    """Runs those of several pipelines whose definitions can be used; the worst of all their exit codes."""
    from windowlib.engines.choice import check_engine

    def as_asked(definition: Definition) -> Definition:
        asked = definition.model_copy(update=chosen)
        check_engine(asked.engine, asked.source, asked.uses)
        return asked

    found = load_each(pipelines, "run", as_asked)
    for one in found.unusable:
        print_report(one, no_text, as_json)
    if not found.definitions:
        return worst(found.codes)
    with progress(console(quiet=as_json)) as say:
        return worst([*found.codes, *_run_together(found.definitions, limits, as_json, say)])


def _run_together(definitions: list[Definition], limits: Limits, as_json: bool, say: Say) -> list[int]:
    """Runs several pipelines; the exit code of each."""
    from windowlib.ledger.ledger import ApprovalPending, Superseded
    from windowlib.runs.run import RunRequest
    from windowlib.runs.start import run_together

    def on_batch(definition: Definition, report: BatchReport) -> None:
        print_report(replace(report, pipeline=definition.name), batch_text, as_json)

    runs = [RunRequest.of(one, finish=limits.finish, note=show_note, say=say) for one in definitions]
    ends = run_together(runs, on_batch=on_batch, max_batches=limits.max_batches)
    codes = []
    for asked, end in zip(runs, ends, strict=True):
        name = end.definition.name
        about(end.definition, end.definition.file)
        error = end.error if isinstance(end.error, Exception) else None
        notify_of(end.definition, error, is_well=end.error is None, command="run")
        if end.reports or (end.error and not isinstance(end.error, Superseded)):
            _show(asked, limits, as_json, failed=end.error is not None)
        codes.append(print_error(end.error, "run", name) if isinstance(end.error, Exception) else 0)
        waits = end.error.batch_id if isinstance(end.error, ApprovalPending) else None
        text = no_text if end.reports or end.error else partial(_idle_text, end.definition)
        print_report(PipelineEnd(name, len(end.reports), codes[-1], waits), text, as_json)
    return codes


def _idle_text(definition: Definition, end: PipelineEnd) -> str:
    """Line about a pipeline that had nothing to do."""
    return f"{end.pipeline}  {nothing_new(definition)}"
