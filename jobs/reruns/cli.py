"""The commands `windowlib rerun` and `windowlib late`; they import nothing that takes time before it is needed."""

from __future__ import annotations

import sys
import time
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.exits import load_pipeline, with_exit_code

if TYPE_CHECKING:
    from rich.console import Console

    from jobs.definition import Definition
    from jobs.reruns.correction import Correction
    from jobs.reruns.previews import Preview

late_app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})

Pipeline = Annotated[
    Path, typer.Argument(metavar="PIPELINE.toml", help="The pipeline's definition.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="For machines: one JSON object per line, nothing else, on stdout.")]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help='From then, inclusive: "2026-03-03T00:00Z".', show_default=False),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME", help='To then, exclusive: "2026-03-04 00:00 UTC".', show_default=False),
]
Reason = Annotated[str, typer.Option("--reason", help="Why; recorded in the ledger.")]
Who = Annotated[str, typer.Option("--who", help="Who decides; recorded in the ledger.", default_factory=getuser)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would change, and keep it under an id.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
Wait = Annotated[str, typer.Option("--wait", help="How long to wait for a run that is at work.")]


def rerun(
    pipeline: Pipeline,
    who: Who,
    start: From = None,
    end: To = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    apply: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Do exactly what a dry run said, or nothing.", show_default=False),
    ] = None,
    accept_gap: Annotated[
        bool, typer.Option("--accept-gap", help="Go on where source files are gone; their events are taken out.")
    ] = False,
    wait: Wait = "10m",
    as_json: Json = False,
) -> None:
    """Compute the windows of a time range anew, from what the source holds now; leave every other row as it is.

    Sessions that reach across the range's ends are computed whole, late events count, changed files too. The rerun is
    one batch: it is there as a whole, or not at all. Without --dry-run, --yes or --apply it shows what would change
    and asks.

    [dim]windowlib rerun clicks.toml --from 2026-03-03T00:00Z --to 2026-03-04T00:00Z --dry-run[/dim]
    """
    definition = load_pipeline(pipeline)
    if apply:
        _only("--apply", start=start, end=end, dry_run=dry_run, accept_gap=accept_gap)
        _apply(definition, apply, who, wait, as_json)
        return
    from jobs.reruns.correction import Correction, time_range

    asked = time_range(*_both(start, end), time.time_ns() // 1_000_000)
    correction = Correction(asked.from_ms, asked.to_ms, reason, who, accept_gap=accept_gap)
    _do(definition, correction, dry_run, yes, wait, as_json)


@late_app.command("readmit")
@with_exit_code
def readmit(
    pipeline: Pipeline,
    who: Who,
    start: From = None,
    end: To = None,
    key: Annotated[
        list[str] | None,
        typer.Option(help="Only of this key (for several key columns: once for each, in order).", show_default=False),
    ] = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    wait: Wait = "10m",
    as_json: Json = False,
) -> None:
    """Bring late events into their windows after all; each says from then on by which batch.

    [dim]windowlib late readmit clicks.toml --from 2026-03-03T00:00Z --to 2026-03-04T00:00Z --key u42 --dry-run[/dim]
    """
    from jobs.reruns.correction import Correction, time_range

    definition = load_pipeline(pipeline)
    asked = time_range(*_both(start, end), time.time_ns() // 1_000_000)
    chosen = tuple(key) if key else None
    correction = Correction(asked.from_ms, asked.to_ms, reason, who, late_only=True, key=chosen)
    _do(definition, correction, dry_run, yes, wait, as_json)


def _do(definition: Definition, correction: Correction, dry_run: bool, yes: bool, wait: str, as_json: bool) -> None:
    """A dry run, or the rerun, or one after the other with a question between them."""
    from jobs.reruns.correction import RerunRefused, check_can_rerun

    check_can_rerun(definition, correction)
    if yes and dry_run:
        raise RerunRefused("--yes and --dry-run exclude one another")
    if yes:
        _correct(definition, correction, wait, as_json)
        return
    if not dry_run and not sys.stdin.isatty():
        raise RerunRefused("say --dry-run to look at what would change, or --yes to do it: nobody is there to be asked")
    shown = _preview(definition, correction, as_json)
    if dry_run or shown.summary.changes_nothing:
        return
    typer.confirm("Apply exactly this?", abort=True)
    _correct(definition, correction.expecting(shown.preview_id), wait, as_json)


def _preview(definition: Definition, correction: Correction, as_json: bool) -> Preview:
    from dataclasses import asdict

    from jobs.display import as_json as text
    from jobs.display import console, progress
    from jobs.ledger import wall_clock_ms
    from jobs.reruns.previews import preview
    from jobs.sessions import with_session

    with progress(console(quiet=as_json)) as say:
        found = with_session(definition, lambda spark: preview(definition, correction, spark, wall_clock_ms), say)
    if as_json:
        typer.echo(text(asdict(found)))
    else:
        show_preview(console(), found, definition)
    return found


def show_preview(screen: Console, preview: Preview, definition: Definition) -> None:
    """What would change, as a table, and how to apply it."""
    from rich.markup import escape
    from rich.table import Table

    from jobs.display import argument
    from jobs.reruns.page import PAGE
    from jobs.reruns.previews import FOLDER
    from jobs.reruns.words import NOTHING, facts, largest, notes

    def say(text: str) -> None:
        screen.print(text, soft_wrap=True, highlight=False)

    say(f"[bold]{definition.name}[/bold]  {escape(preview.correction.title)}  after batch {preview.base_batch_id}")
    if preview.summary.is_empty:
        say(NOTHING)
    for name, text in facts(preview):
        say(f"  {escape(name):<12} {escape(text)}")
    if preview.summary.largest:
        names, rows = largest(preview, definition.source.key)
        table = Table(box=None, header_style="bold", pad_edge=False, title="largest changes", title_justify="left")
        for name in names:
            table.add_column(escape(name))
        for row in rows:
            table.add_row(*map(escape, row))
        screen.print(table)
    for note in notes(preview):
        say(f"note: {escape(note)}")
    say(f"as a page: {escape(str(definition.root / FOLDER / preview.preview_id / PAGE))}")
    file = escape(argument(definition.file))
    say(f"to do exactly this: windowlib rerun {file} --apply {preview.preview_id}")


def _apply(definition: Definition, preview_id: str, who: str, wait: str, as_json: bool) -> None:
    from dataclasses import replace

    from jobs.reruns.previews import load

    found = load(definition.root, preview_id)
    _correct(definition, replace(found.correction.expecting(preview_id), who=who), wait, as_json)


def _correct(definition: Definition, correction: Correction, wait: str, as_json: bool) -> None:
    from jobs.display import as_json as text
    from jobs.display import batch_line, batch_record, console, progress
    from jobs.durations import parse_duration
    from jobs.sessions import rerun as run

    with progress(console(quiet=as_json)) as say:
        try:
            wait_ms = parse_duration(wait)
        except ValueError as error:
            from windowlib.errors import InvalidSpec

            raise InvalidSpec(f'--wait "{wait}" is no duration: need one such as "10m"') from error
        run(
            definition,
            correction,
            wait_ms=wait_ms,
            say=say,
            on_batch=lambda report: typer.echo(text(batch_record(report)) if as_json else batch_line(report)),
        )


def _both(start: str | None, end: str | None) -> tuple[str, str]:
    from jobs.reruns.correction import RerunRefused

    if start is None or end is None:
        raise RerunRefused("need --from and --to, each a time with its zone, such as 2026-03-03T00:00Z")
    return start, end


def _only(option: str, **others: object) -> None:
    from jobs.reruns.correction import RerunRefused

    if any(others.values()):
        raise RerunRefused(f"{option} does what its dry run said; no range and no other choice goes with it")
