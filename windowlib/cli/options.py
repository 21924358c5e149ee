"""Options shared by several commands: pipeline, time range, person, reason, `--json`."""

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
    """Engine that computes a run."""

    SPARK = "spark"
    SAIL = "sail"


SETTINGS: Mapping[str, Any] = {
    "add_completion": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "rich",
}
"""Settings of every `typer.Typer` in this package."""

WHY = f"Reason, recorded in the ledger: one line of at most {reasons.LONGEST:,} characters."


def _this_user() -> str:
    """Name of the current user, or the user number if the system has no name for the user, as in a container."""
    try:
        return getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _reason(text: str) -> str:
    if wrong := reasons.wrong_with(text):
        raise typer.BadParameter(wrong)
    return text


def key_option(help_text: str) -> Any:
    """Option `--key` with this help text."""
    return typer.Option("--key", help=help_text, show_default=False, callback=_utf8_values)


def _utf8_values(values: list[str] | None) -> list[str] | None:
    """Returns the values of a key. Raises `typer.BadParameter` if a value is not UTF-8."""
    for value in values or ():
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            shown = os.fsencode(value).decode("utf-8", errors="backslashreplace")
            raise typer.BadParameter(f"{shown} is not UTF-8, as every value of a key is")
    return values


Pipeline = Annotated[
    Path, typer.Argument(metavar="PIPELINE.toml", help="The pipeline's definition.", show_default=False)
]
Pipelines = Annotated[
    list[Path],
    typer.Argument(
        metavar="PIPELINE.toml...", help="The definition of the pipeline, or of each pipeline.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="For programs: print one JSON object per line and nothing else.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME",
        help='Start of the range, inclusive: "2026-03-03T00:00Z". Without a zone: in the time zone of the windows.',
        show_default=False,
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="TIME",
        help='End of the range, exclusive: "2026-03-04 00:00 UTC". Without a zone: in the time zone of the windows.',
        show_default=False,
    ),
]
OnEngine = Annotated[
    EngineChoice | None,
    typer.Option(
        "--engine",
        help="Engine: [b]spark[/b], or [b]sail[/b] in this process without Java. Default: engine of the definition.",
        show_default=False,
    ),
]
Keys = Annotated[list[str] | None, key_option("Only this key. With several key columns, repeat it for each, in order.")]
KeyOfAWindow = Annotated[
    list[str] | None,
    key_option("The key of the windows, required if there are key columns. Repeat it for each key column, in order."),
]
Reason = Annotated[str, typer.Option("--reason", help=WHY, show_default=False, callback=_reason)]
OptionalReason = Annotated[str, typer.Option("--reason", help=WHY, callback=_reason)]
Who = Annotated[
    str, typer.Option("--who", help="Person who decides, recorded in the ledger.", default_factory=_this_user)
]
Batch = Annotated[
    int | None, typer.Option("--batch", metavar="N", help="Act only if this batch waits.", show_default=False)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change, and save it under an id.")]
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
    """Raises `InvalidSpec` if `--yes` and `--dry-run` are combined, or if there is no terminal to ask on."""
    if yes and dry_run:
        raise InvalidSpec("--yes and --dry-run are mutually exclusive: give only one")
    if not (yes or dry_run or sys.stdin.isatty()):
        raise InvalidSpec("cannot ask without a terminal: use --dry-run to see what would change, or --yes to do it")


def duration_ms(option: str, text: str, allowed: str = ALLOWED) -> int:
    """Duration of an option in ms. Raises `InvalidSpec` if the string is not a duration, or if the duration is below 0.

    >>> duration_ms("--wait", "10m")
    600000
    """
    try:
        value_ms = parse_duration(text)
    except ValueError as error:
        raise InvalidSpec(f'{option} "{text}" is not a duration: need {allowed}') from error
    if value_ms < 0:
        raise InvalidSpec(f'{option} "{text}" is below 0: need {allowed}')
    return value_ms
