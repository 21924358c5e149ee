"""The tasks of a pipeline in Airflow: each runs one `windowlib` command as its own process.

A command prints sentences, and with `--json` its outcomes, one on a line. Both go to the task's log, as sentences; the
outcomes are the task's return value. The exit code (`jobs.exits`) becomes the task's state:

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
from jobs.exits import REJECTED, SUPERSEDED, USER
from jobs.processes import ProcessGroup

Record = dict[str, Any]  # one outcome, as a command prints it
OWN_PYTHON = {"PYSPARK_DRIVER_PYTHON": sys.executable}  # spark-submit takes the one on PATH otherwise


def command(name: str, definition: Definition) -> list[str]:
    """The command line of `windowlib NAME`, in this task's own Python."""
    return [sys.executable, "-m", "jobs.cli", name, str(definition.file), "--json"]


def advance_command(*definitions: Definition) -> list[str]:
    """The command line of an advance: plain Python, or `spark-submit` when the master is a cluster of its kind."""
    program, first = Path(__file__).with_name("advance.py"), definitions[0]
    arguments = [*(str(definition.file) for definition in definitions), "--json"]
    master = first.spark.master
    if first.engine == "sail" or master.startswith(("local[", "sc://")) or master in ("local", "warm"):
        return [sys.executable, "-m", "jobs.advance", *arguments]
    submit = str(Path(sys.executable).with_name("spark-submit"))
    return [submit, "--master", master, str(program), *arguments]


class Job(BaseOperator):
    """Runs a command; ends all its processes when the task is killed or takes too long."""

    def __init__(self, *, command: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.command = list(command)
        self._process: ProcessGroup | None = None

    def execute(self, context: Context) -> list[Record]:
        records, said, code = self.run_command()
        raise_for(code, last_words(said))
        return records

    def run_command(self) -> tuple[list[Record], list[str], int]:
        """What the command told, all that it said, and its exit code."""
        records: list[Record] = []
        said: list[str] = []
        with ProcessGroup(self.command, OWN_PYTHON) as self._process:
            for line in filter(None, self._process.lines()):
                record = _record(line)
                if record is not None:
                    records.append(record)
                said.append(line if record is None else self.sentence(record))
                self.log.info("%s", said[-1])
            return records, said, self._process.wait()

    def sentence(self, record: Record) -> str:
        """An outcome in words."""
        return ", ".join(f"{name} {value}" for name, value in record.items())

    def on_kill(self) -> None:
        """Called by Airflow's handler of SIGTERM, which lets the task go on: its command's end makes it fail."""
        if self._process:
            self._process.end()


class Plan(Job):
    """Fixes what the next batch reads, or finds that there is nothing to do."""

    def sentence(self, record: Record) -> str:
        if record["batch_id"] is None:
            return (
                "nothing new: everything that has arrived is in the results already, and they stay as they are (a run"
                " takes what is new, whatever its date; to compute a past range anew, trigger the DAG rerun_windows)"
            )
        files = f"{record['files']} new files" if record["files"] else "no new file, but time moves on"
        return f"batch {record['batch_id']}: {files}, watermark {record['watermark'] or 'none yet'}"


class Advance(Job):
    """Runs the planned batch and those after it; skipped when nothing is planned. Updates the results' asset."""

    def execute(self, context: Context) -> list[Record]:
        planned = context["ti"].xcom_pull(task_ids="plan")
        if planned[-1]["batch_id"] is None:
            raise AirflowSkipException("nothing is planned: nothing was changed")
        return self.published(super().execute(context), context)

    def published(self, batches: list[Record], context: Context) -> list[Record]:
        """The batches, of which the newest is told to whoever waits for the results."""
        if batches:
            for asset in self.outlets:
                context["outlet_events"][asset].extra = {"batches": len(batches), **batches[-1]}
        return batches

    def sentence(self, record: Record) -> str:
        return batch_sentence(record)


class Together(Advance):
    """Runs several pipelines with one command. What became of each is for its own task to say, so this one fails only
    where the command could not tell."""

    def execute(self, context: Context) -> list[Record]:
        records, said, code = self.run_command()
        if not any("exit_code" in record for record in records):
            raise_for(code, last_words(said))
        return records

    def sentence(self, record: Record) -> str:
        told = f"exit code {record['exit_code']}" if "exit_code" in record else super().sentence(record)
        return f"{record['pipeline']}  {told}"


class AfterTogether(Advance):
    """One of several pipelines: done where `Together` has run it to its end, else it runs alone, as ever."""

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> list[Record]:
        told = context["ti"].xcom_pull(task_ids="together") or []
        *batches, end = [record for record in told if record["pipeline"] == self.pipeline] or [{"exit_code": None}]
        if end["exit_code"] != 0:
            return self.published(Job.execute(self, context), context)
        if not batches:
            raise AirflowSkipException("nothing is new: nothing was changed")
        return self.published([{k: v for k, v in one.items() if k != "pipeline"} for one in batches], context)


class DataDocs(BaseOperatorLink):
    """The button that opens the report."""

    name = "Data Docs"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Where `jobs.data_docs_plugin` shows the pages of this task's pipeline."""
        of = operator.task_id if operator.dag_id.startswith("together_") else operator.dag_id
        return f"/windowlib/{of.removeprefix('windows_').removeprefix('report_')}/"


class Report(Job):
    """Builds the pages of the checks in `root`; skipped before the first batch was checked."""

    operator_extra_links = (DataDocs(),)

    def __init__(self, *, root: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.root = str(root)

    def execute(self, context: Context) -> list[Record]:
        from jobs.validations import kept

        if not kept(Path(self.root)):
            raise AirflowSkipException("no batch has been checked yet: there is nothing to report")
        return super().execute(context)

    def sentence(self, record: Record) -> str:
        return f"the report is in {record['page']}"


class BrokenDefinition(BaseOperator):
    """Stands for a pipeline whose definition cannot be used: fails, and says why."""

    def __init__(self, *, message: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.message = message

    def execute(self, context: Context) -> None:
        raise AirflowFailException(f"this definition cannot be used:\n{self.message}")


def batch_sentence(record: Record) -> str:
    """What became of a batch, in words."""
    from expectations.check import CheckResult
    from jobs.advance import BatchReport
    from jobs.display import batch_line

    times = (record["watermark_in_ms"], record["watermark_out_ms"], record["seconds"])
    checks = [CheckResult(**check) for check in record["failed_checks"]]
    return batch_line(BatchReport(record["batch_id"], record, *times, checks))


def _record(line: str) -> Record | None:
    try:
        value = json.loads(line)
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def last_words(said: Sequence[str]) -> str:
    """The error a command ended with: from the last line that begins one (`jobs.exits`), or the last line."""
    begins = [number for number, line in enumerate(said) if line.startswith("error: ")]
    return "\n".join(said[begins[-1] if begins else -1 :]).removeprefix("error: ") or "no output"


def raise_for(code: int, why: str) -> None:
    """Ends the task as the exit code of its command says."""
    if code == USER:
        raise AirflowFailException(f"a mistake that trying again does not mend: {why}")
    if code == REJECTED:
        raise AirflowFailException(f"refused by its checks: {why}")
    if code == SUPERSEDED:
        raise AirflowSkipException(why)
    if code != 0:
        raise AirflowException(f"exit code {code}: {why}")
