"""Task of Airflow that runs one `windowlib` command as its own process.

The output of the command goes to the task's log. The command also writes its outcomes to a file that the task names
(`windowlib.cli.outcomes`). The outcomes are the return value of the task. The exit code determines the state of the
task, by the table in `windowlib.cli.exits`.
"""

from __future__ import annotations

import json
import logging
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Any, ClassVar, NoReturn

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowSkipException

from windowlib.airflow.commands import OWN_PYTHON
from windowlib.airflow.connections.access import access_by, handed_over
from windowlib.airflow.notifiers import send
from windowlib.airflow.processes import ProcessGroup
from windowlib.airflow.sentences import ExpectedFailure, FinalFailure
from windowlib.cli.exits import DIFFERS, REJECTED, TEMPORARY_ERRORS, TaskState, task_state
from windowlib.cli.notifying import TRIES_LEFT
from windowlib.cli.outcomes import NOTICE, OUTCOMES
from windowlib.definition.commands import commands_in
from windowlib.ledger.owner import DAG_RUN
from windowlib.model.errors import WindowError

Record = dict[str, Any]  # one outcome of a command
REFUSED = "refused by its checks"
WAIT = "1h"  # for another run that is in progress
ERROR = "error: "  # begins the error message of a command (`windowlib.cli.exits`)
LOG_WIDTH = 90  # characters of an error in one line of a task's page
LOG_INDENT = 30  # of the first line, which begins with time and level
_UNBROKEN = "\ue000"  # stands for a space at which a line must not break
_LEVEL = re.compile(r"(?:\d\S* )*(?P<level>WARN|WARNING|ERROR|FATAL|CRITICAL)\b:? ")
_LEVELS = {"WARN": logging.WARNING, "WARNING": logging.WARNING, "ERROR": logging.ERROR, "FATAL": logging.CRITICAL}
_LEVELS["CRITICAL"] = logging.CRITICAL

log = logging.getLogger(__name__)


@contextmanager
def in_a_sentence() -> Iterator[None]:
    """Ends a task that reads the warehouse itself like its commands: with a sentence, and a retry if that may help."""
    try:
        yield
    except TEMPORARY_ERRORS as error:
        raise ExpectedFailure(in_lines(str(error))) from None
    except WindowError as error:
        raise FinalFailure(in_lines(str(error))) from None


class Job(BaseOperator):
    """Runs a command, and ends all its processes when the task is killed or takes too long.

    The error message at the end of the output is not logged here, but by `raise_for`, so that the log has it once.
    """

    errors_at_once: ClassVar[bool] = False  # log errors at once, for commands that continue after an error

    def __init__(self, *, command: Sequence[str], connection: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.command = list(command)
        self.connection = connection  # Airflow connection with the credentials of the command
        self._process: ProcessGroup | None = None

    def execute(self, context: Context) -> Any:
        records, lines, code = self.run_command(context)
        raise_for(code, last_words(lines), retried=is_retry(context))
        return records

    @in_a_sentence()
    def run_command(self, context: Context | None = None) -> tuple[list[Record], list[str], int]:
        """Runs the command and sends its notices. Returns its outcomes, its lines of output, and its exit code."""
        lines: list[str] = []
        context = context or Context()
        context_settings = {TRIES_LEFT: str(tries_left(context)), **dag_run(context)}
        with (
            TemporaryDirectory(prefix="windowlib-") as folder,
            handed_over(self.connection, Path(folder)) as credentials,
        ):
            outcomes = Path(folder) / "outcomes"
            outcomes.touch()
            settings = {**OWN_PYTHON, **context_settings, **credentials, OUTCOMES: str(outcomes)}
            with ProcessGroup(self.command, settings) as self._process:
                for line in filter(None, self._process.lines()):
                    lines.append(line)
                    if self.errors_at_once or not any(text.startswith(ERROR) for text in lines):
                        self.log.log(level_of(line), "%s", line)
                code = self._process.wait()
            records = list(map(json.loads, outcomes.read_text(encoding="utf-8").splitlines()))
        for outcome in records:
            if NOTICE in outcome:
                send(outcome, context, self.log.warning, access_by(self.connection))
        return [outcome for outcome in records if NOTICE not in outcome], lines, code

    def on_kill(self) -> None:
        """Ends the command, so that the task fails. Airflow's handler of SIGTERM calls it."""
        if self._process:
            self._process.end()


def last_words(lines: Sequence[str]) -> str:
    """Last error message in the output of a command, or its last line."""
    begins = [number for number, line in enumerate(lines) if line.startswith(ERROR)]
    return "\n".join(lines[begins[-1] if begins else -1 :]).removeprefix(ERROR) or "no output"


def level_of(line: str) -> int:
    """Log level of a line of output, as windowlib, Spark or Python's logging marks it.

    >>> level_of("error: no such column"), level_of("26/03/05 12:00:00 WARN TaskSetManager: Lost task 0.0")
    (40, 30)
    >>> level_of("batch 1  fired 2  late 0")
    20
    """
    if line.startswith(ERROR):
        return logging.ERROR
    level = _LEVEL.match(line)
    return logging.INFO if level is None else _LEVELS[level["level"]]


def tries_left(context: Context) -> int:
    """Number of retries that Airflow has left if this task fails."""
    task = context.get("ti")
    return max(0, getattr(task, "max_tries", 0) + 1 - getattr(task, "try_number", 1)) if task is not None else 0


def dag_run(context: Context) -> dict[str, str]:
    """Environment variable that tells the command its run of the DAG. Pages link to this run."""
    task = context.get("ti")
    names = [getattr(task, "dag_id", None), getattr(task, "run_id", None)]
    return {DAG_RUN: json.dumps([*map(str, names)])} if all(names) else {}


def is_retry(context: Context) -> bool:
    """Tests if this task was tried before. A run that an earlier try started may still be in progress."""
    task = context.get("ti")
    return task is not None and getattr(task, "try_number", 1) > 1


def catching_up(context: Context) -> list[str]:
    """Options of `windowlib run` for a task that may not be the first to run the pipeline in this run of the DAG.

    The command waits for a run that a killed try has left behind. It reports all batches that were committed since the
    run of the DAG began.
    """
    run = context.get("dag_run")
    began = run.start_date if run else None
    return ["--wait", WAIT, *(["--since", began.isoformat()] if began else [])]


def in_lines(message: str) -> str:
    """Message in lines that fit Airflow's page of a log; the first line follows the time and the level.

    A command stays in one line, however long, so that it can be pasted.
    """
    indents = [" " * LOG_INDENT]
    for begin, end in commands_in(message):
        message = message[:begin] + message[begin:end].replace(" ", _UNBROKEN) + message[end:]
    return "\n".join(
        part.strip()
        for line in message.splitlines()
        for part in wrap(
            line,
            LOG_WIDTH,
            initial_indent=indents.pop() if indents else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        or [""]
    ).replace(_UNBROKEN, " ")


def skip(why: str) -> NoReturn:
    """Ends the task as skipped, and logs the reason. Airflow's own message is hidden and cut."""
    log.info("%s", in_lines(why))
    raise AirflowSkipException(in_lines(why))


def raise_for(code: int, why: str, *, retried: bool = False) -> None:
    """Ends the task with the state for the exit code of its command (`windowlib.cli.exits`)."""
    match task_state(code, retried=retried):
        case TaskState.SKIPPED:
            skip(why)
        case TaskState.FAILED if code == REJECTED:
            raise FinalFailure(in_lines(why if REFUSED in why else f"{REFUSED}: {why}"))
        case TaskState.FAILED if code == DIFFERS:
            raise FinalFailure(in_lines(f"verification found differences: {why}"))
        case TaskState.FAILED:
            raise FinalFailure(in_lines(f"an error that a retry cannot fix: {why}"))
        case TaskState.RETRY:
            raise ExpectedFailure(in_lines(f"{_ended(code)}: {why}"))


def _ended(code: int) -> str:
    """Text for the exit code of a command that is tried again. A negative code is the signal that killed it."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
    memory = " (out of memory?)" if -code == signal.SIGKILL else ""
    return f"killed by {name}{memory}: the next try, or the next run, finishes its batch. Its last words"
