"""Rules for definitions that run together: common settings, and sharing of slices."""

from __future__ import annotations

from collections.abc import Sequence

from windowlib.definition.definition import Definition
from windowlib.model.errors import InvalidSpec
from windowlib.model.geometry import geometry_of


def check_together(definitions: Sequence[Definition]) -> None:
    """Raises `InvalidSpec` unless the definitions are different pipelines with the same engine and Spark settings."""
    first, files = definitions[0], {definitions[0].store: definitions[0].file}
    for other in definitions[1:]:
        if other.store in files:
            raise InvalidSpec(
                f"{files[other.store]} and {other.file} are the same pipeline, {other.name}; name it once"
            )
        files[other.store] = other.file
        if (other.engine, other.spark) != (first.engine, first.spark):
            raise InvalidSpec(
                f"{first.file} and {other.file} differ in engine or [spark], but pipelines that run together share one"
                " session. Make them equal, or run them separately"
            )


def check_one_dag(definitions: Sequence[Definition]) -> None:
    """Raises `InvalidSpec` unless all definitions have the same schedule and connection."""
    first = definitions[0]
    for other in definitions[1:]:
        if other.airflow.connection != first.airflow.connection:
            raise InvalidSpec(
                f'{other.file}: airflow.connection: given "{other.airflow.connection}", but {first.file} has'
                f' "{first.airflow.connection}". Both run together ("{other.airflow.together}"): make them equal'
            )
        if other.airflow.schedule != first.airflow.schedule:
            raise InvalidSpec(
                f'{other.file}: airflow.schedule: given "{other.airflow.schedule}", but {first.file} has'
                f' "{first.airflow.schedule}". Both run together ("{other.airflow.together}"): make them equal'
            )


def sharing_refusal(definition: Definition) -> str | None:
    """Reason why batches of a definition cannot share slices with other definitions; None if they can."""
    geometry = geometry_of(definition.spec.assigner)
    if not definition.plan.shares_slices:
        return "its windows are not made of slices of time"
    if not geometry.by_time:
        return "each event brings its own gap"
    if geometry.calendar is not None:
        return "its windows follow a calendar, so its slices fit no other windows"
    if geometry.has_holes is not False:
        return "an event may fall between two windows, which only this definition can decide"
    if definition.source.event_id:
        return f"which events are duplicates by {definition.source.event_id} depends on what this pipeline has read"
    if definition.aggregates.needs_arrival:
        return "first and last depend on the order of arrival"
    return None
