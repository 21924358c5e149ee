"""The outcomes of a command: a sentence for people, or with `--json` a line of JSON; for a caller also in a file.

What a process prints is not only ours: Spark, Java and an author's own code print too, JSON included. A caller that
must separate outcomes from everything else (Airflow's tasks) names a file in `WINDOWLIB_OUTCOMES`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from rich.console import Console

from windowlib.cli.display import console
from windowlib.cli.json_text import as_json as text
from windowlib.definition.visible import visible

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition

Found = TypeVar("Found")
NOTICE = "notice"  # the key of an outcome that is a notice, to be sent by the caller
OUTCOMES = "WINDOWLIB_OUTCOMES"  # environment variable: a file that outcomes are added to, one line of JSON each


def show_outcome(record: Mapping[str, Any], sentence: str | None, as_json: bool) -> None:
    """Prints one outcome; `sentence` None prints nothing but JSON.

    >>> show_outcome({"stopped": True}, "the engine has ended", as_json=True)
    {"stopped": true}
    """
    line = text(record)
    if as_json:
        typer.echo(line)
    elif sentence is not None:
        typer.echo(visible(sentence))
    if file := os.environ.get(OUTCOMES):
        with Path(file).open("a", encoding="utf-8") as kept:
            kept.write(f"{line}\n")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of texts as lines of a table, for a sentence; all columns but the first are flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def handed_over(definition: Definition) -> Callable[[Mapping[str, Any]], None] | None:
    """What passes a notice on to the caller, who sends it by the notifier of the definition; None without a caller."""
    if not (file := os.environ.get(OUTCOMES)):
        return None

    def hand_over(notice: Mapping[str, Any]) -> None:
        with Path(file).open("a", encoding="utf-8") as kept:
            kept.write(f"{text(to_notifier(definition, notice))}\n")

    return hand_over


def to_notifier(definition: Definition, notice: Mapping[str, Any]) -> dict[str, Any]:
    """A notice with what its sender must know: the notifier of the definition, and where its outcome is kept."""
    notify = definition.notify
    to = {"root": str(definition.root), "notifier": notify.airflow, "arguments": notify.arguments}
    return {NOTICE: notice, **to}


def show_note(note: str) -> None:
    """Prints what an operator should know, on stderr: it is not an outcome."""
    typer.echo(visible(f"note: {note}"), err=True)


def show_found(found: Found, show: Callable[[Console, Found], None], as_json: bool) -> None:
    """Prints what a command that only looks has found, a dataclass: for people with `show`, or as a line of JSON."""
    if as_json:
        typer.echo(text(asdict(found)))  # type: ignore[call-overload]
    else:
        show(console(), found)
