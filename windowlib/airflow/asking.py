"""Open question about a waiting batch: the run of the DAG that asks it, and the button that opens it.

A batch may be refused in one run, for example a backfill, and keep later runs waiting. These runs link to the question.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseOperator, BaseOperatorLink, Context

from windowlib.airflow.addresses import outside

BATCH = "batch_id"  # XCom key of the batch that a task has asked about
# States of a task whose question is open, or is asked again.
ASKING = ("awaiting_input", "scheduled", "queued", "running")


class Question(BaseOperatorLink):
    """Button that opens the question about the waiting batch."""

    name = "Decide"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Address of the question; empty if no batch waited. Airflow calls it after the task has ended."""
        return getattr(operator, "question_at", "")


def asking_run(context: Context, decide: str, batch_id: int, *, itself: bool = False) -> str | None:
    """Id of another run of the DAG whose task `decide` asks about a batch and has no answer yet.

    None if no such run exists.

    itself: the calling task is the running task `decide` of this run
    """
    task: Any = context["ti"]
    tasks = {"dag_id": task.dag_id, "task_ids": [decide]}
    if task.get_ti_count(**tasks, states=[*ASKING]) <= int(itself):
        return None
    runs = task.get_task_states(**tasks).items()
    asking = (run_id for run_id, states in runs if run_id != task.run_id and states.get(decide) in ASKING)
    matching_runs = (run for run in asking if task.xcom_pull(task_ids=decide, key=BATCH, run_id=run) == batch_id)
    return next(map(str, matching_runs), None)


def question_at(context: Context, decide: str, run_id: str | None) -> str:
    """Address of the question of the task `decide` in a run; `run_id` None is this run."""
    task: Any = context["ti"]
    return (
        f"{outside()}/dags/{task.dag_id}/runs/{quote(run_id or task.run_id, safe='')}/tasks/{decide}/required_actions"
    )
