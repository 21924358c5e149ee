"""Entries: everything that the gallery shows, written as a user would write it, in TOML.

A *plate* is one picture; its *rows* lie below one another, so that their firings can be compared. What a row shows is
the table `[window]`, as a dictionary; `scenario` turns it into a scenario of `windowlib.replay.scenarios`.

Every trigger of `windowlib.definition.registry` has its row in ``TRIGGER_TABLES``: a new one needs a line there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NoReturn

from pydantic import TypeAdapter

from docs.gallery.story import MINUTE_MS, STORY, scenario_steps
from windowlib.definition.kinds import Kind
from windowlib.definition.registry import EVICTORS, TRIGGERS, WINDOWS
from windowlib.definition.spec import parts_of
from windowlib.definition.toml.durations import parse_duration
from windowlib.definition.toml.windows import AnyWindow
from windowlib.model.assigners import DynamicSession
from windowlib.replay.scenarios import Json

Toml = Mapping[str, Any]

WINDOW_TABLES: Mapping[str, Toml] = {
    "tumbling": {"type": "tumbling", "size": "10m"},
    "sliding": {"type": "sliding", "size": "10m", "slide": "5m"},
    "cumulating": {"type": "cumulating", "max_size": "15m", "step": "5m"},
    "session": {"type": "session", "gap": "4m"},
    "dynamic_session": {"type": "session", "gap_column": "gap_ms"},
    "global": {"type": "global"},
}
"""The window of each picture that shows every trigger."""

COUNT: Toml = {"type": "count", "n": 2}
TRIGGER_TABLES: Mapping[str, Toml] = {
    "event_time": {"type": "event_time"},
    "processing_time": {"type": "processing_time"},
    "count": COUNT,
    "continuous_event_time": {"type": "continuous_event_time", "interval": "5m"},
    "continuous_processing_time": {"type": "continuous_processing_time", "interval": "5m"},
    "delta": {"type": "delta", "of": "value", "threshold": 3},
    "purging": {"type": "purging", "of": COUNT},
    "processing_timeout": {"type": "processing_timeout", "of": COUNT, "timeout": "5m"},
    "never": {"type": "never"},
    "end_of_stream": {"type": "end_of_stream"},
}
"""The row of each trigger."""


@dataclass(frozen=True, slots=True)
class Row:
    """One entry: its name, what to say below it, line by line, and the table `[window]` that chooses it.

    The input of an entry that fires twice with everything, once time ends, does not end: the flags have no room.
    """

    name: str
    says: tuple[str, ...]
    window: Toml
    ends: bool = True


@dataclass(frozen=True, slots=True)
class Plate:
    """One picture and its rows; ``gaps`` says how many minutes each element keeps a session open."""

    name: str
    title: str
    rows: tuple[Row, ...]
    gaps: Mapping[str, int] = field(default_factory=dict)


def _triggers_of(assigner: str) -> tuple[Row, ...]:
    rows = []
    for trigger, table in TRIGGER_TABLES.items():
        ends = (assigner, trigger) != ("global", "continuous_event_time")
        says = (*_says(table), *(() if ends else ("the input goes on",)))
        rows.append(Row(trigger, says, {**WINDOW_TABLES[assigner], "trigger": table}, ends))
    return tuple(rows)


def _says(table: Toml) -> tuple[str, ...]:
    """
    >>> _says({"type": "processing_timeout", "of": {"type": "count", "n": 2}, "timeout": "5m"})
    ('of count, n = 2', 'timeout = 5m')
    """
    of = [f"of {', '.join([value['type'], *_says(value)])}" for value in table.values() if isinstance(value, dict)]
    return (*of, *(f"{name} = {value}" for name, value in table.items() if name not in ("type", "of")))


TITLES = {
    "tumbling": "Tumbling windows of 10 minutes, with every trigger",
    "sliding": "Sliding windows of 10 minutes, every 5 minutes, with every trigger",
    "cumulating": "Cumulating windows up to 15 minutes, every 5 minutes, with every trigger",
    "session": "Sessions with a gap of 4 minutes, with every trigger",
    "dynamic_session": "Sessions to which every element brings its own gap, with every trigger",
    "global": "The global window, with every trigger",
}
GAPS = {
    "session": {one.id: parse_duration(WINDOW_TABLES["session"]["gap"]) // MINUTE_MS for one in STORY},
    "dynamic_session": {one.id: one.gap for one in STORY},
}
ASSIGNER_PLATES = tuple(
    Plate(assigner, TITLES[assigner], _triggers_of(assigner), GAPS.get(assigner, {})) for assigner in WINDOW_TABLES
)

_COUNTS = Plate(
    "counts",
    "Count windows: so many elements, whatever their times",
    (
        Row("tumbling_count", ("size = 3",), {"type": "tumbling_count", "size": 3}),
        Row("sliding_count", ("size = 4, slide = 2",), {"type": "sliding_count", "size": 4, "slide": 2}),
    ),
)
_PROCESSING = Plate(
    "processing",
    'Windows of processing time: time = "processing"',
    tuple(
        Row(name, says, {**WINDOW_TABLES.get(name, {}), **own, "time": "processing"})
        for name, says, own in (
            ("tumbling", ("size = 10m",), {}),
            ("sliding", ("size = 10m, slide = 5m",), {}),
            ("session", ("gap = 3m",), {"gap": "3m"}),
        )
    ),
)


def _evicting(name: str, **evictor: Any) -> Row:
    window = {"type": "global", "trigger": COUNT, "evictor": {"type": name, **evictor}}
    others = ", ".join(f"{key} = {value}" for key, value in evictor.items() if key not in ("of", "after"))
    return Row(f"{name}, {'after' if evictor['after'] else 'before'}", (others,), window)


_EVICTORS = Plate(
    "evictors",
    "Evictors over the global window, fired by every second element",
    (
        Row("no evictor", (), {"type": "global", "trigger": COUNT}),
        _evicting("count", n=3, after=False),
        _evicting("count", n=3, after=True),
        _evicting("time", keep="10m", after=False),
        _evicting("time", keep="10m", after=True),
        _evicting("delta", of="value", threshold=5, after=False),
        _evicting("delta", of="value", threshold=5, after=True),
    ),
)


def _kept(window: str, lateness: str, *says: str, **more: Any) -> Row:
    return Row(
        window,
        (f"allowed_lateness = {lateness}", *says),
        {**WINDOW_TABLES[window], "allowed_lateness": lateness, **more},
    )


_LATENESS = Plate(
    "lateness",
    "Allowed lateness: how long past its end a window is kept",
    (
        _kept("tumbling", "0s"),
        _kept("tumbling", "2m"),
        _kept("tumbling", "5m"),
        _kept("tumbling", "5m", "purging event_time", trigger={"type": "purging", "of": {"type": "event_time"}}),
        _kept("session", "0s"),
        _kept("session", "5m"),
    ),
)


def _in_kathmandu(name: str, **lengths: str) -> Row:
    says = tuple(f"{key} = {value}" for key, value in lengths.items())
    return Row(name, says, {"type": name, **lengths, "time_zone": "Asia/Kathmandu"})


_CALENDAR = Plate(
    "calendar",
    "Calendar windows in Kathmandu, where the clock shows 15:00 at 09:15 UTC",
    (
        _in_kathmandu("tumbling", every="1 hour"),
        _in_kathmandu("sliding", size="1 hour", every="30 minutes"),
        _in_kathmandu("cumulating", max_size="1 hour", step="15 minutes"),
    ),
)
STORY_PLATE = Plate("story", "Ten elements: when they happen, when they arrive, and the watermark", ())
OTHER_PLATES = (_CALENDAR, _COUNTS, _PROCESSING, _EVICTORS, _LATENESS)
PLATES = (STORY_PLATE, *ASSIGNER_PLATES, *OTHER_PLATES)


def scenario(row: Row) -> Json:
    """The table `[window]` of a row with the story, as a scenario of `windowlib.replay.scenarios`.

    >>> planned = scenario(Row("three", (), {"type": "tumbling_count", "size": 3}))
    >>> planned["assigner"], planned["trigger"]
    ({'type': 'global', 'end_of_stream': False}, {'type': 'purging', 'of': {'type': 'count', 'n': 3}})
    """
    window = TypeAdapter(AnyWindow).validate_python(row.window)
    parts = parts_of(window, _no_code)
    of_calendar = "time_zone" in row.window  # a scenario gives such windows as a definition does
    return {
        "assigner": row.window if of_calendar else _named(parts.assigner, WINDOWS),
        "trigger": parts.trigger and _named(parts.trigger, TRIGGERS),
        "evictor": parts.evictor and _named(parts.evictor, EVICTORS),
        "allowed_lateness_ms": window.allowed_lateness_ms,
        "time": window.time,
        "function": "collect",
        "steps": scenario_steps(row.ends),
    }


def _named(one: Any, known: Mapping[str, Kind]) -> Json:
    """The table that names an object of the window model in a scenario."""
    if isinstance(one, DynamicSession):
        return {"type": "dynamic_session"}
    [name] = [name for name, kind in known.items() if kind.model is type(one)]
    values = {field.name: getattr(one, field.name) for field in fields(one)}
    return {
        "type": name,
        **{key: _named(value, known) if is_dataclass(value) else value for key, value in values.items()},
    }


def _no_code(role: str, reference: str, parameters: Toml) -> NoReturn:
    raise AssertionError(f"the gallery has no code of its own, got {reference}")


def inline(value: Any) -> str:
    """A value as TOML, on one line.

    >>> inline({"type": "purging", "of": {"type": "count", "n": 2}})
    '{ type = "purging", of = { type = "count", n = 2 } }'
    """
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{name} = {inline(part)}' for name, part in value.items())} }}"
    return json.dumps(value)
