"""A pipeline defined in Python with the classes of the window model, equivalent to a TOML file.

    from windowlib.runs.advance import advance
    from windowlib.definition.define import define
    from windowlib.engines.spark import session
    from windowlib import CountTrigger, Session

    visits = define(
        "visits",
        source={"format": "parquet", "path": "incoming", "key": ["user"], "timestamp": "at"},
        watermark={"out_of_orderness": "5m"},
        assigner=Session(gap_ms=30 * 60_000),
        trigger=CountTrigger(3),
        aggregates={"events": "count(*)", "total": "sum(price)"},
    )
    advance(visits, session)

The command line and Airflow need TOML files. Run, read and manage a pipeline without TOML file from Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from windowlib.definition.definition import Definition, definition_of
from windowlib.definition.kinds import ANOTHER, Kind
from windowlib.definition.mistakes import in_toml
from windowlib.definition.registry import EVICTORS, TRIGGERS, WINDOWS
from windowlib.model.aggregates import Aggregate
from windowlib.model.assigners import Assigner, CalendarCumulating, CalendarWindows, DynamicSession, Staggered
from windowlib.model.calendar import Calendar, CalendarLength
from windowlib.model.errors import InvalidSpec
from windowlib.model.evictors import Evictor
from windowlib.model.functions import ProcessFunction
from windowlib.model.triggers import Trigger

Toml = dict[str, Any]


def define(
    name: str,
    *,
    source: Mapping[str, Any],
    watermark: Mapping[str, Any],
    assigner: Assigner,
    trigger: Trigger | None = None,
    evictor: Evictor | None = None,
    allowed_lateness_ms: int = 0,
    time: Literal["event", "processing"] = "event",
    aggregates: Mapping[str, str] | None = None,
    function: ProcessFunction | Aggregate | None = None,
    reads: Sequence[str] = (),
    output: Mapping[str, str] | None = None,
    folder: Path | str = ".",
    **sections: Any,
) -> Definition:
    """Builds a definition; raises `InvalidDefinition` with every mistake in it.

    ``assigner``, ``trigger``, ``evictor``, ``allowed_lateness_ms`` and ``time`` mean the same as in
    `windowlib.WindowSpec`. Other arguments are as in TOML: sections by name (``storage``, ``checks``, ``spark``), and
    ``aggregates`` in SQL. A ``function`` of your own replaces the SQL; it needs the columns that it ``reads`` and its
    ``output`` columns. Spark's workers recreate objects of your own classes from class and fields. Paths are relative
    to ``folder``.
    """
    window = _assigner(assigner) | {"time": time, "allowed_lateness": f"{allowed_lateness_ms}ms", "reads": list(reads)}
    if trigger is not None:
        window["trigger"] = _section(trigger, TRIGGERS)
    if evictor is not None:
        window["evictor"] = _section(evictor, EVICTORS)
    if function is not None:
        window |= {"function": _reference(function), "parameters": _made_with(function), "output": dict(output or {})}
    contents = {"source": dict(source), "watermark": dict(watermark), "window": _without_defaults(window)}
    if aggregates:
        contents["aggregates"] = dict(aggregates)
    return definition_of({"name": name, **contents, **sections}, Path(folder) / f"{name} (in Python)")


def _assigner(assigner: Assigner) -> Toml:
    match assigner:
        case DynamicSession():
            return {"type": "session", "gap_column": assigner.gap_column}
        case Staggered(of=windows):
            return _section(windows, WINDOWS) | {"stagger": True}
        case CalendarWindows(calendar=calendar, intervals=1):
            return {"type": "tumbling", "every": str(calendar.every)} | _of_calendar(calendar)
        case CalendarWindows(calendar=calendar, intervals=intervals):
            size = CalendarLength(intervals * calendar.every.count, calendar.every.unit)
            return {"type": "sliding", "size": str(size), "every": str(calendar.every)} | _of_calendar(calendar)
        case CalendarCumulating(whole=whole, step=step):
            return {"type": "cumulating", "max_size": str(whole.every), "step": str(step.every)} | _of_calendar(whole)
    return _section(assigner, WINDOWS)


def _of_calendar(calendar: Calendar) -> Toml:
    """Keys of a calendar that differ from their defaults, and its zone."""
    hours, minutes = divmod(calendar.starts_at_ms // 60_000, 60)
    keys: Toml = {"time_zone": calendar.time_zone, "starts_at": f"{hours:02}:{minutes:02}"}
    keys |= {"week_starts": calendar.week_starts, "year_starts": calendar.year_starts}
    defaults = {"starts_at": "00:00", "week_starts": "monday", "year_starts": "january"}
    return {key: value for key, value in keys.items() if value != defaults.get(key)}


def _section(part: Any, registry: Mapping[str, Kind]) -> Toml:
    """Converts an assigner, trigger or evictor to its section: type and fields, or "custom" with class and fields."""
    kind = next((kind for kind in registry.values() if kind.model is type(part)), registry["custom"])
    if kind.model is None:
        class_key, parameters_key = map(kind.key, kind.parameters)
        return {"type": kind.name, class_key: _reference(part), parameters_key: _made_with(part)}
    section: Toml = {"type": kind.name}
    for name, value in _parameters(part).items():
        is_trigger = kind.parameters[name].type == ANOTHER
        as_text = f"{value}ms" if name.endswith("_ms") else value
        section[kind.key(name)] = _section(value, registry) if is_trigger else as_text
    return section


def _reference(part: Any) -> str:
    return f"{type(part).__module__}:{type(part).__qualname__}"


def _parameters(part: Any) -> Toml:
    """Parameters of an object: the fields of a dataclass, or the attributes of another object."""
    if is_dataclass(part):
        return {field.name: getattr(part, field.name) for field in fields(part) if field.init}
    slots = [name for kind in type(part).__mro__ for name in _slots(kind) if hasattr(part, name)]
    return {name: getattr(part, name) for name in slots} | getattr(part, "__dict__", {})


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    return [slots] if isinstance(slots, str) else list(slots)


def _made_with(part: Any) -> Toml:
    """Parameters of a user's object.

    Raises InvalidSpec if an object that its class creates from these parameters has different parameters.
    """
    parameters = _parameters(part)
    try:
        again = _parameters(type(part)(**parameters))
    except Exception:  # reported when the definition creates the object
        return parameters
    if again != parameters:
        raise InvalidSpec(
            f"{_reference(part)} cannot be recreated from its attributes {in_toml(parameters)}: the copy has"
            f" {in_toml(again)}. Store each parameter in an attribute of the same name"
        )
    return parameters


def _without_defaults(window: Toml) -> Toml:
    """Removes keys with default values, because a definition refuses some keys that have no effect."""
    empty = {"time": "event", "allowed_lateness": "0ms", "reads": [], "parameters": {}, "assigner_parameters": {}}
    return {key: value for key, value in window.items() if key not in empty or value != empty[key]}
