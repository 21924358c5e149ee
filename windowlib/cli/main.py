"""Command line `windowlib`, and the table of its commands.

A module is imported only when one of its commands is needed. So `windowlib run` imports nothing for other commands, and
`windowlib status` starts no JVM. `windowlib.cli.exits` defines the exit codes.
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
from windowlib.cli.interrupts import raise_on_interrupt
from windowlib.cli.options import SETTINGS
from windowlib.cli.output import output
from windowlib.model.errors import InvalidSpec

RUN, CORRECT, LOOK, DECIDE, TRY = "Run", "Correct the past", "Look", "Decide what a run cannot", "Try out"
COMMANDS: Mapping[str, tuple[str, str]] = {  # command -> its module, and its panel in `--help`
    "setup": ("setup", RUN),
    "run": ("run", RUN),
    "plan": ("plan", RUN),
    "maintain": ("maintain", RUN),
    "move": ("move", RUN),
    "rerun": ("rerun", CORRECT),
    "rollback": ("operate", CORRECT),
    "migrate": ("migrate", CORRECT),
    "forget": ("forget", CORRECT),
    "late": ("late", CORRECT),
    "read": ("look", LOOK),
    "status": ("look", LOOK),
    "changes": ("changes", LOOK),
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
    """Commands by name. Each is built on access, from a function or a `typer.Typer` of its module."""

    def __getitem__(self, name: str) -> Any:
        module, panel = COMMANDS[name]
        entry = getattr(import_module(f"windowlib.cli.commands.{module}"), name.replace("-", "_"))
        if not isinstance(entry, typer.Typer):
            command = typer.Typer(**SETTINGS)
            command.command(name, rich_help_panel=panel)(with_exit_code(entry))
            return typer.main.get_command(command)
        group = typer.main.get_command(entry)
        group.name, group.rich_help_panel = name, panel  # type: ignore[attr-defined]
        return group

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(TyperGroup):
    """Group `windowlib`, with its commands built on access."""

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

    A pipeline is one TOML file. Start with [b]windowlib demo[/b]. Then write your own pipeline, and call
    [b]windowlib run[/b] as often as you like.
    """
    if (encoding := sys.getfilesystemencoding()) != "utf-8":
        difference = f"Python reads file names as {encoding} here, but the engines read them as UTF-8"
        sys.exit(print_error(InvalidSpec(f"{difference}: set PYTHONUTF8=1, or a locale such as C.UTF-8"), ""))


def main(*arguments: str) -> None:
    """Runs a command with the given arguments, or else with the arguments of the process.

    Characters that the encoding of the output lacks are printed as in Python: `\\xe4`. A closed stream is replaced by a
    stream to nowhere. Otherwise the next opened file would get the number of the closed stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 — open as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # not so in some tests and notebooks
            stream.reconfigure(errors="backslashreplace")
    raise_on_interrupt(say_interrupted)
    with output():
        app(arguments or sys.argv[1:], prog_name="windowlib")
