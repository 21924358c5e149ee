"""The pipelines that Airflow schedules: the definitions of one folder, and what Airflow needs to know of them.

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
from windowlib.definition.several import check_one_schedule, check_together
from windowlib.definition.toml.file import Airflow
from windowlib.model.errors import WindowError

DAG_ID_CHARACTERS = 200  # of the 250 that Airflow takes
LIGHT_TIMEOUT = timedelta(hours=1)  # of a task that computes nothing: one that takes longer hangs, and is tried again


@dataclass(frozen=True, slots=True)
class BrokenPipelines:
    """A pipeline, or several that run together, that cannot be scheduled: the DAG in its place, and why."""

    dag_id: str
    message: str

    @property
    def name(self) -> str:
        """What it is called where no definition says."""
        return self.dag_id.removeprefix("windows_")


def pipelines_folder(dags: Path) -> Path:
    """The folder of the definitions; `dags` is the folder of the DAG files."""
    return Path(os.environ.get("WINDOWLIB_PIPELINES") or dags / "pipelines")


def definitions(folder: Path) -> Iterator[Definition | BrokenPipelines]:
    """Each definition of the folder, by file name. Whatever is wrong with one file costs its own DAG alone.

    Of several with one name counts that whose file has it, else the first: a copy does not replace its original, not
    even while that cannot be used. Names that begin with `.` are those of editors and file systems.
    """
    found = {file: _loaded(file) for file in sorted(folder.glob("*.toml")) if not file.name.startswith(".")}
    named: dict[str, Path] = {}
    for file, one in found.items():
        name = one.name if isinstance(one, Definition) else _name_in(file)
        if name and (name not in named or file.stem == name):
            named[name] = file
    taken = {f"windows_{name}" for name, file in named.items() if isinstance(found[file], Definition)}
    for file, one in found.items():
        if isinstance(one, str):
            yield BrokenPipelines(_dag_id(file, taken), one)
        elif (other := named[one.name]) != file:
            already = f"{file}: name: {one.name} is the name of {other} already; choose another"
            yield BrokenPipelines(_dag_id(file, taken), already)
        else:
            yield one


def _loaded(file: Path) -> Definition | str:
    """The definition in a file, or why there is none."""
    try:
        return load_definition(file)
    except Exception as error:  # anything at all: the other pipelines must go on
        return str(error) or f"{file}: {type(error).__name__}"


def _name_in(file: Path) -> str | None:
    """The name that a file which cannot be used says it has, before its first section; None where none can be read."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    head, *_ = re.split(r"^[ \t]*\[", text, maxsplit=1, flags=re.MULTILINE)
    found = re.search(r"""^[ \t]*["']?name["']?[ \t]*=[ \t]*["']?(\w+)""", head, re.MULTILINE)
    return found[1] if found else None


def _dag_id(file: Path, taken: set[str]) -> str:
    """An id for the DAG in the place of a file's, of characters that Airflow takes; no other DAG has it."""
    wanted = "windows_" + re.sub(r"[^A-Za-z0-9_.-]", "_", file.stem)[:DAG_ID_CHARACTERS]
    numbered = (f"{wanted}_{number}" for number in count(2))
    free = next(one for one in (wanted, *islice(numbered, len(taken) + 1)) if one not in taken)
    taken.add(free)
    return free


def dag_groups(folder: Path) -> Iterator[list[Definition] | BrokenPipelines]:
    """What is to become a DAG each: one pipeline, the pipelines of one `airflow.together`, or a broken definition."""
    together: dict[str, list[Definition]] = {}
    for found in definitions(folder):
        match found:
            case BrokenPipelines():
                yield found
            case Definition() if mistake := schedule_mistake(found):
                yield BrokenPipelines(f"windows_{found.name}", mistake)
            case Definition(airflow=airflow) if airflow.together:
                together.setdefault(airflow.together, []).append(found)
            case Definition():
                yield [found]
    for name, members in together.items():
        try:
            check_together(members)
            check_one_schedule(members)
        except WindowError as error:
            yield BrokenPipelines(f"together_{name}", str(error))
        else:
            yield members


def cannot_be_made(group: Sequence[Definition] | BrokenPipelines, error: Exception) -> BrokenPipelines:
    """What stands in the place of a DAG that could not be made of its definitions."""
    if isinstance(group, BrokenPipelines):
        raise error
    return BrokenPipelines(dag_id(group[0]), f"{group[0].file}: {type(error).__name__}: {error}")


def dag_id(definition: Definition) -> str:
    """The DAG that runs a pipeline."""
    together = definition.airflow.together
    return f"together_{together}" if together else f"windows_{definition.name}"


def files_for_reruns(folder: Path) -> dict[str, str]:
    """By name, the definitions whose windows can be rerun."""
    return {
        found.name: str(found.file)
        for found in definitions(folder)
        if isinstance(found, Definition) and found.never_rerun is None
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
    first, owners = members[0], dict.fromkeys(one.owner for one in members if one.owner)
    tags = [*(one.window.type for one in members), *(tag for one in members for tag in one.tags)]
    about = [f"{one.name}: {one.description}" if len(members) > 1 else one.description for one in members]
    owner = {"owner": ", ".join(owners)} if owners else {}
    return {
        "catchup": False,
        "max_active_runs": 1,
        "deadline": list(deadlines(members)) or None,
        "description": "; ".join(one for one, of in zip(about, members, strict=True) if of.description) or None,
        "tags": list(dict.fromkeys(["windowlib", *tags])),
        "default_args": {
            "pool": LIGHT.name,
            "execution_timeout": LIGHT_TIMEOUT,
            **BY_WEIGHT,
            **owner,
            **retries(first.airflow),
        },
    }


def engine_task(definition: Definition) -> dict[str, Any]:
    """What the tasks have in common that compute: a pool by engine, and no end but that of `batch_timeout`."""
    return {"pool": pool_of(definition.engine_place).name, "execution_timeout": None, **retries(definition.airflow)}


def retries(settings: Airflow) -> dict[str, Any]:
    """How often, and when, a task is tried again."""
    delay = timedelta(milliseconds=settings.retry_delay_ms)
    return {"retries": settings.retries, "retry_delay": delay}


def results_asset(name: str, root: Path) -> Asset:
    """What other DAGs may be scheduled by: the results, with the run's figures in the event's extra."""
    return Asset(name=f"windowlib_{name}_results", uri=(root / "results").as_uri())
