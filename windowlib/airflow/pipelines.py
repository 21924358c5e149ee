"""Pipelines that Airflow schedules: the definitions of one folder, with the settings of their DAGs.

The folder is `WINDOWLIB_PIPELINES`, or `pipelines` next to the DAG files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, islice
from pathlib import Path
from typing import Any

from airflow.sdk import Asset, CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowTimetableInvalid

from windowlib.airflow.late_runs import deadlines
from windowlib.airflow.pools import BY_WEIGHT, LIGHT, pool_of
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.several import check_one_dag, check_together
from windowlib.definition.toml.file import Airflow
from windowlib.model.errors import WindowError
from windowlib.storage.address import uri_of
from windowlib.storage.store import Store

DAG_ID_CHARACTERS = 200  # Airflow allows 250
LIGHT_TIMEOUT = timedelta(hours=1)  # of a task that computes nothing; a longer one hangs, and is tried again


@dataclass(frozen=True, slots=True)
class BrokenPipelines:
    """Pipeline, or group of pipelines, that cannot be scheduled: id of the DAG in its place, and the reason."""

    dag_id: str
    message: str

    @property
    def name(self) -> str:
        """Name of the pipeline, derived from the DAG id."""
        return self.dag_id.removeprefix("windows_")


def pipelines_folder(dags: Path) -> Path:
    """Folder of the definitions; `dags` is the folder of the DAG files."""
    return Path(os.environ.get("WINDOWLIB_PIPELINES") or dags / "pipelines")


def definitions(folder: Path) -> Iterator[Definition | BrokenPipelines]:
    """Definitions of a folder, by file name. An error in a file concerns only its own DAG.

    If several files define the same pipeline, the file named like the pipeline wins, otherwise the first file. So a
    copy does not replace its original, even while the original has an error. Files that begin with `.` are ignored:
    they belong to editors and file systems.
    """
    loaded = {file: _loaded(file) for file in sorted(folder.glob("*.toml")) if not file.name.startswith(".")}
    file_by_name: dict[str, Path] = {}
    for file, definition in loaded.items():
        name = definition.name if isinstance(definition, Definition) else _name_in(file)
        if name and (name not in file_by_name or file.stem == name):
            file_by_name[name] = file
    dag_ids = {f"windows_{name}" for name, file in file_by_name.items() if isinstance(loaded[file], Definition)}
    for file, definition in loaded.items():
        if isinstance(definition, str):
            yield BrokenPipelines(_dag_id(file, dag_ids), definition)
        elif (original := file_by_name[definition.name]) != file:
            mistake = f"{file}: name: {definition.name} is already the name of {original}; choose another"
            yield BrokenPipelines(_dag_id(file, dag_ids), mistake)
        else:
            yield definition


def _loaded(file: Path) -> Definition | str:
    """Definition in a file, or the reason why it cannot be loaded."""
    try:
        return load_definition(file)
    except Exception as error:  # any error: the other pipelines must continue
        return str(error) or f"{file}: {type(error).__name__}"


def _name_in(file: Path) -> str | None:
    """Name in a file that cannot be used, from the lines before its first section; None if there is none."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    head, *_ = re.split(r"^[ \t]*\[", text, maxsplit=1, flags=re.MULTILINE)
    match = re.search(r"""^[ \t]*["']?name["']?[ \t]*=[ \t]*["']?(\w+)""", head, re.MULTILINE)
    return match[1] if match else None


def _dag_id(file: Path, dag_ids: set[str]) -> str:
    """Unused id for the DAG of a broken file, with characters that Airflow allows. Adds it to `dag_ids`."""
    wanted = "windows_" + re.sub(r"[^A-Za-z0-9_.-]", "_", file.stem)[:DAG_ID_CHARACTERS]
    numbered = (f"{wanted}_{number}" for number in count(2))
    free = next(candidate for candidate in (wanted, *islice(numbered, len(dag_ids) + 1)) if candidate not in dag_ids)
    dag_ids.add(free)
    return free


def dag_groups(folder: Path) -> Iterator[list[Definition] | BrokenPipelines]:
    """Contents of each DAG: one pipeline, the pipelines of one `airflow.together`, or a broken definition."""
    together: dict[str, list[Definition]] = {}
    for definition in definitions(folder):
        match definition:
            case BrokenPipelines():
                yield definition
            case Definition() if mistake := schedule_mistake(definition):
                yield BrokenPipelines(f"windows_{definition.name}", mistake)
            case Definition(airflow=airflow) if airflow.together:
                together.setdefault(airflow.together, []).append(definition)
            case Definition():
                yield [definition]
    for name, members in together.items():
        try:
            check_together(members)
            check_one_dag(members)
        except WindowError as error:
            yield BrokenPipelines(f"together_{name}", str(error))
        else:
            yield members


def cannot_be_made(group: Sequence[Definition] | BrokenPipelines, error: Exception) -> BrokenPipelines:
    """Broken pipelines in place of a DAG that could not be made from its definitions."""
    if isinstance(group, BrokenPipelines):
        raise error
    return BrokenPipelines(dag_id(group[0]), f"{group[0].file}: {type(error).__name__}: {error}")


def dag_id(definition: Definition) -> str:
    """Id of the DAG that runs a pipeline."""
    together = definition.airflow.together
    return f"together_{together}" if together else f"windows_{definition.name}"


def files_for_reruns(folder: Path) -> dict[str, str]:
    """Files of the definitions whose windows can be rerun, by name."""
    return {
        definition.name: str(definition.file)
        for definition in definitions(folder)
        if isinstance(definition, Definition) and definition.never_rerun is None
    }


def schedule_mistake(definition: Definition) -> str | None:
    """Error of Airflow about the schedule of a definition, as a sentence; None if the schedule is valid."""
    try:
        if cron := timetable(definition):
            cron.validate()
    except AirflowTimetableInvalid as error:
        return f'{definition.file}: airflow.schedule: given "{definition.airflow.schedule}"; {error}'
    return None


def timetable(definition: Definition) -> CronDataIntervalTimetable | None:
    """Timetable of the runs that look for new input; None if runs start only by hand."""
    schedule = definition.airflow.schedule
    return None if schedule is None else CronDataIntervalTimetable(schedule, timezone="UTC")


def dag_settings(members: Sequence[Definition]) -> dict[str, Any]:
    """Settings of the DAG of one or several pipelines."""
    first, owners = members[0], dict.fromkeys(member.owner for member in members if member.owner)
    tags = [*(member.window.type for member in members), *(tag for member in members for tag in member.tags)]
    described = [member for member in members if member.description]
    texts = [f"{member.name}: {member.description}" if members[1:] else member.description for member in described]
    owner = {"owner": ", ".join(owners)} if owners else {}
    return {
        "catchup": False,
        "max_active_runs": 1,
        "deadline": list(deadlines(members)) or None,
        "description": "; ".join(texts) or None,
        "tags": list(dict.fromkeys(["windowlib", *tags])),
        "default_args": {
            "pool": LIGHT.name,
            "execution_timeout": LIGHT_TIMEOUT,
            **BY_WEIGHT,
            **owner,
            **retries(first.airflow),
            "connection": first.airflow.connection,
        },
    }


def engine_task(definition: Definition) -> dict[str, Any]:
    """Settings of tasks that compute: the pool of the engine, and no time limit except `batch_timeout`."""
    return {"pool": pool_of(definition.engine_place).name, "execution_timeout": None, **retries(definition.airflow)}


def retries(settings: Airflow) -> dict[str, Any]:
    """Settings of the retries of a task."""
    delay = timedelta(milliseconds=settings.retry_delay_ms)
    return {"retries": settings.retries, "retry_delay": delay}


def results_asset(name: str, tables: Store) -> Asset:
    """Asset of the results, for schedules of other DAGs. The extra of its events has the figures of the run."""
    return Asset(name=f"windowlib_{name}_results", uri=uri_of(f"{tables}/results"))
