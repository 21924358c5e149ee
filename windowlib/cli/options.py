"""What several commands take: the pipeline, a time range, who and why, `--json`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from getpass import getuser
from pathlib import Path
from typing import Annotated, Any

import typer

from windowlib.definition import reasons
from windowlib.definition.toml.durations import ALLOWED, parse_duration
from windowlib.model.errors import InvalidSpec


class EngineChoice(StrEnum):
    """What computes a run."""

    SPARK = "spark"
    SAIL = "sail"


SETTINGS: Mapping[str, Any] = {
    "add_completion": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "rich",
}
"""Of every `typer.Typer` of ours."""

WHY = f"Reason, recorded in the ledger: a line of at most {reasons.LONGEST:,} characters."


def _this_user() -> str:
    """Who runs the command; by number where the system has no name for it, as in a container."""
    try:
        return getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _reason(given: str) -> str:
    if wrong := reasons.wrong_with(given):
        raise typer.BadParameter(wrong)
    return given


def key_option(what: str) -> Any:
    """`--key`, whose help says what it is for."""
    return typer.Option("--key", help=what, show_default=False, callback=_of_text)


def _of_text(given: list[str] | None) -> list[str] | None:
    """Values of a key as they were given, which must be UTF-8."""
    for value in given or ():
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            shown = os.fsencode(value).decode("utf-8", errors="backslashreplace")
            raise typer.BadParameter(f"{shown} is not UTF-8, as every value of a key is")
    return given


Pipeline = Annotated[
    Path, typer.Argument(metavar="PIPELINE.toml", help="The pipeline's definition.", show_default=False)
]
Pipelines = Annotated[
    list[Path],
    typer.Argument(metavar="PIPELINE.toml...", help="The definition of each pipeline.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="For programs: print one JSON object per line and nothing else.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="TIME", help='Start of the range, inclusive: "2026-03-03T00:00Z".', show_default=False
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="TIME", help='End of the range, exclusive: "2026-03-04 00:00 UTC".', show_default=False
    ),
]
OnEngine = Annotated[
    EngineChoice | None,
    typer.Option(
        "--engine",
        help="Use [b]spark[/b], or [b]sail[/b] in this process without Java. Default: the engine of the definition.",
        show_default=False,
    ),
]
Keys = Annotated[list[str] | None, key_option("Only this key. Repeat for several key columns, in order.")]
KeyOfAWindow = Annotated[
    list[str] | None,
    key_option("The key of the windows, required with key columns. Repeat for several key columns, in order."),
]
Reason = Annotated[str, typer.Option("--reason", help=WHY, show_default=False, callback=_reason)]
OptionalReason = Annotated[str, typer.Option("--reason", help=WHY, callback=_reason)]
Who = Annotated[
    str, typer.Option("--who", help="Name of the operator, recorded in the ledger.", default_factory=_this_user)
]
Batch = Annotated[
    int | None, typer.Option("--batch", metavar="N", help="Only if this batch waits.", show_default=False)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change, and store it under an id.")]
Yes = Annotated[bool, typer.Option("--yes", help="Apply it without asking.")]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="Also report batches that other runs have committed since this time.",
        show_default=False,
    ),
]
ShowOnly = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]
Decide = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
Wait = Annotated[str, typer.Option("--wait", help="Time to wait for a run in progress.")]


def check_can_ask(dry_run: bool, yes: bool) -> None:
    """Raises `InvalidSpec` where a command that asks before it acts contradicts itself, or has no one to ask."""
    if yes and dry_run:
        raise InvalidSpec("--yes and --dry-run exclude one another")
    if not (yes or dry_run or sys.stdin.isatty()):
        raise InvalidSpec("without a terminal nothing can be asked: say --dry-run to see it, or --yes to do it")


def duration_ms(option: str, given: str, allowed: str = ALLOWED) -> int:
    """The duration that an option names, in ms; raises `InvalidSpec` for a text that is not one, or is below 0.

    >>> duration_ms("--wait", "10m")
    600000
    """
    try:
        found_ms = parse_duration(given)
    except ValueError as error:
        raise InvalidSpec(f'{option} "{given}" is not a duration: need {allowed}') from error
    if found_ms < 0:
        raise InvalidSpec(f'{option} "{given}" is below 0: need {allowed}')
    return found_ms
