"""Replay of window scenarios. `replay` runs a scenario through an engine step by step and returns plain dictionaries.

A *scenario* in JSON has a specification, with the type names of the registry and the parameters of the model
(`{"type": "tumbling", "size_ms": 10}`). Each step feeds the engine an element, a watermark or a processing time, or
saves and restores the engine's state. Any ``StepEngine`` can process the steps; the reference is the operator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from windowlib.definition.calendar_windows import CALENDAR_WINDOWS
from windowlib.definition.kinds import ANOTHER, Kind
from windowlib.definition.registry import EVICTORS, TRIGGERS, WINDOWS
from windowlib.definition.toml.calendars import parse_length
from windowlib.definition.toml.fields import Column
from windowlib.model.aggregates import Aggregate, Count, Max, Min, Reduce, Sum
from windowlib.model.assigners import Assigner
from windowlib.model.elements import Element, Firing, Input, Late, ProcessingTime, Watermark
from windowlib.model.errors import InvalidSpec, WindowError
from windowlib.model.evictors import Evictor
from windowlib.model.functions import ProcessContext, ProcessFunction
from windowlib.model.operator import step
from windowlib.model.spec import WindowSpec
from windowlib.model.state import OperatorState, restore
from windowlib.model.triggers import Trigger
from windowlib.model.watermark import MAX_WATERMARK, MIN_WATERMARK
from windowlib.model.windows import GLOBAL_WINDOW, TimeWindow

Json = dict[str, Any]


class StepEngine(Protocol):
    """Engine that processes the steps of a scenario, one at a time."""

    def feed(self, event: Input) -> tuple[list[Json], list[str]]:
        """Processes an input. Returns the emitted rows and the ids of late elements."""

    def restart(self) -> None:
        """Saves and restores the state. The processing time survives, the watermark does not."""

    @property
    def watermark_ms(self) -> int:
        """Current watermark in ms."""

    @property
    def in_flight(self) -> list[tuple[Any, TimeWindow]]:
        """All pairs (key, window) in flight, sorted."""


class OperatorSteps:
    """Reference engine: the operator, in memory."""

    def __init__(self, spec: WindowSpec) -> None:
        self.spec, self.state = spec, OperatorState()

    def feed(self, event: Input) -> tuple[list[Json], list[str]]:
        outputs = step(self.spec, self.state, event)
        late = [output.element.value["id"] for output in outputs if isinstance(output, Late)]
        return [_emitted(output) for output in outputs if isinstance(output, Firing)], late

    def restart(self) -> None:
        before, self.state = self.state, restore(json.loads(json.dumps(self.state.rows())))
        self.state.processing_time_ms = before.processing_time_ms

    @property
    def watermark_ms(self) -> int:
        return self.state.watermark_ms

    @property
    def in_flight(self) -> list[tuple[Any, TimeWindow]]:
        return self.state.in_flight


def replay(scenario: Mapping[str, Any], engine: Callable[[WindowSpec], StepEngine] = OperatorSteps) -> Json:
    """Runs a scenario. Returns its ``steps``, each with ``emitted`` rows, ``late`` ids and windows ``in_flight``.

    If the specification is refused, the result has a message ``error`` instead of steps. If an input is refused, its
    step has a message ``error``, and the replay ends. ``engine`` creates an engine for a specification.
    """
    name = {"name": scenario["name"]} if "name" in scenario else {}
    try:
        running = engine(spec_of(scenario))
    except WindowError as error:
        return {**name, "error": str(error)}
    steps: list[Json] = []
    for arrival, planned in enumerate(scenario["steps"]):
        try:
            steps.append(_step(running, planned, arrival, side_output=scenario.get("side_output") is not False))
        except WindowError as error:
            steps.append({"emitted": [], "late": [], "error": str(error)})
            break
    return {**name, "steps": steps}


def _step(engine: StepEngine, planned: Mapping[str, Any], arrival: int, *, side_output: bool) -> Json:
    emitted, late = (
        _restart(engine, planned) if "snapshot_restore" in planned else engine.feed(_input(planned, arrival))
    )
    came_late: Json = {"late": late} if side_output else {"late": [], "dropped": len(late)}
    in_flight = [[key, *bounds_of(window)] for key, window in engine.in_flight]
    return {"emitted": emitted, **came_late, "in_flight": in_flight}


def _restart(engine: StepEngine, planned: Mapping[str, Any]) -> tuple[list[Json], list[str]]:
    watermark_ms = engine.watermark_ms
    engine.restart()
    return engine.feed(Watermark(watermark_ms)) if planned.get("resend_watermark") else ([], [])


def _input(planned: Mapping[str, Any], arrival: int) -> Input:
    match planned:
        case {"element": {"key": key, "ts": timestamp_ms, **value}}:
            return Element(key, timestamp_ms, value, arrival)
        case {"watermark": "MIN"}:
            return Watermark(MIN_WATERMARK)
        case {"watermark": "MAX"}:
            return Watermark(MAX_WATERMARK)
        case {"watermark": int(watermark_ms)}:
            return Watermark(watermark_ms)
        case {"processing_time": int(processing_time_ms)}:
            return ProcessingTime(processing_time_ms)
    raise InvalidSpec(f"unknown step {planned}: need element, watermark, processing_time or snapshot_restore")


def _emitted(firing: Firing) -> Json:
    start_ms, end_ms = bounds_of(firing.window)
    result = firing.result if isinstance(firing.result, dict) else {"value": firing.result}
    return {"key": firing.key, "window_start": start_ms, "window_end": end_ms, **result}


def bounds_of(window: TimeWindow) -> tuple[int | None, int | None]:
    """Bounds of a window for display; None for the global window."""
    return (None, None) if window == GLOBAL_WINDOW else (window.start_ms, window.end_ms)


class Collect:
    """Process function that returns the ids of all elements of the window, and the sum of their values."""

    def process(self, contents: Sequence[Mapping[str, Any]], context: ProcessContext) -> Iterable[Json]:
        return [{"ids": [value["id"] for value in contents], "value": sum(value["value"] for value in contents)}]

    def clear(self, context: ProcessContext) -> None:
        """Does nothing: the function has no state."""


class EmitNothing:
    """Process function without results."""

    def process(self, contents: Sequence[Mapping[str, Any]], context: ProcessContext) -> Iterable[Json]:
        return []

    def clear(self, context: ProcessContext) -> None:
        """Does nothing: the function has no state."""


def _add(a: int, b: int) -> int:
    return a + b


AGGREGATES: Mapping[str, Aggregate] = {
    "sum": Sum("value"),
    "count": Count(),
    "min": Min("value"),
    "max": Max("value"),
    "reduce_sum": Reduce(_add, "value", order_free=True),
}
FUNCTIONS: Mapping[str, ProcessFunction] = {"collect": Collect(), "none": EmitNothing()}


def spec_of(scenario: Mapping[str, Any]) -> WindowSpec:
    """Builds the specification of a scenario. Raises InvalidSpec if a part is unknown or refused."""
    function = scenario["function"]
    if function not in AGGREGATES and function not in FUNCTIONS:
        raise InvalidSpec(f"unknown function {function!r}: need one of {[*AGGREGATES, *FUNCTIONS]}")
    return WindowSpec(
        assigner_of(scenario["assigner"]),
        AGGREGATES.get(function),
        process=FUNCTIONS.get(function),
        trigger=trigger_of(scenario["trigger"]) if scenario.get("trigger") else None,
        evictor=evictor_of(scenario["evictor"]) if scenario.get("evictor") else None,
        allowed_lateness_ms=scenario.get("allowed_lateness_ms", 0),
        time=scenario.get("time", "event"),
    )


def assigner_of(table: Mapping[str, Any]) -> Assigner:
    """Creates the assigner of a scenario or recording. Raises InvalidSpec for an unknown type or parameter.

    Windows with a time zone have the parameters of a definition, and raise ValueError for a wrong length.

    >>> assigner_of({"type": "tumbling", "size_ms": 10})
    Tumbling(size_ms=10, offset_ms=0)
    >>> assigner_of({"type": "tumbling", "every": "1 day", "time_zone": "UTC"}).calendar.every
    CalendarLength(count=1, unit='day')
    """
    if table == {"type": "dynamic_session"}:
        table = {"type": "session", "gap_column": "gap_ms"}
    of_calendar = "time_zone" in table
    if of_calendar:
        table = {name: parse_length(value) if name in CALENDAR_LENGTHS else value for name, value in table.items()}
    assigner: Assigner = _from_table("an assigner", CALENDAR_WINDOWS if of_calendar else ASSIGNERS, table)
    return assigner


def trigger_of(table: Mapping[str, Any]) -> Trigger:
    """Creates the trigger of a scenario. Raises InvalidSpec for an unknown type or parameter."""
    trigger: Trigger = _from_table("a trigger", TRIGGERS, table)
    return trigger


def evictor_of(table: Mapping[str, Any]) -> Evictor:
    """Creates the evictor of a scenario. Raises InvalidSpec for an unknown type or parameter."""
    evictor: Evictor = _from_table("an evictor", EVICTORS, table)
    return evictor


CALENDAR_LENGTHS = ("every", "size", "max_size", "step")
ASSIGNERS = {name: kind for name, kind in WINDOWS.items() if kind.model is not WindowSpec}


def _from_table(what: str, kinds: Mapping[str, Kind], table: Mapping[str, Any]) -> Any:
    """Creates an object of the model from a table with type and parameters.

    Parameters that name a column get the column `value`.
    """
    kind = kinds.get(table.get("type", ""))
    if kind is None or kind.model is None:
        ours = [name for name, choice in kinds.items() if choice.model]
        raise InvalidSpec(f"unknown type in {dict(table)}: need {what} of type {ours}")
    values = {"absolute" if name == "abs" else name: value for name, value in table.items() if name != "type"}
    for name, parameter in kind.parameters.items():
        if parameter.type is Column:
            values[name] = "value"
        elif parameter.type == ANOTHER and name in values:
            values[name] = trigger_of(values[name])
    try:
        return kind.create(values)
    except TypeError as error:
        raise InvalidSpec(
            f"wrong parameters in {dict(table)}: {error}; need the parameters of {what} {kind.name!r}"
        ) from error
