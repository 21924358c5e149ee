"""The open question about a batch that waits: which run of the DAG asks it, and the button that leads there.

A batch may be refused in one run, a backfill for example, and keep later runs waiting. These link to the question.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseOperator, BaseOperatorLink, Context

from windowlib.airflow.addresses import outside

BATCH = "batch_id"  # the key under which a task keeps the batch that it has asked about
# States of a task whose question is open, or is put again.
ASKING = ("awaiting_input", "scheduled", "queued", "running")


class Question(BaseOperatorLink):
    """The button that opens the question about the batch that waits."""

    name = "Decide"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Address of the question; empty where no batch waited. Airflow asks for it when the task has ended."""
        return getattr(operator, "question_at", "")


def asking_run(context: Context, decide: str, batch_id: int, *, itself: bool = False) -> str | None:
    """Another run of the DAG whose task `decide` asks about a batch and has no answer yet; None without one.

    `itself`: the task that looks is `decide` of this run, and running.
    """
    task: Any = context["ti"]
    about = {"dag_id": task.dag_id, "task_ids": [decide]}
    if task.get_ti_count(**about, states=[*ASKING]) <= int(itself):
        return None
    runs = task.get_task_states(**about).items()
    asking = (run_id for run_id, states in runs if run_id != task.run_id and states.get(decide) in ASKING)
    asked = (run for run in asking if task.xcom_pull(task_ids=decide, key=BATCH, run_id=run) == batch_id)
    return next(map(str, asked), None)


def question_at(context: Context, decide: str, run_id: str | None) -> str:
    """Address of the question that the task `decide` of a run asks; None: of this run."""
    task: Any = context["ti"]
    return (
        f"{outside()}/dags/{task.dag_id}/runs/{quote(run_id or task.run_id, safe='')}/tasks/{decide}/required_actions"
    )
