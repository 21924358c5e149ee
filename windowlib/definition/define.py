"""A pipeline defined in Python, with the names that the core has: the same definition as a TOML file gives.

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

The command line and Airflow read TOML files; such a pipeline is run, read and decided about from Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from windowlib.definition.definition import Definition, definition_of
from windowlib.definition.kinds import ANOTHER, Kind
from windowlib.definition.mistakes import given
from windowlib.definition.registry import EVICTORS, TRIGGERS, WINDOWS
from windowlib.model.aggregates import Aggregate
from windowlib.model.assigners import Assigner, DynamicSession, Staggered
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
    """A definition; raises `InvalidDefinition` with every mistake in it.

    ``assigner``, ``trigger``, ``evictor``, ``allowed_lateness_ms`` and ``time`` are those of `windowlib.WindowSpec`.
    All else is as in TOML: the other sections by name (``storage``, ``checks``, ``spark``), ``aggregates`` in SQL, or
    an own ``function`` with the columns it ``reads`` and its ``output`` columns. Objects of your own are made again
    from their class and its fields where they are needed. Paths are relative to ``folder``.
    """
    window = _assigner(assigner) | {"time": time, "allowed_lateness": f"{allowed_lateness_ms}ms", "reads": list(reads)}
    if trigger is not None:
        window["trigger"] = _section(trigger, TRIGGERS)
    if evictor is not None:
        window["evictor"] = _section(evictor, EVICTORS)
    if function is not None:
        window |= {"function": _reference(function), "parameters": _made_with(function), "output": dict(output or {})}
    said = {"source": dict(source), "watermark": dict(watermark), "window": _without_defaults(window)}
    if aggregates:
        said["aggregates"] = dict(aggregates)
    return definition_of({"name": name, **said, **sections}, Path(folder) / f"{name} (in Python)")


def _assigner(assigner: Assigner) -> Toml:
    match assigner:
        case DynamicSession():
            return {"type": "session", "gap_column": assigner.gap_column}
        case Staggered(of=of):
            return _section(of, WINDOWS) | {"stagger": True}
    return _section(assigner, WINDOWS)


def _section(one: Any, known: Mapping[str, Kind]) -> Toml:
    """The section that stands for an object: its type and fields, or "custom" with its class and fields."""
    kind = next((kind for kind in known.values() if kind.model is type(one)), known["custom"])
    if kind.model is None:
        named, made_with = map(kind.key, kind.parameters)
        return {"type": kind.name, named: _reference(one), made_with: _made_with(one)}
    section: Toml = {"type": kind.name}
    for name, value in _parameters(one).items():
        is_trigger = kind.parameters[name].type == ANOTHER
        as_text = f"{value}ms" if name.endswith("_ms") else value
        section[kind.key(name)] = _section(value, known) if is_trigger else as_text
    return section


def _reference(one: Any) -> str:
    return f"{type(one).__module__}:{type(one).__qualname__}"


def _parameters(one: Any) -> Toml:
    """What an object is made with: the fields of a dataclass, else its attributes."""
    if is_dataclass(one):
        return {field.name: getattr(one, field.name) for field in fields(one) if field.init}
    slots = [name for kind in type(one).__mro__ for name in _slots(kind) if hasattr(one, name)]
    return {name: getattr(one, name) for name in slots} | getattr(one, "__dict__", {})


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    return [slots] if isinstance(slots, str) else list(slots)


def _made_with(one: Any) -> Toml:
    """The parameters of an object of the user's; raises InvalidSpec where its class makes another object of them."""
    parameters = _parameters(one)
    try:
        again = _parameters(type(one)(**parameters))
    except Exception:  # said where the definition makes it
        return parameters
    if again != parameters:
        raise InvalidSpec(
            f"{_reference(one)} made again from what it holds, {given(parameters)}, holds {given(again)}; let it keep"
            " what it is made with under the names of its parameters"
        )
    return parameters


def _without_defaults(window: Toml) -> Toml:
    """The section without what has no effect: a definition refuses some keys where they mean nothing."""
    empty = {"time": "event", "allowed_lateness": "0ms", "reads": [], "parameters": {}, "assigner_parameters": {}}
    return {key: value for key, value in window.items() if key not in empty or value != empty[key]}
