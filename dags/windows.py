"""One DAG for each definition in `pipelines/` next to this file (or in WINDOWLIB_PIPELINES): plan → advance → report.

If the checks refuse a batch, two tasks come before report: decide → publish (`windowlib.airflow.decide`). Definitions
with the same `airflow.together` share one DAG: together → advance and report of each. With `checks.verify_sample` a
task verify comes before report.

The schedule sets when to look for input, not which input to read. So a skipped, doubled or late run loses nothing. Each
task runs one command in its own process, and this file imports no Spark. A definition with errors becomes a DAG that
fails with those errors every hour until they are corrected. The other pipelines continue.
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


def pipeline_dag(definition: Definition) -> DAG:
    """Builds the DAG of a pipeline. Report is a teardown: it always runs, and does not hide a failed advance."""
    with DAG(
        f"windows_{definition.name}",
        schedule=pipelines.timetable(definition),
        doc_md=page(definition),
        **pipelines.dag_settings([definition]),
    ) as dag:
        file, tables, engine = definition.file, definition.store, pipelines.engine_task(definition)
        outlets, command = [pipelines.results_asset(definition.name, tables)], advance_command(definition)
        plan = operators.PlanBatch(task_id="plan", file=file, command=of_pipeline("plan", file))
        advance = operators.Advance(task_id="advance", file=file, command=command, outlets=outlets, **engine)
        report = operators.BuildReport(task_id="report", command=of_pipeline("report", file), tables=tables)
        plan >> advance
        add_decision_tasks(definition, advance, report)
    return dag


def together_dag(name: str, members: Sequence[Definition]) -> DAG:
    """Builds the DAG of pipelines that run together. If one pipeline or the common run fails, the others continue."""
    settings = {"doc_md": together_page(members), **pipelines.dag_settings(members)}
    with DAG(f"together_{name}", schedule=pipelines.timetable(members[0]), **settings) as dag:
        command, engine = advance_command(*members), pipelines.engine_task(members[0])
        together = operators.AdvanceTogether(task_id="together", command=command, **engine)
        for definition in members:
            advance = operators.AfterTogether(
                task_id=f"advance_{definition.name}",
                pipeline=definition.name,
                file=definition.file,
                command=advance_command(definition),
                outlets=[pipelines.results_asset(definition.name, definition.store)],
                trigger_rule="all_done",
                **pipelines.engine_task(definition),
            )
            command, retries = of_pipeline("report", definition.file), pipelines.retries(definition.airflow)
            report = operators.BuildReport(
                task_id=f"report_{definition.name}", command=command, tables=definition.store, **retries
            )
            together >> advance
            add_decision_tasks(definition, advance, report, f"_{definition.name}")
    return dag


def broken_dag(broken: pipelines.BrokenPipelines) -> DAG:
    """Builds the DAG that stands for a definition with errors."""
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
        case [first, *_] if first.airflow.together:
            return together_dag(first.airflow.together, group)
        case [definition]:
            return pipeline_dag(definition)
    raise AssertionError(group)


for group in pipelines.dag_groups(pipelines.pipelines_folder(Path(__file__).parent)):
    try:
        dag = dag_of(group)
    except Exception as error:  # an error in one group must not stop the others
        dag = broken_dag(pipelines.cannot_be_made(group, error))
    globals()[dag.dag_id] = dag
