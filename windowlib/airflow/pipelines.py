"""The pipelines that Airflow schedules: the definitions of one folder, and what Airflow needs to know of them.

The folder is `WINDOWLIB_PIPELINES`, or `pipelines` next to the DAG files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import Asset, CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowTimetableInvalid

from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.several import check_one_schedule, check_together
from windowlib.model.errors import WindowError
from windowlib.tables.rerun import can_rerun

POOL = "windowlib"  # one slot: one task at a time; `make airflow` creates it


@dataclass(frozen=True, slots=True)
class Broken:
    """A pipeline, or several that run together, that cannot be scheduled: the DAG in its place, and why."""

    dag_id: str
    message: str


def pipelines_folder(dags: Path) -> Path:
    """The folder of the definitions; `dags` is the folder of the DAG files."""
    return Path(os.environ.get("WINDOWLIB_PIPELINES") or dags / "pipelines")


def definitions(folder: Path) -> Iterator[Definition | Broken]:
    """Each definition of the folder, by file name; of several with one name the first counts."""
    named: dict[str, Path] = {}
    for file in sorted(folder.glob("*.toml")):
        try:
            definition = load_definition(file)
        except (WindowError, ValueError) as error:
            yield Broken(f"windows_{file.stem}", str(error))
            continue
        if other := named.get(definition.name):
            already = f"{file}: name: {definition.name} is the name of {other} already; choose another"
            yield Broken(f"windows_{file.stem}", already)
            continue
        named[definition.name] = file
        yield definition


def dag_groups(folder: Path) -> Iterator[list[Definition] | Broken]:
    """What is to become a DAG each: one pipeline, the pipelines of one `airflow.together`, or a broken definition."""
    together: dict[str, list[Definition]] = {}
    for found in definitions(folder):
        match found:
            case Broken():
                yield found
            case Definition() if mistake := schedule_mistake(found):
                yield Broken(f"windows_{found.file.stem}", mistake)
            case Definition(airflow=airflow) if airflow.together:
                together.setdefault(airflow.together, []).append(found)
            case Definition():
                yield [found]
    for name, members in together.items():
        try:
            check_together(members)
            check_one_schedule(members)
        except WindowError as error:
            yield Broken(f"together_{name}", str(error))
        else:
            yield members


def files_for_reruns(folder: Path) -> dict[str, str]:
    """By name, the definitions whose windows can be rerun."""
    return {
        found.name: str(found.file)
        for found in definitions(folder)
        if isinstance(found, Definition) and can_rerun(found)
    }


def schedule_mistake(definition: Definition) -> str | None:
    """What Airflow does not understand about a definition's schedule; None where it does."""
    try:
        if found := timetable(definition):
            found.validate()
    except AirflowTimetableInvalid as error:
        return f'{definition.file}: airflow.schedule: given "{definition.airflow.schedule}"; {error}'
    return None


def timetable(definition: Definition) -> CronDataIntervalTimetable | None:
    """When to look for new input; None: only by hand."""
    schedule = definition.airflow.schedule
    return None if schedule is None else CronDataIntervalTimetable(schedule, timezone="UTC")


def dag_settings(members: Sequence[Definition]) -> dict[str, Any]:
    """What the DAGs of one and of several pipelines have in common."""
    first = members[0]
    return {
        "catchup": False,
        "max_active_runs": 1,
        "tags": list(dict.fromkeys(["windowlib", *(one.window.type for one in members)])),
        "default_args": {"pool": POOL, **retries(first)},
    }


def retries(definition: Definition) -> dict[str, Any]:
    """How often, and when, a task is tried again."""
    delay = timedelta(milliseconds=definition.airflow.retry_delay_ms)
    return {"retries": definition.airflow.retries, "retry_delay": delay}


def results_asset(definition: Definition) -> Asset:
    """What other DAGs may be scheduled by: the results, with the run's figures in the event's extra."""
    return Asset(name=f"windowlib_{definition.name}_results", uri=(definition.root / "results").as_uri())
