"""How a command ends: one sentence on stderr and an exit code.

=====  ==============================================================================
0      done
2      the user's mistake: the definition, the source, an argument
3      refused by its checks: waits for `windowlib approve` or `windowlib abandon`
4      superseded: another run of this pipeline is in progress
5      differs: `windowlib verify` found windows that are not what the source says
1      anything else, trying again may help; the sentence says which file holds the full traceback, if there is one
=====  ==============================================================================
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import typer

from windowlib.engines.connect import EngineError, EngineLost, Unreachable
from windowlib.model.errors import ExpectationsFailed, WatermarkRegression, WindowError, WindowsDiffer
from windowlib.source.listing import FilesChanged

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition

UNEXPECTED, USER, REJECTED, SUPERSEDED, DIFFERS = 1, 2, 3, 4, 5
PASSING = (EngineError, EngineLost, Unreachable, FilesChanged)  # not the user's mistake, and foreseen
P = ParamSpec("P")

pipeline_folder: ContextVar[Path | None] = ContextVar("pipeline_folder", default=None)
"""Where the command's pipeline has its tables, once that is known: its logs go there."""


def load_pipeline(pipeline: Path) -> Definition:
    """Loads a definition; an unexpected error finds its folder for the log from then on."""
    from windowlib.definition.definition import load_definition

    definition = load_definition(pipeline)
    pipeline_folder.set(definition.root)
    return definition


def with_exit_code(command: Callable[P, None]) -> Callable[P, None]:
    """Turns whatever a command raises into a sentence and an exit code."""

    @wraps(command)
    def ended(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            raise typer.Exit(tell(error, command.__name__)) from error

    return ended


def tell(error: Exception, command: str, whose: str = "") -> int:
    """Prints the sentence about an error (of one pipeline among several: `whose`) and gives its exit code."""
    code = exit_code(error)
    unforeseen = code == UNEXPECTED and not isinstance(error, PASSING)
    sentence = _unexpected(error, command) if unforeseen else error
    print(f"error: {whose + ': ' if whose else ''}{sentence}", file=sys.stderr)
    return code


def worst(codes: Iterable[int]) -> int:
    """The exit code of a command for several pipelines: what the operator must look at first.

    >>> worst([0, SUPERSEDED, REJECTED]), worst([0, 0])
    (3, 0)
    """
    return min(codes, key=(UNEXPECTED, USER, REJECTED, DIFFERS, SUPERSEDED, 0).index)


def exit_code(error: BaseException) -> int:
    """The exit code that an error stands for."""
    from windowlib.tables.ledger import Rejected, Superseded

    match error:
        case Superseded():
            return SUPERSEDED
        case Rejected() | ExpectationsFailed():
            return REJECTED
        case WindowsDiffer():
            return DIFFERS
        case FilesChanged() | WatermarkRegression() | EngineError() | EngineLost() | Unreachable():
            return UNEXPECTED
        case WindowError():
            return USER
    return UNEXPECTED


def _unexpected(error: Exception, command: str) -> str:
    """A sentence about an unforeseen error, and where its traceback was put."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    file = _log_folder() / f"windowlib-{command}-{moment}-{os.getpid()}.txt"
    file.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    first_line = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first_line} (full traceback: {file})"


def _log_folder() -> Path:
    """The pipeline's own, where it has tables already and lets us write; else the machine's temporary folder."""
    root = pipeline_folder.get()
    if root is not None and root.is_dir():
        with suppress(OSError):
            (root / "logs").mkdir(exist_ok=True)
            return root / "logs"
    return Path(tempfile.gettempdir())
