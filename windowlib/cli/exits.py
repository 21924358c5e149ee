"""Exit codes and error messages of a command, and the consequences of each code (`ENDS`).

A command that fails prints one sentence on stderr. `ENDS` lists each situation with its exit code, the state of the
Airflow task, and who learns what. Airflow's tasks use it (`windowlib.airflow.job`), and the reference page is generated
from it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import typer

from windowlib.cli import interrupts
from windowlib.cli.interrupts import INTERRUPTED
from windowlib.cli.tracebacks import gist, with_traceback
from windowlib.definition.commands import THIS, naming, to_paste
from windowlib.definition.visible import visible
from windowlib.engines.connect import EngineLost, Unreachable
from windowlib.model.errors import ExpectationsFailed, TryAgain, WatermarkRegression, WindowError, WindowsDiffer
from windowlib.storage.refusals import refusal_of
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition

DONE, UNEXPECTED, USER, REJECTED, SUPERSEDED, DIFFERS = 0, 1, 2, 3, 4, 5
TEMPORARY_ERRORS = (EngineLost, Unreachable, TryAgain)  # foreseen, and not the user's mistake


class CannotPrint(TryAgain):
    """Standard output accepts no more text. Tables and source are unaffected."""


class TaskState(Enum):
    """State of an Airflow task after its command has ended."""

    SUCCESS = "success"
    SKIPPED = "skipped"
    FAILED = "failed"
    RETRY = "up for retry, and failed after the last retry"
    WAITS = "`plan` success, `advance` skipped, and `decide` asks"


@dataclass(frozen=True, slots=True)
class End:
    """One way in which a command ends. `on_retry` is the state of a retried task, if it differs."""

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
        "consumers of the asset of the results, by its event; the operator, by the report",
    ),
    End(
        UNEXPECTED,
        "any other error, after which a retry may help: storage or the engine failed, a batch took longer than"
        " `batch_timeout`, files kept changing, another program kept changing a table, an unforeseen error",
        TaskState.RETRY,
        "the next try, which finishes the batch; after the last try the operator, by the sentence, which names the file"
        " of the full traceback if there is one",
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
        "the operator, by the sentence: which batch, who may decide, and where. `decide` asks again unless another"
        " run has asked already; then it is skipped and names that run",
    ),
    End(
        SUPERSEDED,
        "superseded: another run of this pipeline is in progress",
        TaskState.SKIPPED,
        "nobody yet: the other run reports its own batches. A retry may find the command of an earlier try at work: it"
        " waits for that command, and reports the batches of both",
        on_retry=TaskState.RETRY,
    ),
    End(
        DIFFERS,
        "differs: `windowlib verify` found windows that differ from the source, or a scenario of `windowlib test`"
        " failed",
        TaskState.FAILED,
        "the operator, by the sentence and the table of differences",
    ),
)
P = ParamSpec("P")

pipeline_tables: ContextVar[Store | None] = ContextVar("pipeline_tables", default=None)
"""Storage of the tables of the command's pipeline, once it is known. Logs go there."""

pipeline_source: ContextVar[Store | None] = ContextVar("pipeline_source", default=None)
"""Storage of its source, once it is known."""

pipeline_file: ContextVar[Path | None] = ContextVar("pipeline_file", default=None)
"""Definition of the command's pipeline as the user named it, once it is known. Printed commands name it."""


def load_pipeline(pipeline: Path) -> Definition:
    """Loads a definition. Later errors refer to its pipeline, and their tracebacks go to its tables."""
    from windowlib.definition.definition import load_definition

    definition = load_definition(pipeline)
    set_pipeline(definition, pipeline)
    return definition


def set_pipeline(definition: Definition, file: Path) -> None:
    """Makes later errors refer to this pipeline. `file` is the definition as the user named it."""
    pipeline_tables.set(definition.store)
    pipeline_source.set(definition.source.store)
    pipeline_file.set(file)


def command_shown(name: str, *arguments: str) -> str:
    """Command line to paste, with the definition of this command's pipeline."""
    return to_paste(name, pipeline_file.get() or THIS, *arguments)


def with_exit_code(command: Callable[P, None]) -> Callable[P, None]:
    """Turns any exception of a command into a sentence and an exit code."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
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
            if type(error).__name__ != "PanicException":  # raised by a Rust library; not an `Exception`
                raise
            panic = RuntimeError(f"a library failed: {error}").with_traceback(error.__traceback__)
            raise typer.Exit(print_error(panic, command.__name__)) from error

    return wrapped


def say_interrupted() -> None:
    """Prints the state in which an interrupted command leaves the pipeline."""
    interrupts.end_reported.set()
    state = ": readers see the tables as the newest batch left them, and the next run finishes what was begun"
    cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # shows the cursor, which progress hides
    print(f"{cursor}interrupted{state if pipeline_file.get() else ''}", file=sys.stderr, flush=True)


def print_error(error: Exception, command: str, whose: str = "") -> int:
    """Prints the sentence about an error and returns its exit code. `whose` names the pipeline, if needed."""
    error = _explained(error)
    code = exit_code(error)
    unforeseen = code == UNEXPECTED and not isinstance(error, TEMPORARY_ERRORS)
    sentence = with_traceback(error, command, pipeline_tables.get()) if unforeseen else _named(str(error))
    print(visible(f"error: {whose + ': ' if whose else ''}{sentence}"), file=sys.stderr)
    return code


def error_sentence(error: Exception) -> str:
    """Sentence about an error for a notice, without a traceback.

    >>> error_sentence(OSError(5, "Input/output error")), error_sentence(WindowError("no such column"))
    ('OSError: [Errno 5] Input/output error', 'no such column')
    """
    error = _explained(error)
    unforeseen = exit_code(error) == UNEXPECTED and not isinstance(error, TEMPORARY_ERRORS)
    return gist(error) if unforeseen else _named(str(error), Path.absolute)


def _named(sentence: str, place: Callable[[Path], Path] = Path) -> str:
    """Sentence that names the pipeline's definition as the user named it, or as `place` returns it."""
    file = pipeline_file.get()
    return sentence if file is None else naming(sentence, place(file))


def _explained(error: Exception) -> Exception:
    """Replaces an error by its cause in the pipeline: denied access, refused write or lost file. Keeps other errors."""
    if (tables := pipeline_tables.get()) is None or isinstance(error, CannotPrint):
        return error
    from windowlib.source.permissions import denial_of

    if (store := pipeline_source.get()) and (denied := denial_of(error, store)):
        return denied
    if refusal := refusal_of(error, tables):
        return refusal
    if exit_code(error) == UNEXPECTED and not isinstance(error, TEMPORARY_ERRORS):
        from windowlib.delta.tables import Tables
        from windowlib.publication.damage import loss_behind

        return loss_behind(error, Tables(tables)) or error
    return error


def worst_exit_code(codes: Iterable[int]) -> int:
    """Exit code of a command for several pipelines: the code that needs attention first.

    >>> worst_exit_code([0, SUPERSEDED, REJECTED]), worst_exit_code([0, 0])
    (3, 0)
    """
    return min(codes, key=(UNEXPECTED, USER, REJECTED, DIFFERS, SUPERSEDED, DONE).index)


def task_state(code: int, *, retried: bool = False, waits: bool = False) -> TaskState:
    """State of an Airflow task whose command ended with `code`. An unknown code, such as 137 of a signal, is retried.

    `waits` is True if an earlier run refused the batch.

    >>> task_state(SUPERSEDED), task_state(SUPERSEDED, retried=True), task_state(-9)  # doctest: +ELLIPSIS
    (<TaskState.SKIPPED: 'skipped'>, <TaskState.RETRY: ...>, <TaskState.RETRY: ...>)
    >>> task_state(REJECTED).value, task_state(REJECTED, waits=True).name
    ('failed', 'WAITS')
    """
    matches = [end for end in ENDS if end.code == code and (waits or end.state is not TaskState.WAITS)]
    end = matches[-1] if matches else ENDS[UNEXPECTED]
    return end.on_retry if retried and end.on_retry else end.state


def exit_code(error: BaseException) -> int:
    """Exit code for an error."""
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
