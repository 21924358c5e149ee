"""One DAG for each definition in `dags/pipelines/` (or the folder WINDOWLIB_PIPELINES): plan → advance → report.

Definitions with the same `airflow.together` are one DAG: together → advance and report of each.

The schedule says when to look, never what to read: a skipped, doubled or late run loses nothing. Each task runs one
command as its own process; no Spark is imported here. A definition that cannot be used becomes a DAG that fails with
its mistakes, every hour until it is mended, and leaves the other pipelines alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowTimetableInvalid

from jobs.dag_docs import broken_page, page, together_page
from jobs.definition import Definition, load_definition
from jobs.definitions import check_one_schedule, check_together
from jobs.operators import (
    Advance,
    AfterTogether,
    BrokenDefinition,
    Plan,
    Report,
    Together,
    advance_command,
    command,
)
from windowlib.errors import WindowError

PIPELINES = Path(os.environ.get("WINDOWLIB_PIPELINES") or Path(__file__).parent / "pipelines")
POOL = "windowlib"  # one slot: one task at a time; `make airflow` creates it


def pipeline_dag(definition: Definition) -> DAG:
    """The DAG of a pipeline. Report is a teardown: it always runs, and does not hide that advance failed."""
    with DAG(
        dag_id=f"windows_{definition.name}",
        schedule=timetable(definition),
        doc_md=page(definition),
        **settings(definition),
    ) as dag:
        plan = Plan(task_id="plan", command=command("plan", definition))
        advance = Advance(task_id="advance", command=advance_command(definition), outlets=[results_asset(definition)])
        report = Report(task_id="report", command=command("report", definition), root=definition.root)
        plan >> advance >> report.as_teardown()
    return dag


def together_dag(definitions: Sequence[Definition]) -> DAG:
    """The DAG of pipelines that run together; whatever becomes of one, or of their common run, the others go on."""
    check_together(definitions)
    check_one_schedule(definitions)
    first = definitions[0]
    dag_id = f"together_{first.airflow.together}"
    with DAG(
        dag_id=dag_id, schedule=timetable(first), doc_md=together_page(definitions), **settings(*definitions)
    ) as dag:
        together = Together(task_id="together", command=advance_command(*definitions))
        for one in definitions:
            advance = AfterTogether(
                task_id=f"advance_{one.name}",
                pipeline=one.name,
                command=advance_command(one),
                outlets=[results_asset(one)],
                trigger_rule="all_done",
                **tries(one),
            )
            report = Report(task_id=f"report_{one.name}", command=command("report", one), root=one.root, **tries(one))
            together >> advance >> report.as_teardown()
    return dag


def settings(*definitions: Definition) -> dict[str, Any]:
    """What the DAGs of one and of several pipelines have in common."""
    first = definitions[0]
    return {
        "catchup": False,
        "max_active_runs": 1,
        "tags": list(dict.fromkeys(["windowlib", *(one.window.type for one in definitions)])),
        "default_args": {"pool": POOL, **tries(first)},
    }


def tries(definition: Definition) -> dict[str, Any]:
    """How often, and when, a task is tried again."""
    delay = timedelta(milliseconds=definition.airflow.retry_delay_ms)
    return {"retries": definition.airflow.retries, "retry_delay": delay}


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


def broken_dag(name: str, message: str, kind: str = "windows") -> DAG:
    """A DAG in the place of a pipeline, or of several that run together, whose definition cannot be used."""
    with DAG(
        dag_id=f"{kind}_{name}",
        dag_display_name=f"{kind}_{name} (broken definition)",
        schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
        catchup=False,
        doc_md=broken_page(message),
        tags=["windowlib", "broken definition"],
    ) as dag:
        BrokenDefinition(task_id="definition", message=message)
    return dag


def dags(folder: Path) -> dict[str, DAG]:
    """By its id, every DAG that the definitions in a folder make."""
    named: dict[str, Path] = {}
    groups: dict[str, list[Definition]] = {}
    found: list[DAG] = []
    for file in sorted(folder.glob("*.toml")):
        try:
            definition = load_definition(file)
            if other := named.get(definition.name):
                raise ValueError(f"{file}: name: {definition.name} is the name of {other} already; choose another")
            named[definition.name] = file
            if definition.airflow.together:
                timetable(definition)
                groups.setdefault(definition.airflow.together, []).append(definition)
            else:
                found.append(pipeline_dag(definition))
        except (WindowError, ValueError) as error:
            found.append(broken_dag(file.stem, str(error)))
    for name, definitions in groups.items():
        try:
            found.append(together_dag(definitions))
        except WindowError as error:
            found.append(broken_dag(name, str(error), "together"))
    return {dag.dag_id: dag for dag in found}


globals().update(dags(PIPELINES))
