"""Command `windowlib checks`: all checks of a pipeline, or the explanation of one check."""

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
    from windowlib.inspection.suggested_checks import SuggestedChecks

VALUES_SHOWN = 10


def checks(
    pipeline: Pipeline,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain", metavar="CHECK", help="Explain only this check: events.late_share.", show_default=False
        ),
    ] = None,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Propose bounds as TOML, from the figures of at least eight weeks.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the checks of each batch: what must hold, the current bound, the owner, and the value of the newest batch.

    With --suggest: bounds to paste into the definition.

    With --explain: what the check observes, when it fails, how to set another bound, and its recent values.

    [dim]windowlib checks clicks.toml[/dim]   or   [dim]windowlib checks clicks.toml --explain events.late_share[/dim]
    """
    from windowlib.inspection.checks import check_named
    from windowlib.inspection.checks import checks as look
    from windowlib.ledger.ledger import wall_clock_ms

    if suggest:
        from windowlib.inspection.suggested_checks import suggested_checks

        print_report(suggested_checks(load_pipeline(pipeline)), suggestion_text, as_json)
        return
    report = look(load_pipeline(pipeline), wall_clock_ms(), as_judged=True)
    if explain is None:
        print_report(report, checks_text, as_json)
    else:
        print_report(check_named(report, explain), check_text, as_json)


def suggestion_text(report: SuggestedChecks) -> str:
    """The proposed bounds as TOML to paste, or the reason why there are none."""
    return report.toml or f"{report.pipeline}: {report.problem}"


def checks_text(report: PipelineChecks) -> Iterator[RenderableType]:
    """Table with a line for each check."""
    owner = f", owned by {escape(report.owner)}" if report.owner else ""
    newest = "no batch was judged yet" if report.batch_id is None else f"last judged: batch {report.batch_id}"
    yield f"[bold]{escape(report.pipeline)}[/bold]{owner}; {newest}"
    table = table_of(["check", "what must hold", "severity", "owner", "bound", "last", "outcome"], ("last",))
    for check in report.checks:
        last = check.seen[0].observed.partition(" (")[0] if check.seen else ""
        outcome = (
            check.outcome if check.outcome != "failed" else f"[bold]failed[/bold] (batch {check.seen[0].batch_id})"
        )
        cells = (check.name, check.sentence, check.severity, check.owner, check.bound, last)
        table.add_row(*map(escape, cells), outcome)
    yield table


def check_text(check: Check) -> Iterator[str]:
    """Sentences about one check."""
    yield f"[bold]{escape(check.name)}[/bold]  {escape(check.sentence)}"
    facts = {
        "severity": check.severity
        + (
            ": the batch is not published"
            if check.severity == "critical"
            else ": it is reported, and the batch is published"
        ),
        "owner": _owner(check),
        "judges": check.judges,
        "observes": "\n".join(check.observes),
        "bound": f"{check.bound}, for a batch planned now",
        "fails": check.fails,
        "override": check.override,
    }
    for name, text in facts.items():
        for number, line in enumerate(text.splitlines()):
            yield f"  {'' if number else name:<9}{escape(line)}"
    for number, value in enumerate(check.seen[:VALUES_SHOWN]):
        mark = "met" if value.success else "failed"
        yield f"  {'' if number else 'recently':<9}batch {value.batch_id}  {mark}  {escape(value.observed)}"


def _owner(check: Check) -> str:
    from windowlib.inspection.checks import NOT_SAID

    if check.owner == NOT_SAID:
        return "not said: give the expectation a meta.owner, or the definition an owner"
    return f"{check.owner} looks first"
