"""Command `windowlib changes`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from windowlib.cli.display import table_of
from windowlib.cli.exits import load_pipeline
from windowlib.cli.options import Json, Pipeline
from windowlib.cli.outcomes import print_report
from windowlib.definition.plurals import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windowlib.pages.changes.since_moment import ChangedDay, ChangesSince

KINDS = ("added", "changed", "extended", "removed")


def changes(
    pipeline: Pipeline,
    since: Annotated[
        str,
        typer.Option(
            "--since", metavar="TIME_OR_BATCH", help="Changes after this time or batch.", show_default="a day ago"
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Show how results changed since a time or a batch: by day and cause, with sums before and after.

    A window that two batches change counts twice. Sums are those of the headline (`[pages] headline`) that add up.

    [dim]windowlib changes clicks.toml --since 2026-03-02T00:00Z[/dim]   or   [dim]--since 41[/dim]
    """
    from windowlib.ledger.ledger import wall_clock_ms
    from windowlib.pages.changes.since_moment import changes_since

    print_report(changes_since(load_pipeline(pipeline), wall_clock_ms(), since), changes_text, as_json)


def changes_text(report: ChangesSince) -> Iterator[RenderableType]:
    """Table with a line for each day, and below it a line for each cause."""
    yield f"{counted(report.batches, 'batch')} after {escape(report.title)}"
    if not report.is_known:
        yield "Changes before them are no longer known."
    if not report.days:
        yield "No result changed."
        return
    numbers = [*KINDS, *(f"{name}{side}" for name in report.outputs for side in (" before", " after", " change"))]
    table = table_of(["day, cause", *numbers], numbers)
    for day in report.days:
        for part in (day, *day.causes):
            table.add_row(*_cells(part))
    yield table
    for day in report.days:
        for cause in day.causes:
            for because in cause.because:
                yield f"batch {because.batch_id}: {escape(f'{because.who}: {because.reason}')}"


def _cells(part: ChangedDay) -> Iterator[str]:
    from windowlib.pages.words import amount, cause_words, signed

    yield f"  {cause_words(part.cause)}" if part.cause else str(part.day or "no day")
    yield from (f"{part.windows[kind]:,}" if part.windows.get(kind) else "" for kind in KINDS)
    for place, change in enumerate(part.sums):
        yield from ("", "") if part.cause else (amount(part.before[place]), amount(part.after[place]))
        yield signed(change)
