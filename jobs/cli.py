"""The command line, `windowlib`. Each command is one call of a function in `jobs`, and imports what it needs itself.

So `windowlib --help` and `windowlib status` answer at once and start no JVM. How commands end: `jobs.exits`.
"""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.bench.cli import bench
from jobs.exits import load_pipeline, pipeline_folder, tell, with_exit_code, worst
from jobs.late.cli import late_app
from jobs.lineage.cli import explain
from jobs.reruns.cli import rerun

if TYPE_CHECKING:
    from jobs.advance import BatchReport
    from jobs.definition import Definition
    from jobs.display import Say

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: [b]0[/b] done, [b]2[/b] your mistake, [b]3[/b] refused by its checks, [b]4[/b] another run"
    " is at work, [b]1[/b] anything else.",
)

engine_app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})

NOTHING_NEW = "nothing new: everything that has arrived is in the results already"
RUN, CORRECT, LOOK, DECIDE, TRY = "Run", "Correct the past", "Look", "Decide about a batch that waits", "Try out"

Pipeline = Annotated[
    Path, typer.Argument(metavar="PIPELINE.toml", help="The pipeline's definition.", show_default=False)
]
Pipelines = Annotated[
    list[Path], typer.Argument(metavar="PIPELINE.toml...", help="The definition; of several, each.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="For machines: one JSON object per line, nothing else, on stdout.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; recorded in the ledger.", show_default=False)]
Who = Annotated[str, typer.Option("--who", help="Who decides; recorded in the ledger.", default_factory=getuser)]


class Replayer(StrEnum):
    """What replays a recording."""

    REFERENCE = "reference"
    SPARK = "spark"


class Engine(StrEnum):
    """What computes a run."""

    SPARK = "spark"
    SAIL = "sail"


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"windowlib {version('windowlib')}")
        raise typer.Exit


@app.callback()
def windowlib(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Event-time windows over files that keep arriving: exact with late events, computed by scheduled Spark runs.

    A pipeline is one TOML file. Start with [b]windowlib demo[/b]; then write your own, and [b]windowlib run[/b] it when
    something new may have arrived, as often as you like.
    """


@app.command(rich_help_panel=RUN)
@with_exit_code
def run(
    pipelines: Pipelines,
    finish: Annotated[
        bool, typer.Option("--finish", help="The input is complete: fire every window, and take in nothing later.")
    ] = False,
    max_batches: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many batches (of each).", show_default=False)
    ] = None,
    engine: Annotated[
        Engine | None,
        typer.Option(
            help="Compute this run with [b]spark[/b], or in this process without Java with [b]sail[/b];"
            " otherwise as the definition says.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Take in everything new, fire the windows that time has passed, check and publish the results.

    Nothing new is fine: nothing is done. A run that was killed is finished by the next one.

    Several pipelines over one source read it once, together; what stops one does not stop the others, and the exit
    code is the worst.

    [dim]windowlib run clicks.toml[/dim]   or   [dim]windowlib run sessions.toml hours.toml[/dim]
    """
    from jobs.display import console, progress

    chosen = {"engine": engine.value} if engine else {}
    definitions = [load_pipeline(pipeline).model_copy(update=chosen) for pipeline in pipelines]
    with progress(console(quiet=as_json)) as say:
        if len(definitions) > 1:
            code = _advance_together(definitions, max_batches, finish, as_json, say)
            raise typer.Exit(code)
        reports = _advance(definitions[0], max_batches, finish, as_json, say)
    if not reports and not as_json:
        typer.echo(NOTHING_NEW)


app.command("rerun", rich_help_panel=CORRECT)(with_exit_code(rerun))
app.add_typer(
    late_app,
    name="late",
    rich_help_panel=CORRECT,
    help="Late events: which there are, what another allowance would have kept, and how to readmit some.",
)
app.add_typer(
    engine_app,
    name="engine",
    rich_help_panel=RUN,
    help='Keep one Spark on this machine ready for the runs of pipelines with [b]spark.master = "warm"[/b].',
)


@app.command(rich_help_panel=RUN)
@with_exit_code
def plan(pipeline: Pipeline, as_json: Json = False) -> None:
    """Fix what the next run will read, without running it; or say that there is nothing to do.

    [dim]windowlib plan clicks.toml[/dim]
    """
    from jobs.display import as_json as text
    from jobs.instants import instant, iso_instant
    from jobs.planning import plan as freeze

    frozen = freeze(load_pipeline(pipeline))
    if as_json:
        times = (
            {"plan_time": iso_instant(frozen.plan_time_ms), "watermark": iso_instant(frozen.watermark_in_ms)}
            if frozen
            else {}
        )
        typer.echo(
            text(
                {"batch_id": frozen.batch_id if frozen else None, "files": len(frozen.files) if frozen else 0, **times}
            )
        )
    elif frozen:
        files = f"{len(frozen.files)} new files" if frozen.files else "no new file, but time moves on"
        if frozen.correction:
            files = f"unfinished: {frozen.correction.title}"
        typer.echo(f"batch {frozen.batch_id}: {files}, watermark {instant(frozen.watermark_in_ms)}")
    else:
        typer.echo("nothing to do: no new file, and no window that time has passed")


@app.command(rich_help_panel=LOOK)
@with_exit_code
def read(
    pipeline: Pipeline,
    table: Annotated[str, typer.Argument(help="results, late_events, quarantine, ledger, …", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Write all rows to FILE.csv, .json or .parquet.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Read a table as of the newest run. All tables read so belong together.

    [dim]windowlib read clicks.toml results --out results.csv[/dim]
    """
    from jobs.display import as_json as text
    from jobs.display import console, rows_of, show_rows
    from jobs.exports import check_ending, export
    from jobs.read import read_table

    if out:
        check_ending(out)
    rows = read_table(load_pipeline(pipeline), table)
    if out:
        export(rows, out)
        typer.echo(text({"file": str(out), "rows": rows.num_rows}) if as_json else f"{rows_of(rows)} written to {out}")
    elif as_json:
        for batch in rows.to_batches():
            for row in batch.to_pylist():
                typer.echo(text(row))
    else:
        show_rows(console(), rows)


@app.command(rich_help_panel=LOOK)
@with_exit_code
def status(pipeline: Pipeline, as_json: Json = False) -> None:
    """Say how a pipeline stands: newest runs, the watermark and what holds it back, what is in flight, what waits.

    [dim]windowlib status clicks.toml[/dim]
    """
    from dataclasses import asdict

    from jobs.display import as_json as text
    from jobs.display import console, show_status
    from jobs.status import status as look

    found = look(load_pipeline(pipeline), time.time_ns() // 1_000_000)
    if as_json:
        typer.echo(text(asdict(found)))
    else:
        show_status(console(), found)


app.command("explain", rich_help_panel=LOOK)(with_exit_code(explain))


@app.command("explain-plan", rich_help_panel=LOOK)
@with_exit_code
def explain_plan(pipeline: Pipeline, as_json: Json = False) -> None:
    """Say which plan runs the windows of a pipeline, and why; starts no Spark.

    [dim]windowlib explain-plan clicks.toml[/dim]
    """
    from dataclasses import asdict

    from jobs.display import as_json as text
    from jobs.display import console, show_explanation
    from jobs.explain import explain

    found = explain(load_pipeline(pipeline))
    if as_json:
        typer.echo(text(asdict(found)))
    else:
        show_explanation(console(), found)


@app.command(rich_help_panel=LOOK)
@with_exit_code
def report(pipeline: Pipeline, as_json: Json = False) -> None:
    """Build the pages of the checks: each batch, each check, and how the figures develop.

    [dim]windowlib report clicks.toml[/dim]
    """
    from jobs.display import as_json as text
    from jobs.report import report as build

    page = build(load_pipeline(pipeline))
    typer.echo(text({"page": str(page)}) if as_json else f"open {page}")


@app.command(rich_help_panel=DECIDE)
@with_exit_code
def approve(pipeline: Pipeline, reason: Reason, who: Who, as_json: Json = False) -> None:
    """Let the next run publish the batch that its checks refused.

    [dim]windowlib approve clicks.toml --reason "half of the shops were closed"[/dim]
    """
    from jobs.display import as_json as text
    from jobs.verdicts import approve as decide

    batch_id = decide(load_pipeline(pipeline), who, reason)
    decided = {"batch_id": batch_id, "decision": "approve", "who": who, "reason": reason}
    typer.echo(text(decided) if as_json else f"batch {batch_id} is approved: windowlib run {pipeline} publishes it")


@app.command(rich_help_panel=DECIDE)
@with_exit_code
def abandon(pipeline: Pipeline, reason: Reason, who: Who, as_json: Json = False) -> None:
    """Give up the batch that is refused or half done: the tables go back, and the next run plans anew.

    [dim]windowlib abandon clicks.toml --reason "a wrong file; it is repaired now"[/dim]
    """
    from jobs.display import as_json as text
    from jobs.verdicts import abandon as decide

    batch_id = decide(load_pipeline(pipeline), who, reason)
    decided = {"batch_id": batch_id, "decision": "abandon", "who": who, "reason": reason}
    typer.echo(text(decided) if as_json else f"batch {batch_id} is abandoned: windowlib run {pipeline} plans anew")


@engine_app.command("start")
@with_exit_code
def engine_start(
    conf: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of Spark.", show_default=False)
    ] = None,
    idle: Annotated[str, typer.Option(help='End after so long without a client, such as "1h"; "never".')] = "1h",
    port: Annotated[int | None, typer.Option(help="Listen there.", show_default="a free port")] = None,
    as_json: Json = False,
) -> None:
    """Start the engine, or find the one that runs with the same settings; one with others is replaced.

    [dim]windowlib engine start --idle 8h --conf spark.driver.memory=4g[/dim]
    """
    from jobs.display import as_json as text
    from jobs.warm.engine import start
    from jobs.warm.options import idle_seconds, settings

    state = start(settings(conf or []), idle_seconds(idle), port)
    told = {"port": state.port, "pid": state.server.pid if state.server else None}
    typer.echo(text(told) if as_json else f"the engine is ready on port {state.port}")


@engine_app.command("stop")
@with_exit_code
def engine_stop(as_json: Json = False) -> None:
    """End the engine, whatever it is doing. A run that used it is finished by the next one.

    [dim]windowlib engine stop[/dim]
    """
    from jobs.display import as_json as text
    from jobs.warm.engine import stop

    stopped = stop()
    typer.echo(text({"stopped": stopped}) if as_json else "the engine has ended" if stopped else "no engine runs")


@engine_app.command("status")
@with_exit_code
def engine_status(as_json: Json = False) -> None:
    """Say whether the engine runs, since when, with which settings, and who is connected.

    [dim]windowlib engine status[/dim]
    """
    from jobs.display import as_json as text
    from jobs.warm.engine import status as look
    from jobs.warm.options import record, sentences

    found = look()
    for line in [text(record(found))] if as_json else sentences(found):
        typer.echo(line)


@app.command(rich_help_panel=TRY)
@with_exit_code
def demo(
    data: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="Your own files instead of made ones.", show_default=False)
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where everything is put.")] = Path("demo"),
    key: Annotated[str | None, typer.Option(help="Own files: the key's column.", show_default=False)] = None,
    timestamp: Annotated[
        str | None, typer.Option(help="Own files: the event time's column.", show_default=False)
    ] = None,
) -> None:
    """Run two pipelines over a million made events, file by file, and compare the results with the known truth.

    [dim]windowlib demo[/dim]   or, over files of your own:   [dim]windowlib demo logs/ --timestamp at --key user[/dim]
    """
    from rich.console import Console

    from jobs.demo.run import Stage, demo_own_data
    from jobs.demo.run import demo as play
    from jobs.spark import session

    stage = Stage(folder, Console(), session)
    if data:
        demo_own_data(stage, data, key, timestamp)
    elif not play(stage):
        raise RuntimeError("the results differ from the truth; the table above says where")


@app.command(rich_help_panel=TRY)
@with_exit_code
def replay(
    recording: Annotated[
        Path, typer.Argument(metavar="FILE.json", help="Scenarios, or with --batches a recording.", show_default=False)
    ],
    batches: Annotated[bool, typer.Option("--batches", help="The file is a recording of batches.")] = False,
    engine: Annotated[Replayer, typer.Option(help="What computes it.")] = Replayer.REFERENCE,
) -> None:
    """Say what would happen: run scenarios, or batches of events; print what fires, is late, and stays in flight.

    [dim]windowlib replay --batches --engine spark recording.json[/dim]
    """
    from jobs.display import as_json as text
    from jobs.recordings import replay_file

    typer.echo(text(replay_file(recording, batches=batches, engine=engine.value)))


app.command("bench", rich_help_panel=TRY, no_args_is_help=True)(with_exit_code(bench))


def _advance(
    definition: Definition, max_batches: int | None, finish: bool, as_json: bool, say: Say
) -> list[BatchReport]:
    from jobs.display import as_json as text
    from jobs.display import batch_line, batch_record
    from jobs.sessions import run

    def on_batch(report: BatchReport) -> None:
        typer.echo(text(batch_record(report)) if as_json else batch_line(report))

    return run(definition, say=say, on_batch=on_batch, max_batches=max_batches, finish=finish)


def _advance_together(
    definitions: list[Definition], max_batches: int | None, finish: bool, as_json: bool, say: Say
) -> int:
    """Runs several pipelines; the worst of their exit codes."""
    from jobs.display import as_json as text
    from jobs.display import batch_line, batch_record
    from jobs.sessions import run_together

    def on_batch(definition: Definition, report: BatchReport) -> None:
        named = {"pipeline": definition.name, **batch_record(report)}
        typer.echo(text(named) if as_json else f"{definition.name}  {batch_line(report)}")

    ends = run_together(
        definitions,
        say=say,
        on_batch=on_batch,
        on_note=lambda note: typer.echo(f"note: {note}", err=True),
        max_batches=max_batches,
        finish=finish,
    )
    codes = []
    for end in ends:
        name = end.definition.name
        pipeline_folder.set(end.definition.root)
        codes.append(tell(end.error, "run", name) if isinstance(end.error, Exception) else 0)
        if as_json:
            typer.echo(text({"pipeline": name, "batches": len(end.reports), "exit_code": codes[-1]}))
        elif not end.reports and not end.error:
            typer.echo(f"{name}  {NOTHING_NEW}")
    return worst(codes)


def main() -> None:
    """The console script."""
    app(prog_name="windowlib")


def run_main() -> None:
    """`python -m jobs.advance …`: the command `run`, as spark-submit starts it."""
    app(["run", *sys.argv[1:]], prog_name="windowlib")


if __name__ == "__main__":
    main()
