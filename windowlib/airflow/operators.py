"""The tasks of a pipeline in Airflow: plan, advance, report, and those of pipelines that run together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator, BaseOperatorLink, Context
from airflow.sdk.exceptions import AirflowSkipException

from windowlib.airflow.job import Job, Record, catching_up, in_lines, is_retry, last_words, raise_for
from windowlib.airflow.outcome import in_a_line
from windowlib.airflow.sentences import Final
from windowlib.airflow.statistics import count

BATCHES = "batches"  # the key under which a task keeps the outcomes of its batches


class Page(BaseOperatorLink):
    """The button that opens the page of the pipeline."""

    name = "Page"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Where `windowlib.airflow.plugin` shows the pages of this task's pipeline; of several, the home page."""
        if not operator.dag_id.startswith("together_"):
            return f"/windowlib/{operator.dag_id.removeprefix('windows_')}/"
        pipeline = operator.task_id.partition("_")[2]
        return f"/windowlib/{pipeline}/" if pipeline else "/windowlib/"


class Plan(Job):
    """Fixes what the next batch reads, or finds that there is nothing to do."""

    operator_extra_links = (Page(),)

    def execute(self, context: Context) -> Any:
        planned = super().execute(context)
        if planned[-1]["batch_id"] is None:
            self.log.info(
                "the results stay as they are: a run reads whatever input is new, not that of its date;"
                " to recompute a past range, trigger the DAG rerun_windows"
            )
        return planned


class Advance(Job):
    """Runs the planned batch and those after it; skipped when nothing is planned. Updates the results' asset.

    Returns what it did in a line; the outcome of each batch is under the key `batches`.
    """

    operator_extra_links = (Page(),)

    def execute(self, context: Context) -> Any:
        planned = context["ti"].xcom_pull(task_ids="plan")
        if planned[-1]["batch_id"] is None:
            raise AirflowSkipException("nothing was planned: nothing was changed")
        return self.run_pipeline(context)

    def run_pipeline(self, context: Context) -> str:
        """Runs the command; where it was tried before, waits for what that try has left behind, and reports it."""
        if is_retry(context):
            self.command += catching_up(context)
        return self.published(Job.execute(self, context), context)

    def published(self, batches: list[Record], context: Context) -> str:
        """The outcome in a line; it goes into the event of the results' asset, with the newest of the batches."""
        line = in_a_line(batches)
        if batches:
            for asset in self.outlets:
                context["outlet_events"][asset].extra = {"outcome": line, "batches": len(batches), **batches[-1]}
        self.log.info("%s", line)
        tags = {"dag_id": getattr(context["ti"], "dag_id", ""), "task_id": self.task_id}
        count(batches, tags)
        context["ti"].xcom_push(key=BATCHES, value=batches)
        return line


class Together(Advance):
    """Runs several pipelines with one command, and returns its outcomes. The task of each pipeline says what became of
    it, so this one fails only where the command did not get so far."""

    errors_at_once = True

    def execute(self, context: Context) -> list[Record]:
        records, lines, code = self.run_command(context)
        if not any("exit_code" in record for record in records):
            raise_for(code, last_words(lines), retried=is_retry(context))
        return records


class AfterTogether(Advance):
    """One of several pipelines: done where `Together` has run it to its end, else it runs alone."""

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> str:
        outcomes = context["ti"].xcom_pull(task_ids="together") or []
        *batches, end = [record for record in outcomes if record["pipeline"] == self.pipeline] or [{"exit_code": None}]
        if end["exit_code"] != 0:
            self.command += catching_up(context)
            return self.published(Job.execute(self, context), context)
        if not batches:
            raise AirflowSkipException("nothing is new: nothing was changed")
        return self.published([{k: v for k, v in one.items() if k != "pipeline"} for one in batches], context)


class Verify(Job):
    """Compares the windows of a sample of keys with their source; skipped where no key or window is in the sample."""

    def execute(self, context: Context) -> list[Record]:
        records, lines, code = self.run_command(context)
        if records and records[-1]["nothing_compared"]:
            raise AirflowSkipException(last_words(lines))
        raise_for(code, last_words(lines))
        return records


class Report(Job):
    """Builds the page of the pipeline in `root`; skipped before the first batch was checked."""

    operator_extra_links = (Page(),)

    def __init__(self, *, root: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.root = str(root)

    def execute(self, context: Context) -> Any:
        from windowlib.quality.validations import kept

        if not kept(Path(self.root)):
            raise AirflowSkipException("no batch has been checked yet: there is nothing to report")
        return super().execute(context)


class BrokenDefinition(BaseOperator):
    """Stands for a pipeline whose definition cannot be used: fails, and says why."""

    def __init__(self, *, message: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.message = message

    def execute(self, context: Context) -> None:
        raise Final(f"this definition cannot be used:\n{in_lines(self.message)}")
