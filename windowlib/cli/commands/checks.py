"""The command `windowlib checks`: every check of a pipeline, and what one of them is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from windowlib.cli.display import table_of
from windowlib.cli.exits import load_pipeline
from windowlib.cli.options import Json, Pipeline
from windowlib.cli.outcomes import print_report

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windowlib.inspection.checks import Check, PipelineChecks

VALUES_SHOWN = 10


def checks(
    pipeline: Pipeline,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain", metavar="CHECK", help="Only this check, in sentences: events.late_share.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the checks of each batch: current bound, owner, and value of the newest batch.

    With --explain: the observed value of a check, its limit, how to set another bound, and recent values.

    [dim]windowlib checks clicks.toml[/dim]   or   [dim]windowlib checks clicks.toml --explain events.late_share[/dim]
    """
    from windowlib.inspection.checks import check_named
    from windowlib.inspection.checks import checks as look
    from windowlib.ledger.ledger import wall_clock_ms

    found = look(load_pipeline(pipeline), wall_clock_ms(), as_judged=True)
    if explain is None:
        print_report(found, checks_text, as_json)
    else:
        print_report(check_named(found, explain), check_text, as_json)


def checks_text(found: PipelineChecks) -> Iterator[RenderableType]:
    """A line for each check."""
    owner = f", owned by {escape(found.owner)}" if found.owner else ""
    newest = "no batch was judged yet" if found.batch_id is None else f"last judged: batch {found.batch_id}"
    yield f"[bold]{escape(found.pipeline)}[/bold]{owner}; {newest}"
    table = table_of(["check", "what must hold", "severity", "owner", "bound", "last", "outcome"], ("last",))
    for one in found.checks:
        last = one.seen[0].observed.partition(" (")[0] if one.seen else ""
        outcome = one.outcome if one.outcome != "failed" else f"[bold]failed[/bold] (batch {one.seen[0].batch_id})"
        cells = (one.name, one.sentence, one.severity, one.owner, one.bound, last)
        table.add_row(*map(escape, cells), outcome)
    yield table


def check_text(one: Check) -> Iterator[str]:
    """One check in sentences."""
    yield f"[bold]{escape(one.name)}[/bold]  {escape(one.sentence)}"
    facts = {
        "severity": one.severity
        + (
            ": the batch is not published" if one.severity == "critical" else ": it is said, and the batch is published"
        ),
        "owner": _owner(one),
        "judges": one.judges,
        "observes": "\n".join(one.observes),
        "bound": f"{one.bound}, for a batch planned now",
        "fails": one.fails,
        "override": one.override,
    }
    for name, text in facts.items():
        for number, line in enumerate(text.splitlines()):
            yield f"  {'' if number else name:<9}{escape(line)}"
    for number, seen in enumerate(one.seen[:VALUES_SHOWN]):
        mark = "met" if seen.success else "failed"
        yield f"  {'' if number else 'recently':<9}batch {seen.batch_id}  {mark}  {escape(seen.observed)}"


def _owner(one: Check) -> str:
    from windowlib.inspection.checks import NOT_SAID

    if one.owner == NOT_SAID:
        return "not said: give the expectation a meta.owner, or the definition an owner"
    return f"{one.owner} looks first"
