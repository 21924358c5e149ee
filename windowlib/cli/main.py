"""The command line, `windowlib`: which commands there are. A module is imported when a command of it is asked for.

So `windowlib run` imports nothing of what other commands need, and `windowlib status` starts no JVM. How commands end:
`windowlib.cli.exits`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from windowlib.cli.exits import print_error, say_interrupted, with_exit_code
from windowlib.cli.interrupts import raised
from windowlib.cli.options import SETTINGS
from windowlib.cli.output import output
from windowlib.model.errors import InvalidSpec

RUN, CORRECT, LOOK, DECIDE, TRY = "Run", "Correct the past", "Look", "Decide what a run cannot", "Try out"
COMMANDS: Mapping[str, tuple[str, str]] = {  # the module of each, and the panel of `--help` that it stands in
    "setup": ("setup", RUN),
    "run": ("run", RUN),
    "plan": ("plan", RUN),
    "maintain": ("maintain", RUN),
    "rerun": ("rerun", CORRECT),
    "rollback": ("operate", CORRECT),
    "migrate": ("migrate", CORRECT),
    "forget": ("forget", CORRECT),
    "late": ("late", CORRECT),
    "read": ("look", LOOK),
    "status": ("look", LOOK),
    "explain": ("explain", LOOK),
    "explain-plan": ("look", LOOK),
    "verify": ("verify", LOOK),
    "checks": ("checks", LOOK),
    "report": ("look", LOOK),
    "approve": ("decide", DECIDE),
    "abandon": ("decide", DECIDE),
    "accept-clock": ("decide", DECIDE),
    "advance-watermark": ("operate", DECIDE),
    "set-aside": ("set_aside", DECIDE),
    "acknowledge": ("acknowledge", DECIDE),
    "restore": ("operate", DECIDE),
    "adopt": ("operate", DECIDE),
    "demo": ("try_out", TRY),
    "test": ("test", TRY),
    "replay": ("try_out", TRY),
}


class LazyCommands(Mapping[str, Any]):
    """The commands by their names, each made when it is asked for: a function of its module, or a `typer.Typer`."""

    def __getitem__(self, name: str) -> Any:
        module, panel = COMMANDS[name]
        found = getattr(import_module(f"windowlib.cli.commands.{module}"), name.replace("-", "_"))
        if not isinstance(found, typer.Typer):
            command = typer.Typer(**SETTINGS)
            command.command(name, rich_help_panel=panel)(with_exit_code(found))
            return typer.main.get_command(command)
        group = typer.main.get_command(found)
        group.name, group.rich_help_panel = name, panel  # type: ignore[attr-defined]
        return group

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(TyperGroup):
    """The group `windowlib`: the command line asks it for one command, `--help` for all."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": LazyCommands()})


app = typer.Typer(
    **SETTINGS,
    cls=Commands,
    no_args_is_help=True,
    epilog="Exit codes: [b]0[/b] done, [b]2[/b] your mistake, [b]3[/b] refused by its checks, [b]4[/b] another run"
    " is in progress, [b]5[/b] windows differ from the source, [b]1[/b] anything else.",
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
    if (encoding := sys.getfilesystemencoding()) != "utf-8":
        here = f"Python reads the names of files as {encoding} here, and the engines read UTF-8"
        sys.exit(print_error(InvalidSpec(f"{here}: set PYTHONUTF8=1, or a locale such as C.UTF-8"), ""))


def main(*arguments: str) -> None:
    """Runs a command with these arguments; without any, with those of this process.

    What a terminal or a pipe of another encoding cannot show stands as in Python's texts: `\\xe4`. A stream that is
    closed is one to nowhere: its number would be that of the next file which is opened.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 — as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a test's or a notebook's need not be
            stream.reconfigure(errors="backslashreplace")
    raised(say_interrupted)
    with output():
        app(arguments or sys.argv[1:], prog_name="windowlib")
