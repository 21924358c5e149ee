"""Command `windowlib rerun`, and the steps that it shares with `windowlib late readmit`: ask, wait, apply."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from windowlib.cli.batch_text import batch_text
from windowlib.cli.display import console, table_of
from windowlib.cli.exits import command_shown, load_pipeline
from windowlib.cli.notifying import notifying
from windowlib.cli.options import DryRun, From, Json, OptionalReason, Pipeline, To, Wait, Who, Yes, duration_ms
from windowlib.cli.outcomes import print_report, show_note
from windowlib.cli.progress import progress

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windowlib.definition.definition import Definition
    from windowlib.ledger.rerun_request import Rerun
    from windowlib.model.rerun import TimeRange
    from windowlib.reruns.previews import Preview


@dataclass(frozen=True, slots=True)
class AppliedBefore:
    """Report of a dry run that a batch has already applied, so that nothing was changed."""

    batch_id: int
    done_already: bool = True


def rerun(
    pipeline: Pipeline,
    who: Who,
    start: From = None,
    end: To = None,
    reason: OptionalReason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    apply: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Apply exactly what a dry run showed, or nothing.", show_default=False),
    ] = None,
    accept_gap: Annotated[
        bool, typer.Option("--accept-gap", help="Continue although source files are gone; their events are removed.")
    ] = False,
    wait: Wait = "10m",
    as_json: Json = False,
) -> None:
    """Recompute the windows of a time range from the current source, and leave every other row as it is.

    Sessions that cross an end of the range are recomputed whole; late events and changed files count. The rerun is one
    batch, which is published as a whole or not at all. Without --dry-run, --yes or --apply the command shows what would
    change, and asks. --apply applies a dry run once: a second time it reports this and changes nothing.

    [dim]windowlib rerun clicks.toml --from 2026-03-03T00:00Z --to 2026-03-04T00:00Z --dry-run[/dim]
    """
    definition = load_pipeline(pipeline)
    if apply:
        _only("--apply", reason, start=start, end=end, dry_run=dry_run, accept_gap=accept_gap)
        _apply(definition, apply, who, wait, as_json)
        return
    from windowlib.ledger.rerun_request import Rerun

    span = asked_range(definition, start, end)
    wanted = Rerun(span.from_ms, span.to_ms, reason, who, accept_gap=accept_gap)
    ask_and_do(definition, wanted, dry_run, yes, wait, as_json)


def ask_and_do(definition: Definition, wanted: Rerun, dry_run: bool, yes: bool, wait: str, as_json: bool) -> None:
    """Makes a dry run (`dry_run`), the rerun (`yes`), or else the dry run, a question to the user, and the rerun."""
    from windowlib.ledger.rerun_request import RerunRefused, check_can_rerun

    check_can_rerun(definition.source, definition.never_rerun, wanted)
    if yes and dry_run:
        raise RerunRefused("--yes and --dry-run are mutually exclusive: give only one")
    if yes:
        _rerun(definition, wanted, wait, as_json)
        return
    if not dry_run and not sys.stdin.isatty():
        raise RerunRefused(
            "cannot ask for confirmation without a terminal: use --dry-run to see what would change, or --yes to"
            " apply it"
        )
    shown = _preview(definition, wanted, as_json)
    if dry_run or shown.summary.changes_nothing:
        return
    typer.confirm("Apply exactly this?", abort=True)
    _rerun(definition, wanted.expecting(shown.preview_id), wait, as_json)


def _preview(definition: Definition, wanted: Rerun, as_json: bool) -> Preview:
    from windowlib.runs.start import preview

    with progress(console(quiet=as_json)) as show:
        result = preview(definition, wanted, show)
    print_report(result, lambda preview: preview_text(preview, definition), as_json)
    return result


def preview_text(preview: Preview, definition: Definition) -> Iterator[RenderableType]:
    """Text of a dry run: tables of the changes, and the command that applies them."""
    from windowlib.reruns.page import PAGE
    from windowlib.reruns.preview_text import NOTHING, days, facts, largest, left_out, notes, totals
    from windowlib.reruns.previews import FOLDER

    yield f"[bold]{definition.name}[/bold]  {escape(preview.rerun.title)}  after batch {preview.base_batch_id}"
    if preview.summary.is_empty:
        yield NOTHING
    yield from _table(None, totals(preview), numbers=True)
    for name, text in facts(preview):
        yield f"  {escape(name):<12} {escape(text)}"
    yield from _table("differences by day", days(preview))
    if less := left_out(preview):
        yield less
    yield from _table("largest differences", largest(preview, definition.source.key))
    for note in notes(preview):
        yield f"note: {escape(note)}"
    yield f"as a page: {escape(f'{definition.store}/{FOLDER}/{preview.preview_id}/{PAGE}')}"
    if not preview.summary.changes_nothing:
        yield f"to apply exactly this: {escape(command_shown('rerun', '--apply', preview.preview_id))}"


def _table(
    title: str | None, cells: tuple[list[str], list[list[str]]], *, numbers: bool = False
) -> Iterator[RenderableType]:
    """Table with its title, or nothing if it has no rows. `numbers`: all columns except the first are flush right."""
    names, rows = cells
    if rows:
        table = table_of(names, names[1:] if numbers else (), title=title)
        for row in rows:
            table.add_row(*map(escape, row))
        yield table


def _apply(definition: Definition, preview_id: str, who: str, wait: str, as_json: bool) -> None:
    from windowlib.reruns.previews import load

    saved = load(definition.store, preview_id)
    _rerun(definition, replace(saved.rerun.expecting(preview_id), who=who), wait, as_json)


def _rerun(definition: Definition, wanted: Rerun, wait: str, as_json: bool) -> None:
    from windowlib.ledger.rerun_request import RerunAlreadyDone
    from windowlib.runs.run import RunRequest
    from windowlib.runs.start import rerun

    wait_ms = duration_ms("--wait", wait)
    with progress(console(quiet=as_json)) as show, notifying(definition, lambda: False):
        try:
            rerun(
                RunRequest.of(definition, rerun=wanted, note=show_note, say=show),
                wait_ms=wait_ms,
                on_batch=lambda report: print_report(report, batch_text, as_json),
            )
        except RerunAlreadyDone as done:
            sentence = str(done)
            print_report(AppliedBefore(done.batch_id), lambda report: sentence, as_json)


def asked_range(definition: Definition, start: str | None, end: str | None) -> TimeRange:
    """Half-open range of `--from` and `--to`. Raises `RerunRefused`."""
    from windowlib.ledger.ledger import wall_clock_ms
    from windowlib.ledger.rerun_request import RerunRefused, time_range

    if start is None or end is None:
        raise RerunRefused("--from or --to is missing: give each as a time with its zone, such as 2026-03-03T00:00Z")
    return time_range(start, end, wall_clock_ms(), definition.furthest_ahead_ms, definition.time_zone)


def _only(option: str, reason: str, **others: object) -> None:
    from windowlib.ledger.rerun_request import RerunRefused

    if reason:
        raise RerunRefused(
            f"--reason does not go with {option}, which keeps the reason of its dry run. Leave --reason out, or repeat"
            " the dry run with the new reason"
        )
    if any(others.values()):
        raise RerunRefused(
            f"{option} applies its dry run unchanged, so it takes no range and no other option: leave them out"
        )
