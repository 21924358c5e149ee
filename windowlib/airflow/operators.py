"""Tasks of a pipeline in Airflow: plan, advance, report, and the tasks of pipelines that run together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NoReturn

from airflow.sdk import BaseOperator, BaseOperatorLink, Context
from airflow.sdk.exceptions import DownstreamTasksSkipped

from windowlib.airflow.addresses import home_page, page_of
from windowlib.airflow.approval import waits_for_decision
from windowlib.airflow.asking import Question, asking_run, question_at
from windowlib.airflow.connections.access import access_by, load_pipeline
from windowlib.airflow.job import (
    Job,
    Record,
    catching_up,
    in_a_sentence,
    in_lines,
    is_retry,
    last_words,
    raise_for,
    skip,
)
from windowlib.airflow.lineage import LineageTask
from windowlib.airflow.outcome import in_a_line
from windowlib.airflow.outlets import extra_of
from windowlib.airflow.pools import FIRST
from windowlib.airflow.sentences import FinalFailure
from windowlib.airflow.statistics import count
from windowlib.cli.exits import TaskState, task_state
from windowlib.storage.address import store_at
from windowlib.storage.store import Store

BATCHES = "batches"  # XCom key of the outcomes of a task's batches
PLAN, TOGETHER = "plan", "together"
ADVANCE, DECIDE, REPORT = "advance", "decide", "report"  # task ids; pipelines that run together add _PIPELINE
IDLE = (ADVANCE, DECIDE, REPORT)  # the scheduler also skips the tasks after these
NOTHING_PLANNED = (
    "nothing was planned: nothing was changed. The results stay as they are: a run reads all new input, whatever its"
    " date. To recompute a past range, trigger the DAG rerun_windows"
)
RETURNED = "return_value"  # Airflow's XCom key of the return value of a task


class Page(BaseOperatorLink):
    """Button that opens the page of the pipeline."""

    name = "Page"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Address of the page of this task's pipeline; the home page for a task of several pipelines."""
        if not operator.dag_id.startswith("together_"):
            return page_of(operator.dag_id.removeprefix("windows_"))
        pipeline = operator.task_id.partition("_")[2]
        return page_of(pipeline) if pipeline else home_page()


def done_skipping(context: Context, returned: object, *tasks: str) -> NoReturn:
    """Ends a task with success. The scheduler skips the later tasks `tasks` without a process."""
    context["ti"].xcom_push(key=RETURNED, value=returned)
    raise DownstreamTasksSkipped(tasks=list(tasks))  # type: ignore[no-untyped-call]


class PlanBatch(Job):
    """Plans the next batch, or finds that there is nothing to do, or that a refused batch waits.

    A waiting batch is not a failure: the task logs it and succeeds, `advance` is skipped, and `decide` asks.
    """

    operator_extra_links = (Page(), Question())
    question_at = ""

    def __init__(self, *, file: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.file = str(file)

    def execute(self, context: Context) -> Any:
        records, lines, code = self.run_command(context)
        if task_state(code, waits=_waits(records)) is TaskState.WAITS:
            batch_id = records[-1]["batch_id"]
            asking = asking_run(context, DECIDE, batch_id)
            self.question_at = question_at(context, DECIDE, asking)
            self.log.warning("%s", in_lines(_waiting(self.file, batch_id, DECIDE, asking)))
            self.log.warning("%s", in_lines(last_words(lines)))
            done_skipping(context, records, ADVANCE)
        raise_for(code, last_words(lines), retried=is_retry(context))
        if records[-1]["batch_id"] is None:
            self.log.info("%s", in_lines(NOTHING_PLANNED))
            done_skipping(context, records, *IDLE)
        return records


def _waits(records: Sequence[Record]) -> bool:
    """Tests if a command found a waiting batch that an earlier run refused."""
    return bool(records) and "waits" in records[-1]


def _waiting(file: str, batch_id: int, decide: str, asking: str | None) -> str:
    return waits_for_decision(load_pipeline(file), batch_id, decide, asking)


class Advance(LineageTask):
    """Runs the planned batch and the batches after it, and updates the asset of the results.

    Is skipped if nothing is planned or new. Returns its outcome in a line. XCom `batches` has the outcome of each
    batch. If it succeeds, `decide` is skipped.
    """

    operator_extra_links: Collection[BaseOperatorLink] = (Page(),)

    def __init__(self, *, file: Path | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.file = None if file is None else str(file)  # None: a task of several pipelines

    def execute(self, context: Context) -> Any:
        planned = context["ti"].xcom_pull(task_ids=PLAN)  # None if plan was marked as success: the command plans
        if planned and planned[-1]["batch_id"] is None:  # only this task was cleared: otherwise plan has skipped it
            skip("nothing was planned: nothing was changed")
        done_skipping(context, self.run_pipeline(context), DECIDE)

    def run_pipeline(self, context: Context) -> str:
        """Runs the command. On a retry, waits for the run that an earlier try has left behind, and reports it."""
        if is_retry(context):
            self.command += catching_up(context)
        return self.published(Job.execute(self, context), context)

    def published(self, batches: list[Record], context: Context) -> str:
        """Puts the figures of all batches into the event of the results' asset. Returns the outcome in a line.

        Without batches the task is skipped and no event is sent, because an event would start dependent DAGs.
        """
        if not batches:
            skip("nothing is new: nothing was changed")
        line, self.published_batches = in_a_line(batches), batches
        for asset in self.outlets:
            context["outlet_events"][asset].extra = extra_of(batches)
        self.log.info("%s", line)
        tags = {"dag_id": getattr(context["ti"], "dag_id", ""), "task_id": self.task_id}
        count(batches, tags)
        context["ti"].xcom_push(key=BATCHES, value=batches)
        return line


class AdvanceTogether(Advance):
    """Runs several pipelines with one command, and returns its outcomes.

    The task of each pipeline shows the result of the pipeline. This task fails only if the command ends before it
    reports any pipeline. Tasks of pipelines without new input are skipped.

    On a retry no pipeline counts as done. An earlier try may have committed batches that no task has reported, so the
    task of each pipeline runs it alone, and reports them.
    """

    errors_at_once = True

    def execute(self, context: Context) -> Any:
        records, lines, code = self.run_command(context)
        ends = [record for record in records if "exit_code" in record]
        if not ends:
            raise_for(code, last_words(lines), retried=is_retry(context))
        if is_retry(context):
            return [record | {"exit_code": None} if record.get("exit_code") == 0 else record for record in records]
        if idle := [end["pipeline"] for end in ends if end["exit_code"] == 0 and not end["batches"]]:
            done_skipping(context, records, *(f"{task}_{name}" for name in idle for task in IDLE))
        return records


class AfterTogether(Advance):
    """Task of a single pipeline after `AdvanceTogether`.

    Succeeds if `AdvanceTogether` has run the pipeline to its end. Is skipped if a batch waits for a decision. Otherwise
    runs the pipeline alone.
    """

    operator_extra_links = (Page(), Question())
    question_at = ""

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> Any:
        outcomes = context["ti"].xcom_pull(task_ids=TOGETHER) or []
        *batches, end = [record for record in outcomes if record["pipeline"] == self.pipeline] or [{"exit_code": None}]
        decide = f"{DECIDE}_{self.pipeline}"
        if self.file and "waits" in end and not batches:
            asking = asking_run(context, decide, end["waits"])
            self.question_at = question_at(context, decide, asking)
            skip(_waiting(self.file, end["waits"], decide, asking))
        if end["exit_code"] != 0:
            self.command += catching_up(context)
            batches = Job.execute(self, context)
        published = [{k: v for k, v in batch.items() if k != "pipeline"} for batch in batches]
        done_skipping(context, self.published(published, context), decide)


class Verify(Job):
    """Compares the windows of a sample of keys with their source. Is skipped if the sample has no key or window."""

    def execute(self, context: Context) -> list[Record]:
        records, lines, code = self.run_command(context)
        if records and records[-1]["nothing_compared"]:
            skip(last_words(lines))
        raise_for(code, last_words(lines))
        return records


class BuildReport(Job):
    """Builds the page of the pipeline with these tables. Is skipped before the first checked batch."""

    operator_extra_links = (Page(),)

    def __init__(self, *, tables: Store, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, **FIRST})
        self.tables = tables.url

    @in_a_sentence()
    def execute(self, context: Context) -> Any:
        from windowlib.quality.validations import stored_outcomes

        if not stored_outcomes(store_at(self.tables, access_by(self.connection)), 1):
            skip("no batch has been checked yet: there is nothing to report")
        return super().execute(context)


class BrokenDefinition(BaseOperator):
    """Task in place of a pipeline whose definition cannot be used: fails with the reason."""

    def __init__(self, *, message: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.message = message

    def execute(self, context: Context) -> None:
        raise FinalFailure(f"this definition cannot be used:\n{in_lines(self.message)}")
