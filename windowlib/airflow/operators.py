"""The tasks of a pipeline in Airflow: plan, advance, report, and those of pipelines that run together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NoReturn

from airflow.sdk import BaseOperator, BaseOperatorLink, Context
from airflow.sdk.exceptions import DownstreamTasksSkipped

from windowlib.airflow.addresses import home_page, page_of
from windowlib.airflow.approval import waits_for_decision
from windowlib.airflow.asking import Question, asking_run, question_at
from windowlib.airflow.job import Job, Record, catching_up, in_lines, is_retry, last_words, raise_for, skip
from windowlib.airflow.lineage import Traced
from windowlib.airflow.outcome import in_a_line
from windowlib.airflow.outlets import extra_of
from windowlib.airflow.pools import FIRST
from windowlib.airflow.sentences import FinalFailure
from windowlib.airflow.statistics import count
from windowlib.cli.exits import TaskState, task_state

BATCHES = "batches"  # the key under which a task keeps the outcomes of its batches
PLAN, TOGETHER = "plan", "together"
ADVANCE, DECIDE, REPORT = "advance", "decide", "report"  # the tasks; those of one of several with _PIPELINE
IDLE = (ADVANCE, DECIDE, REPORT)  # the scheduler skips what else comes after them
NOTHING_PLANNED = (
    "nothing was planned: nothing was changed. The results stay as they are: a run reads whatever input is new, not"
    " that of its date; to recompute a past range, trigger the DAG rerun_windows"
)
RETURNED = "return_value"  # the key under which Airflow keeps what a task returns


class Page(BaseOperatorLink):
    """The button that opens the page of the pipeline."""

    name = "Page"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Where `windowlib.airflow.plugin` shows the pages of this task's pipeline; of several, the home page."""
        if not operator.dag_id.startswith("together_"):
            return page_of(operator.dag_id.removeprefix("windows_"))
        pipeline = operator.task_id.partition("_")[2]
        return page_of(pipeline) if pipeline else home_page()


def done_without(context: Context, returned: object, *tasks: str) -> NoReturn:
    """Ends a task as done: the scheduler skips these tasks after it, and starts no process for them."""
    context["ti"].xcom_push(key=RETURNED, value=returned)
    raise DownstreamTasksSkipped(tasks=list(tasks))  # type: ignore[no-untyped-call]


class PlanBatch(Job):
    """Fixes what the next batch reads, or finds that there is nothing to do, or that a refused batch waits.

    Where one waits, nothing is broken: this task says so and is done, `advance` is skipped, and `decide` asks.
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
            done_without(context, records, ADVANCE)
        raise_for(code, last_words(lines), retried=is_retry(context))
        if records[-1]["batch_id"] is None:
            self.log.info("%s", in_lines(NOTHING_PLANNED))
            done_without(context, records, *IDLE)
        return records


def _waits(records: Sequence[Record]) -> bool:
    """Whether a command found a batch that an earlier run refused."""
    return bool(records) and "waits" in records[-1]


def _waiting(file: str, batch_id: int, decide: str, asking: str | None) -> str:
    from windowlib.definition.definition import load_definition

    return waits_for_decision(load_definition(Path(file)), batch_id, decide, asking)


class Advance(Traced, Job):
    """Runs the planned batch and those after it; skipped where nothing is planned or new. Updates the results' asset.

    Returns what it did in a line; the outcome of each batch is under the key `batches`. `decide` is skipped then.
    """

    operator_extra_links: Collection[BaseOperatorLink] = (Page(),)

    def __init__(self, *, file: Path | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.file = None if file is None else str(file)  # None: the task of several pipelines

    def execute(self, context: Context) -> Any:
        planned = context["ti"].xcom_pull(task_ids=PLAN)  # None where plan was marked as success: the command plans
        if planned and planned[-1]["batch_id"] is None:  # this task alone was cleared: else plan has skipped it
            skip("nothing was planned: nothing was changed")
        done_without(context, self.run_pipeline(context), DECIDE)

    def run_pipeline(self, context: Context) -> str:
        """Runs the command; where it was tried before, waits for what that try has left behind, and reports it."""
        if is_retry(context):
            self.command += catching_up(context)
        return self.published(Job.execute(self, context), context)

    def published(self, batches: list[Record], context: Context) -> str:
        """The outcome in a line; it goes into the event of the results' asset, with the figures of all batches.

        Without any the task is skipped, and no event is sent: what depends on the results would start.
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
    """Runs several pipelines with one command, and returns its outcomes. The task of each pipeline says what became of
    it, so this one fails only where the command did not get so far; pipelines without new input have none.

    On a retry no outcome says that a pipeline is done: an earlier try may have committed batches that no task has
    reported, so the task of each runs it alone, and finds them.
    """

    errors_at_once = True

    def execute(self, context: Context) -> Any:
        records, lines, code = self.run_command(context)
        ends = [record for record in records if "exit_code" in record]
        if not ends:
            raise_for(code, last_words(lines), retried=is_retry(context))
        if is_retry(context):
            return [one | {"exit_code": None} if one.get("exit_code") == 0 else one for one in records]
        if idle := [one["pipeline"] for one in ends if one["exit_code"] == 0 and not one["batches"]]:
            done_without(context, records, *(f"{task}_{name}" for name in idle for task in IDLE))
        return records


class AfterTogether(Advance):
    """One of several pipelines: done where `AdvanceTogether` has run it to its end, skipped where a batch of it waits
    for a decision, else it runs alone."""

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
        published = [{k: v for k, v in one.items() if k != "pipeline"} for one in batches]
        done_without(context, self.published(published, context), decide)


class Verify(Job):
    """Compares the windows of a sample of keys with their source; skipped where no key or window is in the sample."""

    def execute(self, context: Context) -> list[Record]:
        records, lines, code = self.run_command(context)
        if records and records[-1]["nothing_compared"]:
            skip(last_words(lines))
        raise_for(code, last_words(lines))
        return records


class BuildReport(Job):
    """Builds the page of the pipeline in `root`; skipped before the first batch was checked."""

    operator_extra_links = (Page(),)

    def __init__(self, *, root: Path, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, **FIRST})
        self.root = str(root)

    def execute(self, context: Context) -> Any:
        from windowlib.quality.validations import stored_outcomes

        if not stored_outcomes(Path(self.root)):
            skip("no batch has been checked yet: there is nothing to report")
        return super().execute(context)


class BrokenDefinition(BaseOperator):
    """Stands for a pipeline whose definition cannot be used: fails, and says why."""

    def __init__(self, *, message: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.message = message

    def execute(self, context: Context) -> None:
        raise FinalFailure(f"this definition cannot be used:\n{in_lines(self.message)}")
