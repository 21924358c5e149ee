"""Open question about a waiting batch, from Airflow's database."""

from __future__ import annotations

from urllib.parse import quote

from windowlib.airflow.addresses import outside
from windowlib.airflow.asking import ASKING
from windowlib.airflow.operators import DECIDE
from windowlib.airflow.pipelines import dag_id
from windowlib.definition.definition import Definition


def open_question(definition: Definition) -> str | None:
    """Address of the newest unanswered question about the waiting batch of a pipeline; None if no run asks now."""
    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import select

    dag, task = dag_id(definition), f"{DECIDE}_{definition.name}" if definition.airflow.together else DECIDE
    query = (
        select(TaskInstance.run_id)
        .join(HITLDetail, HITLDetail.ti_id == TaskInstance.id)
        .where(TaskInstance.dag_id == dag, TaskInstance.task_id == task)
        .where(TaskInstance.state.in_(ASKING), HITLDetail.responded_at.is_(None))
        .order_by(HITLDetail.created_at.desc())
    )
    with create_session() as session:
        run_id = session.scalars(query).first()
    return (
        None
        if run_id is None
        else f"{outside()}/dags/{dag}/runs/{quote(run_id, safe='')}/tasks/{task}/required_actions"
    )
