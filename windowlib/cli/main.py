"""The command line, `windowlib`: which commands there are. Each imports what it needs when it is called.

So `windowlib --help` and `windowlib status` answer at once and start no JVM. How commands end: `windowlib.runs.exits`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from windowlib.cli.acknowledge import acknowledge
from windowlib.cli.checks import checks
from windowlib.cli.decide import abandon, accept_clock, approve
from windowlib.cli.engine import engine_app
from windowlib.cli.explain import explain
from windowlib.cli.forget import forget
from windowlib.cli.late import late_app
from windowlib.cli.look import explain_plan, read, report, status
from windowlib.cli.maintain import maintain
from windowlib.cli.migrate import migrate
from windowlib.cli.operate import adopt, advance_watermark, restore, rollback
from windowlib.cli.options import HELP
from windowlib.cli.rerun import rerun
from windowlib.cli.run import plan, run
from windowlib.cli.set_aside import set_aside
from windowlib.cli.setup import setup
from windowlib.cli.test import test
from windowlib.cli.try_out import demo, replay
from windowlib.cli.verify import verify
from windowlib.runs.exits import with_exit_code

RUN, CORRECT, LOOK, DECIDE, TRY = "Run", "Correct the past", "Look", "Decide what a run cannot", "Try out"
COMMANDS: tuple[tuple[Callable[..., None], str], ...] = (
    (setup, RUN),
    (run, RUN),
    (rerun, CORRECT),
    (rollback, CORRECT),
    (migrate, CORRECT),
    (forget, CORRECT),
    (plan, RUN),
    (maintain, RUN),
    (read, LOOK),
    (status, LOOK),
    (explain, LOOK),
    (explain_plan, LOOK),
    (verify, LOOK),
    (checks, LOOK),
    (report, LOOK),
    (approve, DECIDE),
    (abandon, DECIDE),
    (accept_clock, DECIDE),
    (advance_watermark, DECIDE),
    (set_aside, DECIDE),
    (acknowledge, DECIDE),
    (restore, DECIDE),
    (adopt, DECIDE),
    (demo, TRY),
    (test, TRY),
    (replay, TRY),
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings=HELP,
    epilog="Exit codes: [b]0[/b] done, [b]2[/b] your mistake, [b]3[/b] refused by its checks, [b]4[/b] another run"
    " is in progress, [b]5[/b] windows differ from the source, [b]1[/b] anything else.",
)
for command, panel in COMMANDS:
    app.command(command.__name__.replace("_", "-"), rich_help_panel=panel)(with_exit_code(command))
app.add_typer(
    late_app,
    name="late",
    rich_help_panel=CORRECT,
    help="Late events: list them, say what another allowed_lateness would have kept, readmit some.",
)
app.add_typer(
    engine_app,
    name="engine",
    rich_help_panel=RUN,
    help='Keep one Spark on this machine ready for the runs of pipelines with [b]spark.master = "warm"[/b].',
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"windowlib {version('windowlib')}")
        raise typer.Exit


@app.callback()
def windowlib(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Event-time windows over files that keep arriving: exact with late events, computed by scheduled Spark runs.

    A pipeline is one TOML file. Start with [b]windowlib demo[/b]; then write your own, and [b]windowlib run[/b] it when
    something new may have arrived, as often as you like.
    """


def main(*arguments: str) -> None:
    """Runs a command with these arguments; without any, with those of this process."""
    app(arguments or sys.argv[1:], prog_name="windowlib")
