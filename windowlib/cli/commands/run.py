"""The commands `windowlib run` and `windowlib plan`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from windowlib.cli.display import batch_line, batch_record, console, not_read
from windowlib.cli.exits import about, load_pipeline, print_error, worst
from windowlib.cli.nothing_new import files_waiting, nothing_new, wait
from windowlib.cli.notifying import keep_metrics, keep_page, notify_of, notifying, planning
from windowlib.cli.options import Json, OnEngine, Pipeline, Pipelines, Since, Wait, duration_ms
from windowlib.cli.outcomes import show_note, show_outcome
from windowlib.cli.progress import progress
from windowlib.cli.several import load_each
from windowlib.cli.unusable import without_usable_rows
from windowlib.definition.instants import instant, iso_instant
from windowlib.definition.toml.durations import format_duration
from windowlib.model.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from windowlib.definition.definition import Definition
    from windowlib.ledger.rows import Plan
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
        bool, typer.Option("--report", help="Then build the page of the pipeline, too, as windowlib report does.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read everything new, fire the windows that the watermark has passed, check and publish the results.

    When nothing is new, nothing is done. A run that was killed is finished by the next one.

    Several pipelines over one source read it once, together; what stops one does not stop the others, and the exit
    code is the worst.

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


def plan(pipeline: Pipeline, as_json: Json = False) -> None:
    """Fix what the next run will read, without running it; or say that there is nothing to do.

    [dim]windowlib plan clicks.toml[/dim]
    """
    from windowlib.batches.may_run import columns_added, columns_to_add, formulas_changed, lateness_changed
    from windowlib.batches.planning import ledger_of
    from windowlib.batches.planning import plan as freeze
    from windowlib.definition import explosion
    from windowlib.ledger.ledger import ApprovalPending
    from windowlib.source.folder import left_out
    from windowlib.source.marker import marker_of, words

    definition = load_pipeline(pipeline)
    with planning(definition, lambda: frozen is None):
        try:
            frozen = freeze(definition)
        except ApprovalPending as waits:
            show_outcome({"batch_id": waits.batch_id, "waits": True}, None, as_json)
            raise
    commit = ledger_of(definition).state().commit
    since = marker_of(definition.source, definition.root, frozen or commit)
    out, changed = left_out(definition.source, since), formulas_changed(definition, commit)
    young = 0 if frozen else files_waiting(definition)
    lines = [_plan_line(definition, frozen, young), _guards(definition), *(f"  {line}" for line in not_read(out))]
    lines += [f"  {words(definition.source, since)}"] if since else []
    lines += [f"  {formula}, from this batch on: what is published stays as it is" for formula in changed]
    added = (columns_added(frozen) if frozen else []) or columns_to_add(definition, commit)
    lines += [f"  {column}" for column in added]
    lateness = frozen and lateness_changed(frozen, commit)
    lines += [f"  {lateness}"] if lateness else []
    notes = explosion.notes(definition.window)
    lines += [f"  {note}" for note in notes]
    record = _plan_record(definition, frozen) | ({"notes": notes} if notes else {}) | ({"left_out": out} if out else {})
    record |= {"listing": words(definition.source, since)} if since else {}
    record |= {"files_waiting": young} if young else {}
    record |= {"formulas_changed": changed} if changed else {}
    record |= {"columns_added": added} if added else {}
    record |= {"lateness_changed": lateness} if lateness else {}
    show_outcome(record, "\n".join(lines), as_json)


def _plan_record(definition: Definition, frozen: Plan | None) -> dict[str, object]:
    guards: dict[str, object] = {"max_future_skew": format_duration(definition.watermark.max_future_skew_ms)}
    if definition.source.event_id:
        guards["dedup_horizon"] = _horizon(definition.dedup_horizon_ms)
    if frozen is None:
        return {"batch_id": None, "files": 0, **guards}
    times = {"plan_time": iso_instant(frozen.plan_time_ms), "watermark": iso_instant(frozen.watermark_in_ms)}
    return {"batch_id": frozen.batch_id, "files": len(frozen.files), **times, **guards}


def _guards(definition: Definition) -> str:
    """What is turned away, in words: it is so by default, too."""
    skew = format_duration(definition.watermark.max_future_skew_ms)
    said = f"  events more than {skew} ahead of the clock go to quarantine (watermark.max_future_skew)"
    if not definition.source.event_id:
        return said
    horizon_ms, safe_ms = definition.dedup_horizon_ms, definition.safe_horizon_ms
    if horizon_ms is None:
        why = "no event is late for these windows, so one may always come again"
        return f"{said}\n  event ids are remembered for ever: {why} (source.dedup_horizon bounds it)"
    said += (
        f"\n  event ids are remembered for {format_duration(horizon_ms)} behind the watermark (source.dedup_horizon)"
    )
    if safe_ms is None or horizon_ms < safe_ms:
        enough = "no horizon is long enough" if safe_ms is None else f"{format_duration(safe_ms)} is long enough"
        said += f"; an event that comes again after that is counted twice where it is not late: {enough}"
    return said


def _horizon(horizon_ms: int | None) -> str | None:
    return None if horizon_ms is None else format_duration(horizon_ms)


def _plan_line(definition: Definition, frozen: Plan | None, young: int) -> str:
    if frozen is None:
        new = wait(definition, young) if young else "no new file"
        return f"nothing to do: {new}, and no window that the watermark has passed"
    count = len(frozen.files)
    files = f"{count} new {'file' if count == 1 else 'files'}" if count else "no new file, but time advances"
    if count and count == definition.source.max_files_per_run:
        files += " (a batch takes no more: source.max_files_per_run)"
    if frozen.rerun:
        files = f"unfinished: {frozen.rerun.title}"
    return f"batch {frozen.batch_id}: {files}, watermark {instant(frozen.watermark_in_ms)}"


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
        show_outcome({"page": str(page)}, f"open {page}", as_json)


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
            show_outcome(batch_record(report), batch_line(report), as_json)
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
        ended = {"pipeline": None, "file": str(one.file), "error": one.error}
        show_outcome({**ended, "batches": 0, "exit_code": one.exit_code}, None, as_json)
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
        named = {"pipeline": definition.name, **batch_record(report)}
        show_outcome(named, f"{definition.name}  {batch_line(report)}", as_json)

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
        ended = {"pipeline": name, "batches": len(end.reports), "exit_code": codes[-1]}
        ended |= {"waits": end.error.batch_id} if isinstance(end.error, ApprovalPending) else {}
        show_outcome(ended, None if end.reports or end.error else f"{name}  {nothing_new(end.definition)}", as_json)
    return codes
