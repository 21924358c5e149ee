"""One DAG for each definition in `dags/pipelines/` (or the folder WINDOWLIB_PIPELINES): plan → advance → report.

The schedule says when to look, never what to read: a skipped, doubled or late run loses nothing. Each task runs one
command as its own process; no Spark is imported here. A definition that cannot be used becomes a DAG that fails with
its mistakes, every hour until it is mended, and leaves the other pipelines alone.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowTimetableInvalid

from jobs.dag_docs import broken_page, page
from jobs.definition import Definition, load_definition
from jobs.operators import Advance, BrokenDefinition, Plan, Report, advance_command, command
from windowlib.errors import WindowError

PIPELINES = Path(os.environ.get("WINDOWLIB_PIPELINES") or Path(__file__).parent / "pipelines")
POOL = "windowlib"  # one slot: one task at a time; `make airflow` creates it


def pipeline_dag(definition: Definition) -> DAG:
    """The DAG of a pipeline. Report is a teardown: it always runs, and does not hide that advance failed."""
    with DAG(
        dag_id=f"windows_{definition.name}",
        schedule=timetable(definition),
        catchup=False,
        max_active_runs=1,
        doc_md=page(definition),
        tags=["windowlib", definition.window.type],
        default_args={
            "pool": POOL,
            "retries": definition.airflow.retries,
            "retry_delay": timedelta(milliseconds=definition.airflow.retry_delay_ms),
        },
    ) as dag:
        plan = Plan(task_id="plan", command=command("plan", definition))
        advance = Advance(task_id="advance", command=advance_command(definition), outlets=[results_asset(definition)])
        report = Report(task_id="report", command=command("report", definition), root=definition.root)
        plan >> advance >> report.as_teardown()
    return dag


def timetable(definition: Definition) -> CronDataIntervalTimetable | None:
    """When to look; None: only by hand. Raises ValueError when Airflow does not understand it."""
    schedule = definition.airflow.schedule
    if schedule is None:
        return None
    found = CronDataIntervalTimetable(schedule, timezone="UTC")
    try:
        found.validate()
    except AirflowTimetableInvalid as error:
        raise ValueError(f'{definition.file}: airflow.schedule: given "{schedule}"; {error}') from error
    return found


def results_asset(definition: Definition) -> Asset:
    """What other DAGs may be scheduled by: the results, with the run's figures in the event's extra."""
    return Asset(name=f"windowlib_{definition.name}_results", uri=(definition.root / "results").as_uri())


def broken_dag(file: Path, message: str) -> DAG:
    """A DAG in the place of a pipeline whose definition cannot be used."""
    with DAG(
        dag_id=f"windows_{file.stem}",
        dag_display_name=f"windows_{file.stem} (broken definition)",
        schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
        catchup=False,
        doc_md=broken_page(message),
        tags=["windowlib", "broken definition"],
    ) as dag:
        BrokenDefinition(task_id="definition", message=message)
    return dag


def dags(folder: Path) -> dict[str, DAG]:
    """By its id, the DAG of every definition in a folder."""
    named: dict[str, Path] = {}
    found: dict[str, DAG] = {}
    for file in sorted(folder.glob("*.toml")):
        try:
            definition = load_definition(file)
            if other := named.get(definition.name):
                raise ValueError(f"{file}: name: {definition.name} is the name of {other} already; choose another")
            named[definition.name] = file
            dag = pipeline_dag(definition)
        except (WindowError, ValueError) as error:
            dag = broken_dag(file, str(error))
        found[dag.dag_id] = dag
    return found


globals().update(dags(PIPELINES))
