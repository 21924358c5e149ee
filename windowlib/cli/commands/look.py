"""Commands that read and change nothing: `windowlib read`, `status`, `explain-plan`, `report`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from windowlib.cli.display import console, show_rows
from windowlib.cli.exits import load_pipeline, worst_exit_code
from windowlib.cli.options import Json, Pipeline, Pipelines
from windowlib.cli.outcomes import print_page, print_report
from windowlib.cli.progress import progress
from windowlib.cli.several import load_each, print_each
from windowlib.cli.status_text import explanation_text, status_text
from windowlib.definition.json_text import as_json as text
from windowlib.definition.plurals import counted


@dataclass(frozen=True, slots=True)
class ExportedRows:
    """Report of an export: the file, and the number of its rows."""

    file: str
    rows: int


def read(
    pipeline: Pipeline,
    table: Annotated[str, typer.Argument(help="results, late_events, quarantine, ledger, …", show_default=False)],
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write all rows to FILE.csv, .json or .parquet.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Read a table as of the newest run. Tables that are read this way are consistent with each other.

    [dim]windowlib read clicks.toml results --out results.csv[/dim]
    """
    from windowlib.cli.exports import check_elsewhere, check_ending, export, in_dictionaries
    from windowlib.publication.readers import read_table

    definition = load_pipeline(pipeline)
    if out:
        check_ending(out)
        check_elsewhere(out, definition.source, definition.store)
    rows = read_table(definition, table)
    if out:
        export(rows, out)
        exported = ExportedRows(out, rows.num_rows)
        print_report(exported, lambda report: f"{counted(report.rows, 'row')} written to {report.file}", as_json)
    elif as_json:
        for row in in_dictionaries(rows):
            typer.echo(text(row))
    else:
        show_rows(console(), rows)


def status(pipeline: Pipeline, as_json: Json = False) -> None:
    """Show a pipeline's status: newest runs, the watermark and what holds it back, windows in flight, what waits.

    [dim]windowlib status clicks.toml[/dim]
    """
    from windowlib.inspection.status import status as look
    from windowlib.ledger.ledger import wall_clock_ms

    print_report(look(load_pipeline(pipeline), wall_clock_ms()), status_text, as_json)


def explain_plan(pipeline: Pipeline, as_json: Json = False) -> None:
    """Show the plan for the windows of a pipeline, and the reason, without starting Spark.

    [dim]windowlib explain-plan clicks.toml[/dim]
    """
    from windowlib.inspection.plan import explain

    print_report(explain(load_pipeline(pipeline)), explanation_text, as_json)


def report(
    pipelines: Pipelines,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="Write a home page and the page of each pipeline here.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the page of a pipeline, or with --out a home page of several: state, results, trends, checks, balances.

    Pages are files that open without a server or a network. Without --out they are in pages/ next to the tables. An
    error of one pipeline does not stop the others; the exit code is the code of the worst error.

    [dim]windowlib report clicks.toml[/dim]
    [dim]windowlib report clicks.toml orders.toml --out site[/dim]
    """
    from windowlib.cli.exports import place_named
    from windowlib.ledger.ledger import wall_clock_ms
    from windowlib.pages.site import reports, site
    from windowlib.storage.address import store_at

    loaded, now_ms = load_each(pipelines, "report"), wall_clock_ms() // 1000 * 1000
    with progress(console(quiet=as_json), "building pages") as say:
        if out and loaded.definitions:
            with place_named(out):
                mistakes = {bad.file: bad.error for bad in loaded.unusable}
                built = site(loaded.definitions, store_at(out), now_ms, mistakes)
        else:
            built = reports(loaded.definitions, now_ms, say)
    for page in built.pages:
        print_page(page, as_json)
    if codes := [*loaded.codes, *print_each(built.errors, "report", is_named=len(pipelines) > 1)]:
        raise typer.Exit(worst_exit_code(codes))
