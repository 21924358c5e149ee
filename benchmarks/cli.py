"""The options of `make bench`; imports nothing that takes time, as all commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windowlib.cli.exits import with_exit_code

CLICKS = "Clicks"


app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command(no_args_is_help=True)
@with_exit_code
def bench(
    workloads: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORKLOAD ...", help="Which, by name; --list names them.", show_default=False),
    ] = None,
    sides: Annotated[
        str, typer.Option(metavar="NAME,NAME", help="Who computes them; --list names them.")
    ] = "ours,streaming,floor,duckdb",
    files: Annotated[int, typer.Option(help="How many batches; the first warms up and does not count.")] = 10,
    events: Annotated[int, typer.Option(help="How many events a batch has.")] = 1_000_000,
    zipf: Annotated[
        float | None,
        typer.Option(help="Users by Zipf's law with this exponent.", rich_help_panel=CLICKS, show_default=False),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            help="So many a second of event time. Without: a batch is an hour.",
            rich_help_panel=CLICKS,
            show_default=False,
        ),
    ] = None,
    disorder: Annotated[
        str | None,
        typer.Option(
            help='How far out of order rows lie, as "30s". Without: in any order.',
            rich_help_panel=CLICKS,
            show_default=False,
        ),
    ] = None,
    late_share: Annotated[
        float, typer.Option(help="Of the workload late: so many of 1 come hours late.", rich_help_panel=CLICKS)
    ] = 0.05,
    out: Annotated[Path, typer.Option(help="The folder for the report.")] = Path("bench"),
    scratch: Annotated[
        Path | None, typer.Option(help="Where files and tables lie meanwhile. Without: the temporary folder.")
    ] = None,
    get_flink: Annotated[bool, typer.Option("--get-flink", help="Fetch Flink's JARs into .flink, and leave.")] = False,
    names: Annotated[bool, typer.Option("--list", help="Name all workloads and sides, and leave.")] = False,
) -> None:
    """Time windows next to other systems on your machine: file by file and in turns, results compared row by row.

    Each side has a process of its own. Every batch is a file that all sides read, one after another, each time in
    the other order. At the end, what they published is compared. A difference is an error, and so is a side that
    fails: the others go on, and the report says so.

    The table (median, least, most, ratio to ours), all seconds and pictures are put into a folder. Nothing else should
    run meanwhile. Flink and Polars must be fetched first: [b]--get-flink[/b], and pip install polars.

    [dim]make bench WORKLOADS="sessions sliding --sides ours,streaming --files 10 --events 1000000"[/dim]
    """
    from benchmarks.command import Clickstream, list_names, play
    from benchmarks.sides.flink import JARS, get

    if names:
        typer.echo(list_names())
        return
    if get_flink:
        typer.echo(f"{len(get())} JARs of Flink in {JARS}")
        return
    clicks = Clickstream(zipf, rate, disorder, late_share)
    play(workloads or [], sides, files, events, clicks, out, scratch)
