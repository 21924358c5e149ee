"""A task of Airflow that runs one `windowlib` command as its own process.

A command prints sentences, and with `--json` its outcomes, one on a line. Both go to the task's log, as sentences; the
outcomes are the task's return value. The exit code (`windowlib.runs.exits`) becomes the task's state:

    0  success
    2  failed, not tried again: the user's mistake
    3  failed, not tried again: refused by the checks, waits for `windowlib approve` or `abandon`
    4  skipped: another run is at work, or has taken over
    *  failed, tried again
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from windowlib.airflow.commands import OWN_PYTHON
from windowlib.airflow.processes import ProcessGroup
from windowlib.runs.exits import REJECTED, SUPERSEDED, USER

Record = dict[str, Any]  # one outcome, as a command prints it


class Job(BaseOperator):
    """Runs a command; ends all its processes when the task is killed or takes too long."""

    def __init__(self, *, command: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.command = list(command)
        self._process: ProcessGroup | None = None

    def execute(self, context: Context) -> list[Record]:
        records, lines, code = self.run_command()
        raise_for(code, last_words(lines))
        return records

    def run_command(self) -> tuple[list[Record], list[str], int]:
        """The outcomes that the command printed, all its output as sentences, and its exit code."""
        records: list[Record] = []
        lines: list[str] = []
        with ProcessGroup(self.command, OWN_PYTHON) as self._process:
            for line in filter(None, self._process.lines()):
                record = _record(line)
                if record is not None:
                    records.append(record)
                lines.append(line if record is None else self.sentence(record))
                self.log.info("%s", lines[-1])
            return records, lines, self._process.wait()

    def sentence(self, record: Record) -> str:
        """An outcome in words."""
        return ", ".join(f"{name} {value}" for name, value in record.items())

    def on_kill(self) -> None:
        """Called by Airflow's handler of SIGTERM, which lets the task go on: its command's end makes it fail."""
        if self._process:
            self._process.end()


def batch_sentence(record: Record) -> str:
    """What became of a batch, in words."""
    from windowlib.cli.display import batch_line
    from windowlib.quality.check import CheckResult
    from windowlib.runs.attempt import BatchReport

    times = (record["watermark_in_ms"], record["watermark_out_ms"], record["seconds"])
    checks = [CheckResult(**check) for check in record["failed_checks"]]
    return batch_line(BatchReport(record["batch_id"], record, *times, checks))


def _record(line: str) -> Record | None:
    try:
        value = json.loads(line)
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def last_words(lines: Sequence[str]) -> str:
    """The error a command ended with: from the last line that begins one (`windowlib.runs.exits`), or the last line."""
    begins = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    return "\n".join(lines[begins[-1] if begins else -1 :]).removeprefix("error: ") or "no output"


def raise_for(code: int, why: str) -> None:
    """Ends the task as the exit code of its command says."""
    if code == USER:
        raise AirflowFailException(f"an error that a retry cannot fix: {why}")
    if code == REJECTED:
        raise AirflowFailException(f"refused by its checks: {why}")
    if code == SUPERSEDED:
        raise AirflowSkipException(why)
    if code != 0:
        raise AirflowException(f"exit code {code}: {why}")
