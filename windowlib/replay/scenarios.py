"""Scenarios: what would happen, step by step. Runs one through an engine and returns plain dictionaries.

A *scenario* in JSON names a specification, in the words of the registry and with the parameters of the model
(`{"type": "tumbling", "size_ms": 10}`), and feeds it step by step: elements, watermarks, processing time, saving and
restoring. Any ``StepEngine`` can take the steps; the reference is the operator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from windowlib.definition.kinds import ANOTHER, Kind
from windowlib.definition.registry import EVICTORS, TRIGGERS, WINDOWS
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
    """Anything that takes the steps of a scenario, one at a time."""

    def feed(self, event: Input) -> tuple[list[Json], list[str]]:
        """What the input makes fire, as emitted rows, and the ids of elements that came late."""

    def restart(self) -> None:
        """Saves the state and goes on from it; the clock is carried over, the watermark is not."""

    @property
    def watermark_ms(self) -> int:
        """The watermark now."""

    @property
    def in_flight(self) -> list[tuple[Any, TimeWindow]]:
        """Every (key, window) in flight, in order."""


class OperatorSteps:
    """The reference: the operator, in memory."""

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
    """The scenario's ``steps``, each with what it ``emitted``, which ids came ``late`` and what is ``in_flight``.

    What is refused ends in an ``error``, a message: of the scenario where the specification is, of the step where the
    input is. ``engine`` makes an engine for a specification.
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
    raise InvalidSpec(f"need a step element, watermark, processing_time or snapshot_restore, got {planned}")


def _emitted(firing: Firing) -> Json:
    start_ms, end_ms = bounds_of(firing.window)
    result = firing.result if isinstance(firing.result, dict) else {"value": firing.result}
    return {"key": firing.key, "window_start": start_ms, "window_end": end_ms, **result}


def bounds_of(window: TimeWindow) -> tuple[int | None, int | None]:
    """The bounds as they are shown: none for the global window."""
    return (None, None) if window == GLOBAL_WINDOW else (window.start_ms, window.end_ms)


class Collect:
    """The ids of all elements of the window, and the sum of their values."""

    def process(self, contents: Sequence[Mapping[str, Any]], context: ProcessContext) -> Iterable[Json]:
        return [{"ids": [value["id"] for value in contents], "value": sum(value["value"] for value in contents)}]

    def clear(self, context: ProcessContext) -> None:
        """Nothing to forget."""


class EmitNothing:
    """No result, whatever the window holds."""

    def process(self, contents: Sequence[Mapping[str, Any]], context: ProcessContext) -> Iterable[Json]:
        return []

    def clear(self, context: ProcessContext) -> None:
        """Nothing to forget."""


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
    """The specification that a scenario names; raises InvalidSpec."""
    function = scenario["function"]
    if function not in AGGREGATES and function not in FUNCTIONS:
        raise InvalidSpec(f"need a function of {[*AGGREGATES, *FUNCTIONS]}, got {function!r}")
    return WindowSpec(
        assigner_of(scenario["assigner"]),
        AGGREGATES.get(function),
        process=FUNCTIONS.get(function),
        trigger=trigger_of(scenario["trigger"]) if scenario.get("trigger") else None,
        evictor=evictor_of(scenario["evictor"]) if scenario.get("evictor") else None,
        allowed_lateness_ms=scenario.get("allowed_lateness_ms", 0),
        time=scenario.get("time", "event"),
    )


def assigner_of(given: Mapping[str, Any]) -> Assigner:
    """The assigner that a scenario or recording names; raises InvalidSpec.

    >>> assigner_of({"type": "tumbling", "size_ms": 10})
    Tumbling(size_ms=10, offset_ms=0)
    """
    if given == {"type": "dynamic_session"}:
        given = {"type": "session", "gap_column": "gap_ms"}
    assigner: Assigner = _made("an assigner", ASSIGNERS, given)
    return assigner


def trigger_of(given: Mapping[str, Any]) -> Trigger:
    """The trigger that a scenario names; raises InvalidSpec."""
    trigger: Trigger = _made("a trigger", TRIGGERS, given)
    return trigger


def evictor_of(given: Mapping[str, Any]) -> Evictor:
    """The evictor that a scenario names; raises InvalidSpec."""
    evictor: Evictor = _made("an evictor", EVICTORS, given)
    return evictor


ASSIGNERS = {name: kind for name, kind in WINDOWS.items() if kind.model is not WindowSpec}


def _made(what: str, known: Mapping[str, Kind], given: Mapping[str, Any]) -> Any:
    """The object of the model that a table names; the only column that the elements of a scenario have is `value`."""
    kind = known.get(given.get("type", ""))
    if kind is None or kind.model is None:
        ours = [name for name, one in known.items() if one.model]
        raise InvalidSpec(f"need {what} of type {ours}, got {dict(given)}")
    values = {"absolute" if name == "abs" else name: value for name, value in given.items() if name != "type"}
    for name, parameter in kind.parameters.items():
        if parameter.type is Column:
            values[name] = "value"
        elif parameter.type == ANOTHER and name in values:
            values[name] = trigger_of(values[name])
    try:
        return kind.create(values)
    except TypeError as error:
        raise InvalidSpec(f"need the parameters of {what} {kind.name!r}, got {dict(given)}: {error}") from error
