"""One DAG for each definition in `pipelines/` next to this file (or in WINDOWLIB_PIPELINES): plan → advance → report.

What the checks refuse is decided before report: decide → publish (`windowlib.airflow.decide`). Definitions with the
same `airflow.together` are one DAG: together → advance and report of each. With `checks.verify_sample` there is a task
verify before report.

The schedule says when to look, never what to read: a skipped, doubled or late run loses nothing. Each task runs one
command as its own process; no Spark is imported here. A definition that cannot be used becomes a DAG that fails with
its mistakes, every hour until it is corrected, and the other pipelines go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from airflow.sdk import DAG, CronDataIntervalTimetable

from windowlib.airflow import operators, pipelines
from windowlib.airflow.commands import advance_command, of_pipeline
from windowlib.airflow.dag_docs import broken_page, page, together_page
from windowlib.airflow.decide import add_decision_tasks
from windowlib.definition.definition import Definition


def pipeline_dag(one: Definition) -> DAG:
    """The DAG of a pipeline. Report is a teardown: it always runs, and does not hide that advance failed."""
    with DAG(
        f"windows_{one.name}", schedule=pipelines.timetable(one), doc_md=page(one), **pipelines.dag_settings([one])
    ) as dag:
        plan = operators.PlanBatch(task_id="plan", file=one.file, command=of_pipeline("plan", one.file))
        outlets, command = [pipelines.results_asset(one.name, one.root)], advance_command(one)
        advance = operators.Advance(
            task_id="advance", file=one.file, command=command, outlets=outlets, **pipelines.engine_task(one)
        )
        report = operators.BuildReport(task_id="report", command=of_pipeline("report", one.file), root=one.root)
        plan >> advance
        add_decision_tasks(one, advance, report)
    return dag


def together_dag(name: str, members: Sequence[Definition]) -> DAG:
    """The DAG of pipelines that run together; whatever becomes of one, or of their common run, the others go on."""
    settings = {"doc_md": together_page(members), **pipelines.dag_settings(members)}
    with DAG(f"together_{name}", schedule=pipelines.timetable(members[0]), **settings) as dag:
        together = operators.AdvanceTogether(
            task_id="together", command=advance_command(*members), **pipelines.engine_task(members[0])
        )
        for one in members:
            advance = operators.AfterTogether(
                task_id=f"advance_{one.name}",
                pipeline=one.name,
                file=one.file,
                command=advance_command(one),
                outlets=[pipelines.results_asset(one.name, one.root)],
                trigger_rule="all_done",
                **pipelines.engine_task(one),
            )
            command = of_pipeline("report", one.file)
            report = operators.BuildReport(
                task_id=f"report_{one.name}", command=command, root=one.root, **pipelines.retries(one.airflow)
            )
            together >> advance
            add_decision_tasks(one, advance, report, f"_{one.name}")
    return dag


def broken_dag(broken: pipelines.BrokenPipelines) -> DAG:
    """A DAG in the place of one whose definition cannot be used."""
    with DAG(
        dag_id=broken.dag_id,
        dag_display_name=f"{broken.dag_id} (broken definition)",
        schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
        catchup=False,
        doc_md=broken_page(broken.message),
        tags=["windowlib", "broken definition"],
    ) as dag:
        operators.BrokenDefinition(task_id="definition", message=broken.message)
    return dag


def dag_of(group: Sequence[Definition] | pipelines.BrokenPipelines) -> DAG:
    match group:
        case pipelines.BrokenPipelines():
            return broken_dag(group)
        case [one, *_] if one.airflow.together:
            return together_dag(one.airflow.together, group)
        case [one]:
            return pipeline_dag(one)
    raise AssertionError(group)


for group in pipelines.dag_groups(pipelines.pipelines_folder(Path(__file__).parent)):
    try:
        dag = dag_of(group)
    except Exception as error:  # whatever is wrong with one, the others must go on
        dag = broken_dag(pipelines.cannot_be_made(group, error))
    globals()[dag.dag_id] = dag
