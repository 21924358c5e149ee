"""How a command ends: one sentence on stderr and an exit code; and what follows from the code (`ENDS`).

`ENDS` is the one table of it: the situation, the exit code, the state of Airflow's task, and who learns what. Airflow's
tasks act by it (`windowlib.airflow.job`), and the reference is written from it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import typer

from windowlib.cli import interrupts
from windowlib.cli.interrupts import INTERRUPTED
from windowlib.definition.commands import THIS, naming, to_paste
from windowlib.definition.visible import visible
from windowlib.delta.disk import refusal_of
from windowlib.engines.connect import EngineLost, Unreachable
from windowlib.model.errors import ExpectationsFailed, TryAgain, WatermarkRegression, WindowError, WindowsDiffer

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition

DONE, UNEXPECTED, USER, REJECTED, SUPERSEDED, DIFFERS = 0, 1, 2, 3, 4, 5
PASSING = (EngineLost, Unreachable, TryAgain)  # not the user's mistake, and foreseen


class CannotPrint(TryAgain):
    """Standard output takes no more, while tables and source are as they should be."""


class TaskState(Enum):
    """What becomes of a task of Airflow."""

    SUCCESS = "success"
    SKIPPED = "skipped"
    FAILED = "failed"
    RETRY = "up for retry, and failed after the last one"
    WAITS = "`plan` success, `advance` skipped, and `decide` asks"


@dataclass(frozen=True, slots=True)
class End:
    """One way to end. `on_retry` is the state of a task that had been tried before, where it differs."""

    code: int
    situation: str
    state: TaskState
    informs: str
    on_retry: TaskState | None = None


ENDS = (
    End(
        DONE,
        "done, or nothing is new",
        TaskState.SUCCESS,
        "consumers of the results' asset, by its event; the operator, by the report",
    ),
    End(
        UNEXPECTED,
        "another error, and a retry may help: failed storage or engine, `batch_timeout` exceeded, files or tables"
        " that kept changing, an unforeseen error",
        TaskState.RETRY,
        "the next try, which finishes the batch. After the last try the operator, by the sentence, which names"
        " the file with the traceback",
    ),
    End(
        USER,
        "a mistake of the user in the definition, the source or an argument",
        TaskState.FAILED,
        "the operator, by the sentence: it names the file and the key, what was expected, and what to do",
    ),
    End(
        REJECTED,
        "refused by the checks of the batch, which waits for `windowlib approve` or `windowlib abandon`",
        TaskState.FAILED,
        "the operator, by the sentence and the report; in Airflow the task `decide` asks in Required Actions",
    ),
    End(
        REJECTED,
        "nothing done: a batch refused in an earlier run still waits",
        TaskState.WAITS,
        "the operator, by the sentence: it names the batch, and who may decide where. `decide` asks unless a"
        " question is open; then it is skipped and names the run that asks",
    ),
    End(
        SUPERSEDED,
        "superseded: another run of this pipeline is in progress",
        TaskState.SKIPPED,
        "nobody yet: the other run reports its work. A retry may meet the command of an earlier try. It waits for"
        " this command, then finishes and reports its batches",
        on_retry=TaskState.RETRY,
    ),
    End(
        DIFFERS,
        "differs: `windowlib verify` found windows that differ from the source, or `windowlib test` a scenario"
        " with another outcome",
        TaskState.FAILED,
        "the operator, by the sentence and the table of differences",
    ),
)
P = ParamSpec("P")

pipeline_folder: ContextVar[Path | None] = ContextVar("pipeline_folder", default=None)
"""Where the command's pipeline has its tables, once that is known: its logs go there."""

pipeline_source: ContextVar[Path | None] = ContextVar("pipeline_source", default=None)
"""Where its source lies, once that is known."""

pipeline_file: ContextVar[Path | None] = ContextVar("pipeline_file", default=None)
"""The definition of the command's pipeline as it was given, once that is known: commands that are shown name it."""


def load_pipeline(pipeline: Path) -> Definition:
    """Loads a definition; an unexpected error finds its folder for the log from then on."""
    from windowlib.definition.definition import load_definition

    definition = load_definition(pipeline)
    about(definition, pipeline)
    return definition


def about(definition: Definition, given: Path) -> None:
    """From now on it is this pipeline that errors are about; `given` is how its file was named."""
    pipeline_folder.set(definition.root)
    pipeline_source.set(definition.source.path)
    pipeline_file.set(given)


def command_shown(name: str, *arguments: str) -> str:
    """Command for the pipeline of this one, to be pasted: with its definition as it was given."""
    return to_paste(name, pipeline_file.get() or THIS, *arguments)


def with_exit_code(command: Callable[P, None]) -> Callable[P, None]:
    """Turns whatever a command raises into a sentence and an exit code."""

    @wraps(command)
    def ended(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt:
            say_interrupted()
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            raise typer.Exit(print_error(error, command.__name__)) from error
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of a library in Rust; no `Exception` to Python
                raise
            panic = RuntimeError(f"a library failed: {error}").with_traceback(error.__traceback__)
            raise typer.Exit(print_error(panic, command.__name__)) from error

    return ended


def say_interrupted() -> None:
    """Says what a command that was interrupted has left."""
    interrupts.said.set()
    known = ": readers see the tables as the newest batch left them, and the next run finishes what was begun"
    cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # progress hides it
    print(f"{cursor}interrupted{known if pipeline_file.get() else ''}", file=sys.stderr, flush=True)


def print_error(error: Exception, command: str, whose: str = "") -> int:
    """Prints the sentence about an error (of one pipeline among several: `whose`) and gives its exit code."""
    error = _explained(error)
    code = exit_code(error)
    unforeseen = code == UNEXPECTED and not isinstance(error, PASSING)
    sentence = _unexpected(error, command) if unforeseen else _named(str(error))
    print(visible(f"error: {whose + ': ' if whose else ''}{sentence}"), file=sys.stderr)
    return code


def in_a_sentence(error: Exception) -> str:
    """An error as a notice reports it, without a traceback.

    >>> in_a_sentence(OSError(5, "Input/output error")), in_a_sentence(WindowError("no such column"))
    ('OSError: [Errno 5] Input/output error', 'no such column')
    """
    error = _explained(error)
    unforeseen = exit_code(error) == UNEXPECTED and not isinstance(error, PASSING)
    return _gist(error) if unforeseen else _named(str(error), Path.absolute)


def _named(sentence: str, place: Callable[[Path], Path] = Path) -> str:
    """A sentence with the pipeline's definition: as it was given to the command, or where `place` says."""
    file = pipeline_file.get()
    return sentence if file is None else naming(sentence, place(file))


def _explained(error: Exception) -> Exception:
    """What an error means for the tables of the command's pipeline, where it means something."""
    if (root := pipeline_folder.get()) is None or isinstance(error, CannotPrint):
        return error
    from windowlib.source.permissions import denial_of

    if (folder := pipeline_source.get()) and (denied := denial_of(error, folder)):
        return denied
    if refusal := refusal_of(error, root):
        return refusal
    if exit_code(error) == UNEXPECTED and not isinstance(error, PASSING):
        from windowlib.delta.tables import Tables
        from windowlib.publication.damage import loss_behind

        return loss_behind(error, Tables(root)) or error
    return error


def worst(codes: Iterable[int]) -> int:
    """The exit code of a command for several pipelines: what the operator must look at first.

    >>> worst([0, SUPERSEDED, REJECTED]), worst([0, 0])
    (3, 0)
    """
    return min(codes, key=(UNEXPECTED, USER, REJECTED, DIFFERS, SUPERSEDED, DONE).index)


def task_state(code: int, *, retried: bool = False, waits: bool = False) -> TaskState:
    """What becomes of a task whose command ended so; a code that is not ours (a signal, 137) is tried again.

    `waits`: what was refused, was so by an earlier run.

    >>> task_state(SUPERSEDED), task_state(SUPERSEDED, retried=True), task_state(-9)  # doctest: +ELLIPSIS
    (<TaskState.SKIPPED: 'skipped'>, <TaskState.RETRY: ...>, <TaskState.RETRY: ...>)
    >>> task_state(REJECTED).value, task_state(REJECTED, waits=True).name
    ('failed', 'WAITS')
    """
    found = [one for one in ENDS if one.code == code and (waits or one.state is not TaskState.WAITS)]
    end = found[-1] if found else ENDS[UNEXPECTED]
    return end.on_retry if retried and end.on_retry else end.state


def exit_code(error: BaseException) -> int:
    """The exit code that an error stands for."""
    from windowlib.ledger.ledger import Rejected, Superseded

    match error:
        case Superseded():
            return SUPERSEDED
        case Rejected() | ExpectationsFailed():
            return REJECTED
        case WindowsDiffer():
            return DIFFERS
        case TryAgain() | WatermarkRegression() | EngineLost() | Unreachable():
            return UNEXPECTED
        case WindowError():
            return USER
    return UNEXPECTED


def _unexpected(error: Exception, command: str) -> str:
    """A sentence about an unforeseen error, and where its traceback was put."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    text, name = "".join(traceback.format_exception(error)), f"windowlib-{command}-{moment}-{os.getpid()}.txt"
    for folder in _log_folders():
        with suppress(OSError):
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
            return f"{_gist(error)} (full traceback: {folder / name})"
    return f"{_gist(error)} (no folder can be written to for the traceback)"


def _gist(error: Exception) -> str:
    """An unforeseen error in a line: what a traceback within it ends with, else how it begins.

    >>> _gist(ValueError("In a worker:\\nTraceback (most recent call last):\\n  File ...\\nOSError: no such page"))
    'ValueError: OSError: no such page'
    >>> _gist(RuntimeError("An error occurred while calling o7.save.\\n: java.io.IOException: no\\n\\tat java.base"))
    'RuntimeError: java.io.IOException: no'
    """
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines() if line.strip()]
    traced = any(line.startswith("Traceback (most recent call last)") for line in lines)
    said = [line for line in lines if not line.startswith(("at ", "An error occurred while calling"))] or ["no message"]
    return f"{type(error).__name__}: {said[-1 if traced else 0]}"


def _log_folders() -> list[Path]:
    """The pipeline's own, where it has tables already; else, and where that lets us not write, the temporary one."""
    root = pipeline_folder.get()
    own = [root / "logs"] if root is not None and root.is_dir() else []
    return [*own, Path(tempfile.gettempdir())]
