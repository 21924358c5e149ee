"""A pipeline defined in Python, with the names that the core has: the same definition as a TOML file gives.

    from jobs.advance import advance
    from jobs.define import define
    from jobs.spark import session
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

from jobs.definition import Definition, definition_of
from windowlib import assigners, evictors, timed_triggers, triggers
from windowlib.aggregates import Aggregate
from windowlib.assigners import Assigner
from windowlib.evictors import Evictor
from windowlib.functions import ProcessFunction
from windowlib.triggers import Trigger

Toml = dict[str, Any]

TYPES: Mapping[type[Any], str] = {
    assigners.Tumbling: "tumbling",
    assigners.Sliding: "sliding",
    assigners.Session: "session",
    assigners.Global: "global",
    triggers.EventTimeTrigger: "event_time",
    triggers.ProcessingTimeTrigger: "processing_time",
    triggers.CountTrigger: "count",
    triggers.DeltaTrigger: "delta",
    triggers.PurgingTrigger: "purging",
    triggers.NeverTrigger: "never",
    triggers.EndOfStreamTrigger: "end_of_stream",
    timed_triggers.ContinuousEventTimeTrigger: "continuous_event_time",
    timed_triggers.ContinuousProcessingTimeTrigger: "continuous_processing_time",
    timed_triggers.ProcessingTimeoutTrigger: "processing_timeout",
    evictors.CountEvictor: "count",
    evictors.TimeEvictor: "time",
    evictors.DeltaEvictor: "delta",
}
"""The `type` of a section for each class whose fields are the section's keys."""


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
    an own ``function`` with the columns it ``reads`` and its ``output`` columns. Objects of one's own are made anew
    from their class and its fields where they are needed. Paths are relative to ``folder``.
    """
    window = _assigner(assigner) | {"time": time, "allowed_lateness": f"{allowed_lateness_ms}ms", "reads": list(reads)}
    if trigger is not None:
        window["trigger"] = _section(trigger, "class")
    if evictor is not None:
        window["evictor"] = _section(evictor, "class")
    if function is not None:
        window |= {"function": _reference(function), "parameters": _parameters(function), "output": dict(output or {})}
    given = {"source": dict(source), "watermark": dict(watermark), "window": _without_defaults(window)}
    if aggregates:
        given["aggregates"] = dict(aggregates)
    return definition_of({"name": name, **given, **sections}, Path(folder) / f"{name} (in Python)")


def _assigner(assigner: Assigner) -> Toml:
    match assigner:
        case assigners.DynamicSession():
            return {"type": "session", "gap_column": assigner.gap_column}
        case assigners.Staggered(of=of):
            return _section(of, "assigner") | {"stagger": True}
    return _section(assigner, "assigner")


def _section(one: Any, own_key: str) -> Toml:
    """The section that stands for an object: its type and fields, or "custom" and its class."""
    if (kind := TYPES.get(type(one))) is None:
        parameters = "assigner_parameters" if own_key == "assigner" else "parameters"
        return {"type": "custom", own_key: _reference(one), parameters: _parameters(one)}
    section: Toml = {"type": kind}
    for key, value in _parameters(one).items():
        if key == "of" and kind in ("purging", "processing_timeout"):
            section[key] = _section(value, own_key)
        elif key.endswith("_ms"):
            section[key.removesuffix("_ms")] = f"{value}ms"
        else:
            section[key] = value
    return section


def _reference(one: Any) -> str:
    return f"{type(one).__module__}:{type(one).__qualname__}"


def _parameters(one: Any) -> Toml:
    """What an object is made with: the fields of a dataclass, else its attributes."""
    if is_dataclass(one):
        return {field.name: getattr(one, field.name) for field in fields(one) if field.init}
    return dict(getattr(one, "__dict__", {}))


def _without_defaults(window: Toml) -> Toml:
    """What a definition would refuse as without effect where nobody asked for it."""
    empty = {"time": "event", "allowed_lateness": "0ms", "reads": [], "parameters": {}, "assigner_parameters": {}}
    return {key: value for key, value in window.items() if key not in empty or value != empty[key]}
