"""A task of Airflow that runs one `windowlib` command as its own process.

Whatever the command prints goes to the task's log. Its outcomes, which it also writes to a file that the task names
(`windowlib.cli.outcomes`), are the task's return value. Its exit code becomes the task's state by the table in
`windowlib.cli.exits`.
"""

from __future__ import annotations

import json
import logging
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Any, ClassVar, NoReturn

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowSkipException

from windowlib.airflow.commands import OWN_PYTHON
from windowlib.airflow.notifiers import send
from windowlib.airflow.processes import ProcessGroup
from windowlib.airflow.sentences import ExpectedFailure, FinalFailure
from windowlib.cli.exits import DIFFERS, REJECTED, TaskState, task_state
from windowlib.cli.notifying import TRIES_LEFT
from windowlib.cli.outcomes import NOTICE, OUTCOMES
from windowlib.definition.commands import commands_in
from windowlib.ledger.owner import DAG_RUN

Record = dict[str, Any]  # one outcome of a command
REFUSED = "refused by its checks"
WAIT = "1h"  # for another run that is in progress
ERROR = "error: "  # how the last words of a command begin (`windowlib.cli.exits`)
LOG_WIDTH = 90  # characters of an error that a task's page shows in a line
LOG_INDENT = 30  # of the first of them, by the time and the level
_UNBROKEN = "\ue000"  # stands for a space at which no line ends
_LEVEL = re.compile(r"(?:\d\S* )*(?P<level>WARN|WARNING|ERROR|FATAL|CRITICAL)\b:? ")
_LEVELS = {"WARN": logging.WARNING, "WARNING": logging.WARNING, "ERROR": logging.ERROR, "FATAL": logging.CRITICAL}
_LEVELS["CRITICAL"] = logging.CRITICAL

log = logging.getLogger(__name__)


class Job(BaseOperator):
    """Runs a command; ends all its processes when the task is killed or takes too long.

    The error that a command ends with is left to what is raised for it (`raise_for`), so that the log says it once.
    """

    errors_at_once: ClassVar[bool] = False  # of a command that goes on after an error, and where none may be raised

    def __init__(self, *, command: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.command = list(command)
        self._process: ProcessGroup | None = None

    def execute(self, context: Context) -> Any:
        records, lines, code = self.run_command(context)
        raise_for(code, last_words(lines), retried=is_retry(context))
        return records

    def run_command(self, context: Context | None = None) -> tuple[list[Record], list[str], int]:
        """The outcomes of the command, the lines that it printed, and its exit code; its notices are sent."""
        lines: list[str] = []
        context = context or Context()
        about = {TRIES_LEFT: str(tries_left(context)), **dag_run(context)}
        with TemporaryDirectory(prefix="windowlib-") as folder:
            outcomes = Path(folder) / "outcomes"
            outcomes.touch()
            settings = {**OWN_PYTHON, **about, OUTCOMES: str(outcomes)}
            with ProcessGroup(self.command, settings) as self._process:
                for line in filter(None, self._process.lines()):
                    lines.append(line)
                    if self.errors_at_once or not any(one.startswith(ERROR) for one in lines):
                        self.log.log(level_of(line), "%s", line)
                code = self._process.wait()
            found = list(map(json.loads, outcomes.read_text(encoding="utf-8").splitlines()))
        for one in found:
            if NOTICE in one:
                send(one, context, self.log.warning)
        return [one for one in found if NOTICE not in one], lines, code

    def on_kill(self) -> None:
        """Called by Airflow's handler of SIGTERM, which lets the task go on: its command's end makes it fail."""
        if self._process:
            self._process.end()


def last_words(lines: Sequence[str]) -> str:
    """The error a command ended with: from the last line that begins one, or the last line."""
    begins = [number for number, line in enumerate(lines) if line.startswith(ERROR)]
    return "\n".join(lines[begins[-1] if begins else -1 :]).removeprefix(ERROR) or "no output"


def level_of(line: str) -> int:
    """The level of a line that a command has printed: its own, as windowlib, Spark's log or Python's says it.

    >>> level_of("error: no such column"), level_of("26/03/05 12:00:00 WARN TaskSetManager: Lost task 0.0")
    (40, 30)
    >>> level_of("batch 1  fired 2  late 0")
    20
    """
    if line.startswith(ERROR):
        return logging.ERROR
    said = _LEVEL.match(line)
    return logging.INFO if said is None else _LEVELS[said["level"]]


def tries_left(context: Context) -> int:
    """How often Airflow tries this task again where it fails."""
    task = context.get("ti")
    return max(0, getattr(task, "max_tries", 0) + 1 - getattr(task, "try_number", 1)) if task is not None else 0


def dag_run(context: Context) -> dict[str, str]:
    """The setting by which what this task starts knows its run of the DAG, which pages link to."""
    task = context.get("ti")
    names = [getattr(task, "dag_id", None), getattr(task, "run_id", None)]
    return {DAG_RUN: json.dumps([*map(str, names)])} if all(names) else {}


def is_retry(context: Context) -> bool:
    """Whether this task was tried before: then a run that it has started may still be at work."""
    task = context.get("ti")
    return task is not None and getattr(task, "try_number", 1) > 1


def catching_up(context: Context) -> list[str]:
    """Options of `windowlib run` for a task that may not be the first to run this: what an earlier try has started, and
    was killed before it could report, is waited for; all that was committed since the DAG's run began is reported.
    """
    run = context.get("dag_run")
    began = run.start_date if run else None
    return ["--wait", WAIT, *(["--since", began.isoformat()] if began else [])]


def in_lines(message: str) -> str:
    """A message in lines that Airflow's page of a log shows whole; the first stands after the time and the level.

    A command stays in one line, however long: it is there to be pasted.
    """
    before = [" " * LOG_INDENT]
    for begin, end in commands_in(message):
        message = message[:begin] + message[begin:end].replace(" ", _UNBROKEN) + message[end:]
    return "\n".join(
        part.strip()
        for line in message.splitlines()
        for part in wrap(
            line,
            LOG_WIDTH,
            initial_indent=before.pop() if before else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        or [""]
    ).replace(_UNBROKEN, " ")


def skip(why: str) -> NoReturn:
    """Ends the task as skipped, and says why in a line of its log: Airflow folds away its own, and cuts it."""
    log.info("%s", in_lines(why))
    raise AirflowSkipException(in_lines(why))


def raise_for(code: int, why: str, *, retried: bool = False) -> None:
    """Ends the task as the exit code of its command says (`windowlib.cli.exits`)."""
    match task_state(code, retried=retried):
        case TaskState.SKIPPED:
            skip(why)
        case TaskState.FAILED if code == REJECTED:
            raise FinalFailure(in_lines(why if REFUSED in why else f"{REFUSED}: {why}"))
        case TaskState.FAILED if code == DIFFERS:
            raise FinalFailure(in_lines(f"verified, and found to differ: {why}"))
        case TaskState.FAILED:
            raise FinalFailure(in_lines(f"an error that a retry cannot fix: {why}"))
        case TaskState.RETRY:
            raise ExpectedFailure(in_lines(f"{_ended(code)}: {why}"))


def _ended(code: int) -> str:
    """How a command ended that is tried again: its exit code, or the signal that killed it (a negative code)."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
    memory = " (out of memory?)" if -code == signal.SIGKILL else ""
    return f"killed by {name}{memory}: the next try, or the next run, finishes what this one began. Its last words"
