"""Open questions about waiting batches and previews of reruns, from Airflow's database."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from windowlib.airflow.addresses import outside
from windowlib.airflow.asking import ASKING
from windowlib.airflow.operators import DECIDE
from windowlib.airflow.pipelines import dag_id
from windowlib.airflow.rerun_operators import REVIEW, SHOWN
from windowlib.airflow.web.actions import RERUN_DAG
from windowlib.definition.definition import Definition

if TYPE_CHECKING:
    from sqlalchemy import Select


def open_question(definition: Definition) -> str | None:
    """Address of the newest unanswered question about the waiting batch of a pipeline; None if no run asks now."""
    from airflow.utils.session import create_session

    dag, task = dag_id(definition), f"{DECIDE}_{definition.name}" if definition.airflow.together else DECIDE
    with create_session() as session:
        run_id = session.scalars(_asking_runs(dag, task)).first()
    return None if run_id is None else _address(dag, run_id, task)


def open_review(preview_id: str) -> str | None:
    """Address of the newest unanswered question about a preview; None if no run asks now."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        for run_id in session.scalars(_asking_runs(RERUN_DAG, REVIEW)).all():
            shown = XComModel.get_many(run_id=run_id, key=SHOWN, task_ids=REVIEW, dag_ids=RERUN_DAG)
            if any(XComModel.deserialize_value(xcom) == preview_id for xcom in session.scalars(shown)):
                return _address(RERUN_DAG, run_id, REVIEW)
    return None


def _asking_runs(dag: str, task: str) -> Select[tuple[str]]:
    """Query of the runs whose task has an unanswered question, newest question first."""
    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import select

    return (
        select(TaskInstance.run_id)
        .join(HITLDetail, HITLDetail.ti_id == TaskInstance.id)
        .where(TaskInstance.dag_id == dag, TaskInstance.task_id == task)
        .where(TaskInstance.state.in_(ASKING), HITLDetail.responded_at.is_(None))
        .order_by(HITLDetail.created_at.desc())
    )


def _address(dag: str, run_id: str, task: str) -> str:
    return f"{outside()}/dags/{dag}/runs/{quote(run_id, safe='')}/tasks/{task}/required_actions"
