"""Reports of a command: text for people, or JSON lines with `--json`, and JSON lines in a file for a caller.

A command builds one report, a frozen dataclass, and `print_report` renders it. One function per report makes the text,
and `windowlib.definition.json_text` makes the JSON.

Spark, Java and the author's code also print to the output of the process, including JSON. A caller that needs only the
reports, such as an Airflow task, names a file in `WINDOWLIB_OUTCOMES`.
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
NOTICE = "notice"  # key of an outcome that is a notice for the caller to send
OUTCOMES = "WINDOWLIB_OUTCOMES"  # environment variable: file to which each report is appended as a line of JSON


@dataclass(frozen=True, slots=True)
class BuiltPage:
    """Report of a page that was built."""

    page: str


def print_report(report: Report, text: Callable[[Report], ReportText], as_json: bool) -> None:
    """Prints a report and appends it to the caller's file.

    `text` returns plain text, or lines with Rich's markup and tables, or nothing if people do not need the report.

    >>> print_report(BuiltPage("index.html"), lambda report: f"open {report.page}", as_json=True)
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


def print_page(page: str, as_json: bool) -> None:
    """Prints the address of a page that was built."""
    print_report(BuiltPage(page), lambda report: f"open {report.page}", as_json)


def no_text(report: object) -> ReportText:
    """Empty text of a report that only programs need. People read an error or a note instead."""
    return ()


def _print_text(text: ReportText) -> None:
    if isinstance(text, str):
        typer.echo(visible(text))  # a new console would not know of a line of progress
        return
    screen = console()
    for part in text:
        screen.print(part, soft_wrap=isinstance(part, str), highlight=False)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table of strings. All columns except the first are flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def notice_handover(definition: Definition) -> Callable[[Mapping[str, Any]], None] | None:
    """Function that hands a notice to the caller, who sends it by the definition's notifier; None without a caller."""
    if not (file := os.environ.get(OUTCOMES)):
        return None

    def hand_over(notice: Mapping[str, Any]) -> None:
        with Path(file).open("a", encoding="utf-8") as outcomes:
            outcomes.write(f"{as_json(to_notifier(definition, notice))}\n")

    return hand_over


def to_notifier(definition: Definition, notice: Mapping[str, Any]) -> dict[str, Any]:
    """Notice with the data that its sender needs: the notifier of the definition, and the folder for the outcome."""
    notify = definition.notify
    to = {"root": definition.store.url, "notifier": notify.airflow, "arguments": notify.arguments}
    return {NOTICE: notice, **to}


def show_note(note: str) -> None:
    """Prints a note for the operator on stderr. It is not an outcome."""
    typer.echo(visible(f"note: {note}"), err=True)
