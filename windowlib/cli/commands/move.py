"""Command `windowlib move`, which moves a pipeline's tables to another storage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from windowlib.cli.display import console
from windowlib.cli.exits import load_pipeline
from windowlib.cli.options import Json, OptionalReason, Pipeline, Wait, Who, duration_ms
from windowlib.cli.outcomes import aligned, print_report
from windowlib.cli.progress import progress
from windowlib.definition.plurals import counted
from windowlib.reruns.preview_text import size

if TYPE_CHECKING:
    from windowlib.moves.move import MoveReport


def move(
    pipeline: Pipeline,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="WAREHOUSE",
            help="New warehouse: an address or a folder of this machine.",
            show_default=False,
        ),
    ],
    who: Who,
    reason: OptionalReason = "",
    wait: Wait = "0s",
    as_json: Json = False,
) -> None:
    """Move the tables of a pipeline to another warehouse: from a disk to S3, Azure or Google Cloud, or back.

    Copies everything, compares the copies byte by byte, and counts their rows. Then the old place takes no more
    batches, and the pipeline continues in the new place once `warehouse` of the definition names it. The command does
    not edit the definition, leaves the source where it is, and keeps the old tables: delete them when you no longer
    need them.

    A run in progress is not disturbed: the command ends with exit code 4, or waits. If the command is killed, start it
    again: it copies only what is missing. The new place must be empty.

    [dim]windowlib move clicks.toml --to s3://acme-events/shop/warehouse[/dim]
    """
    from windowlib.moves.move import move as do
    from windowlib.runs.start import waiting

    definition, wait_ms = load_pipeline(pipeline), duration_ms("--wait", wait)
    with progress(console(quiet=as_json), "looking at both places") as say:
        report = waiting(lambda: do(definition, to, who, reason, say), wait_ms, say)
    print_report(report, lambda report: "\n".join(_text(report, pipeline.name)), as_json)


def _text(report: MoveReport, file: str) -> Iterator[str]:
    if report.tables:
        rows = [(table.table, f"{table.files:,}", f"{table.rows:,}") for table in report.tables]
        yield from aligned([("table", "files", "rows"), *rows])
    compared = f"{counted(report.objects, 'object')} of {size(report.size_bytes)} are equal in both places. "
    yield (
        f"{compared if report.objects else ''}{report.pipeline} was moved to {report.moved_to}: set"
        f' warehouse = "{report.warehouse}" in {file}'
    )
    yield f"{report.moved_from} takes no more batches, and is kept: delete it when you no longer need it"
