"""Reports of a command: text for people, or with `--json` a line of JSON; for a caller also a line of JSON in a file.

A command builds one report, a frozen dataclass, and `print_report` renders it. The text is made by one function of the
report, and the JSON by `windowlib.definition.json_text`.

What a process prints is not only ours: Spark, Java and an author's own code print too, JSON included. A caller that
must separate reports from everything else (Airflow's tasks) names a file in `WINDOWLIB_OUTCOMES`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from rich.console import RenderableType

from windowlib.cli.display import console
from windowlib.definition.json_text import as_json, json_lines
from windowlib.definition.visible import visible

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition

Report = TypeVar("Report")
ReportText = str | Iterable[RenderableType]
NOTICE = "notice"  # the key of an outcome that is a notice, to be sent by the caller
OUTCOMES = "WINDOWLIB_OUTCOMES"  # environment variable: a file that reports are added to, one line of JSON each


@dataclass(frozen=True, slots=True)
class BuiltPage:
    """A page that was built, to be opened."""

    page: Path


def print_report(report: Report, text: Callable[[Report], ReportText], as_json: bool) -> None:
    """Prints a report and adds it to the caller's file.

    `text` gives plain text, or lines with Rich's markup and tables; without any, nothing but JSON is printed.

    >>> print_report(BuiltPage(Path("index.html")), lambda report: f"open {report.page}", as_json=True)
    {"page": "index.html"}
    """
    if as_json:
        for line in json_lines(report):
            typer.echo(line)
    else:
        _print_text(text(report))
    if file := os.environ.get(OUTCOMES):
        with Path(file).open("a", encoding="utf-8") as outcomes:
            outcomes.writelines(f"{line}\n" for line in json_lines(report))


def print_page(page: Path, as_json: bool) -> None:
    """Prints the report of a page that was built."""
    print_report(BuiltPage(page), lambda report: f"open {report.page}", as_json)


def no_text(report: object) -> ReportText:
    """Text of a report that only programs need: for people an error or a note says it."""
    return ()


def _print_text(text: ReportText) -> None:
    if isinstance(text, str):
        typer.echo(visible(text))  # below a line of progress, which a console of its own would not know of
        return
    screen = console()
    for part in text:
        screen.print(part, soft_wrap=isinstance(part, str), highlight=False)


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
            kept.write(f"{as_json(to_notifier(definition, notice))}\n")

    return hand_over


def to_notifier(definition: Definition, notice: Mapping[str, Any]) -> dict[str, Any]:
    """A notice with what its sender must know: the notifier of the definition, and where its outcome is kept."""
    notify = definition.notify
    to = {"root": str(definition.root), "notifier": notify.airflow, "arguments": notify.arguments}
    return {NOTICE: notice, **to}


def show_note(note: str) -> None:
    """Prints what an operator should know, on stderr: it is not an outcome."""
    typer.echo(visible(f"note: {note}"), err=True)
