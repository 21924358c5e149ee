"""Entries: everything that the gallery shows, written as a user would write it, in TOML.

A *plate* is one picture; its *rows* lie below one another, so that their firings can be compared. What a row shows is
the table `[window]`, as a dictionary; `scenario` turns it into a scenario of `jobs.replay`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.durations import parse_duration
from jobs.gallery.story import MINUTE_MS, STORY, scenario_steps
from jobs.replay import ASSIGNERS, TRIGGERS, Json

Toml = Mapping[str, Any]

WINDOWS: Mapping[str, Toml] = {
    "tumbling": {"type": "tumbling", "size": "10m"},
    "sliding": {"type": "sliding", "size": "10m", "slide": "5m"},
    "session": {"type": "session", "gap": "4m"},
    "dynamic_session": {"type": "session", "gap_column": "gap_ms"},
    "global": {"type": "global"},
}
"""The window of each assigner of `jobs.replay`."""

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
"""The trigger of each kind of `jobs.replay`."""


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
    for trigger in TRIGGERS:
        table = TRIGGER_TABLES[trigger]
        ends = (assigner, trigger) != ("global", "continuous_event_time")
        says = (*_says(table), *(() if ends else ("the input goes on",)))
        rows.append(Row(trigger, says, {**WINDOWS[assigner], "trigger": table}, ends))
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
    "session": "Sessions with a gap of 4 minutes, with every trigger",
    "dynamic_session": "Sessions to which every element brings its own gap, with every trigger",
    "global": "The global window, with every trigger",
}
GAPS = {
    "session": {one.id: parse_duration(WINDOWS["session"]["gap"]) // MINUTE_MS for one in STORY},
    "dynamic_session": {one.id: one.gap for one in STORY},
}
ASSIGNER_PLATES = tuple(
    Plate(assigner, TITLES[assigner], _triggers_of(assigner), GAPS.get(assigner, {})) for assigner in ASSIGNERS
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
        Row(name, says, {**WINDOWS.get(name, {}), **own, "time": "processing"})
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
        window, (f"allowed_lateness = {lateness}", *says), {**WINDOWS[window], "allowed_lateness": lateness, **more}
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
STORY_PLATE = Plate("story", "Ten elements: when they happen, when they arrive, and the watermark", ())
OTHER_PLATES = (_COUNTS, _PROCESSING, _EVICTORS, _LATENESS)
PLATES = (STORY_PLATE, *ASSIGNER_PLATES, *OTHER_PLATES)


def scenario(row: Row) -> Json:
    """The table `[window]` of a row with the story, as a scenario of `jobs.replay`.

    >>> planned = scenario(Row("three", (), {"type": "tumbling_count", "size": 3}))
    >>> planned["assigner"], planned["trigger"]
    ({'type': 'global'}, {'type': 'purging', 'of': {'type': 'count', 'n': 3}})
    """
    parts = _in_ms(row.window)
    of_the_scenario = {"trigger", "evictor", "allowed_lateness_ms", "time"}
    assigner = {name: value for name, value in parts.items() if name not in of_the_scenario}
    given = {name: value for name, value in parts.items() if name in of_the_scenario}
    match assigner:
        case {"type": "tumbling_count", "size": n}:
            assigner, given["trigger"] = {"type": "global"}, {"type": "purging", "of": {"type": "count", "n": n}}
        case {"type": "sliding_count", "size": size, "slide": slide}:
            assigner, given["trigger"] = {"type": "global"}, {"type": "count", "n": slide}
            given["evictor"] = {"type": "count", "n": size}
        case {"type": "session", "gap_column": "gap_ms"}:
            assigner = {"type": "dynamic_session"}
    return {"assigner": assigner, **given, "function": "collect", "steps": scenario_steps(row.ends)}


def _in_ms(table: Toml) -> Json:
    """Durations in milliseconds; the column of a delta is the story's only one, which `jobs.replay` knows."""
    found: Json = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            found[name] = _in_ms(value)
        elif name in ("size", "slide", "offset", "gap", "interval", "timeout", "keep", "allowed_lateness"):
            found.update({f"{name}_ms": parse_duration(value)} if isinstance(value, str) else {name: value})
        elif (name, value) != ("of", "value"):
            found[name] = value
    return found


def inline(value: Any) -> str:
    """A value as TOML, on one line.

    >>> inline({"type": "purging", "of": {"type": "count", "n": 2}})
    '{ type = "purging", of = { type = "count", n = 2 } }'
    """
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{name} = {inline(part)}' for name, part in value.items())} }}"
    return json.dumps(value)
