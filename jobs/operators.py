"""The three tasks of a pipeline in Airflow: each runs one command as its own process.

A command prints sentences and its outcome as lines of JSON. The sentences go to the task's log; the outcome is the
task's return value. The exit code becomes the task's state:

    0  success
    2  failed, not tried again: the user's mistake
    3  failed, not tried again: refused by the checks, waits for `windowlib approve` or `abandon`
    4  skipped: another run is at work, or has taken over
    *  failed, tried again
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator, BaseOperatorLink, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from jobs.definition import Definition
from jobs.processes import ProcessGroup

NOT_AGAIN = {2: "a mistake that trying again does not mend", 3: "refused by its checks"}
SUPERSEDED = 4


def command(name: str, definition: Definition) -> list[str]:
    """The command line of `windowlib NAME`, in this task's own Python."""
    return [sys.executable, "-m", "jobs.cli", name, str(definition.file), "--json"]


def advance_command(definition: Definition) -> list[str]:
    """The command line of an advance: plain Python, or `spark-submit` when the master is a cluster."""
    program, master = Path(__file__).with_name("advance.py"), definition.spark.master
    if master.startswith(("local", "sc://")):
        return [sys.executable, "-m", "jobs.advance", str(definition.file), "--json"]
    submit = str(Path(sys.executable).with_name("spark-submit"))
    return [submit, "--master", master, str(program), str(definition.file), "--json"]


class Job(BaseOperator):
    """Runs a command; ends all its processes when the task is killed or takes too long."""

    ui_color = "#e8f1fb"

    def __init__(self, *, command: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.command = list(command)
        self._process: ProcessGroup | None = None

    def execute(self, context: Context) -> Any:
        outcomes: list[dict[str, Any]] = []
        last = ""
        with ProcessGroup(self.command) as self._process:
            for line in self._process.lines():
                if outcome := _outcome(line):
                    outcomes.append(outcome)
                elif line.strip():
                    self.log.info("%s", line)
                    last = line
            code = self._process.wait()
        if code in NOT_AGAIN:
            raise AirflowFailException(f"{NOT_AGAIN[code]}: {last}")
        if code == SUPERSEDED:
            raise AirflowSkipException(last)
        if code != 0:
            raise AirflowException(f"exit code {code}: {last}")
        return outcomes

    def on_kill(self) -> None:
        """Called by Airflow's handler of SIGTERM, which lets the task go on: its command's end makes it fail."""
        if self._process:
            self._process.end()


class Advance(Job):
    """Advances the pipeline; skipped when its plan found nothing to do. Its asset event carries the last batch."""

    def execute(self, context: Context) -> Any:
        planned = context["ti"].xcom_pull(task_ids="plan")
        if not _last(planned).get("batch_id"):
            raise AirflowSkipException("nothing new has arrived: everything that was published stays as it is")
        batches = super().execute(context)
        for asset in self.outlets:
            context["outlet_events"][asset].extra = {"batches": len(batches), **_last(batches)}
        return batches


class DataDocs(BaseOperatorLink):
    """The button that opens the report."""

    name = "Data Docs"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Where `jobs.data_docs_plugin` shows the pages of this task's pipeline."""
        return f"/windowlib/{operator.dag_id.removeprefix('windows_')}/"


class Report(Job):
    """Builds the pages of the checks."""

    operator_extra_links = (DataDocs(),)


class BrokenDefinition(BaseOperator):
    """Stands for a pipeline whose definition cannot be used: fails, and says why."""

    def __init__(self, *, message: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.message = message

    def execute(self, context: Context) -> None:
        raise AirflowFailException(f"this definition cannot be used:\n{self.message}")


def _outcome(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
