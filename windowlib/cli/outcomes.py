"""The outcomes of a command: a sentence for people, or with `--json` a line of JSON; for a caller also in a file.

What a process prints is not only ours: Spark, Java and an author's own code print too, JSON included. A caller that
must tell outcomes from everything else (Airflow's tasks) names a file in `WINDOWLIB_OUTCOMES`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

OUTCOMES = "WINDOWLIB_OUTCOMES"  # environment variable: a file that outcomes are added to, one line of JSON each


def show_outcome(record: Mapping[str, Any], sentence: str | None, as_json: bool) -> None:
    """Prints one outcome; `sentence` None prints nothing but JSON.

    >>> show_outcome({"stopped": True}, "the engine has ended", as_json=True)
    {"stopped": true}
    """
    from windowlib.cli.display import as_json as text

    line = text(record)
    if as_json:
        typer.echo(line)
    elif sentence is not None:
        typer.echo(sentence)
    if file := os.environ.get(OUTCOMES):
        with Path(file).open("a", encoding="utf-8") as kept:
            kept.write(f"{line}\n")


def show_note(note: str) -> None:
    """Prints what an operator should know, on stderr: it is no outcome."""
    typer.echo(f"note: {note}", err=True)
