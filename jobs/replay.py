"""Replay: what would happen. Runs a scenario, or batches of events, through an engine and returns plain dictionaries.

Two formats, both JSON. A *scenario* names a specification and feeds it step by step: elements, watermarks, processing
time, saving and restoring. A *recording of batches* names a window and holds batches of events with the watermark
that each moves to; any ``BatchEngine`` can replay it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from windowlib.aggregates import Aggregate, Count, Max, Min, Reduce, Sum, Together
from windowlib.assigners import Assigner, DynamicSession, Global, Session, Sliding, Tumbling
from windowlib.batch import advance
from windowlib.elements import Element, Firing, Input, Late, ProcessingTime, Watermark
from windowlib.errors import InvalidSpec, WindowError
from windowlib.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from windowlib.functions import ProcessContext, ProcessFunction
from windowlib.operator import step
from windowlib.spec import WindowSpec
from windowlib.state import OperatorState, restore
from windowlib.timed_triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    ProcessingTimeoutTrigger,
)
from windowlib.triggers import (
    CountTrigger,
    DeltaTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from windowlib.watermark import MAX_WATERMARK, MIN_WATERMARK
from windowlib.windows import GLOBAL_WINDOW, TimeWindow

Json = dict[str, Any]
T = TypeVar("T")


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
    told: Json = {"late": late} if side_output else {"late": [], "dropped": len(late)}
    in_flight = [[key, *bounds_of(window)] for key, window in engine.in_flight]
    return {"emitted": emitted, **told, "in_flight": in_flight}


def _restart(engine: StepEngine, planned: Mapping[str, Any]) -> tuple[list[Json], list[str]]:
    watermark_ms = engine.watermark_ms
    engine.restart()
    return engine.feed(Watermark(watermark_ms)) if planned.get("resend_watermark") else ([], [])


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a recording of batches; ``gap_ms`` where each brings its own."""

    key: str
    timestamp_ms: int
    value: int
    id: str
    gap_ms: int | None = None


Result = tuple[str, int, int, int, int]
"""(key, window_start_ms, window_end_ms, count, sum of values)"""


class BatchOutcome(NamedTuple):
    """What one batch came to: the last firing of each window, the ids of late events, the windows in flight after."""

    results: list[Result]
    late: list[str]
    in_flight: list[tuple[str, int, int]]


class BatchEngine(Protocol):
    """Anything that takes events batch by batch and keeps its state in between."""

    def advance(self, batch: Sequence[Event], watermark_ms: int) -> BatchOutcome:
        """Runs one batch; afterwards the watermark is ``watermark_ms``."""


class ReferenceEngine:
    """The batch rule of the core, in memory."""

    def __init__(self, assigner: Assigner, allowed_lateness_ms: int) -> None:
        self.spec = WindowSpec(assigner, COUNT_AND_SUM, allowed_lateness_ms=allowed_lateness_ms)
        self.state = OperatorState()
        self.arrivals = 0

    def advance(self, batch: Sequence[Event], watermark_ms: int) -> BatchOutcome:
        elements = [_element(event, self.arrivals + i) for i, event in enumerate(batch)]
        self.arrivals += len(batch)
        firings, late = advance(self.spec, self.state, elements, watermark_ms)
        return BatchOutcome(
            [(firing.key, firing.window.start_ms, firing.window.end_ms, *firing.result) for firing in firings],
            [one.element.value["id"] for one in late],
            [(key, window.start_ms, window.end_ms) for key, window in self.state.in_flight],
        )


COUNT_AND_SUM = Together((Count(), Sum("value")))


def _element(event: Event, arrival: int) -> Element:
    value = {"id": event.id, "value": event.value, "gap_ms": event.gap_ms}
    return Element(event.key, event.timestamp_ms, value, arrival)


def replay_batches(
    recording: Mapping[str, Any], engine: Callable[[Assigner, int], BatchEngine] = ReferenceEngine
) -> Json:
    """What each batch of a recording came to, as ``{"batches": [{"results", "late", "in_flight"}, ...]}``, sorted.

    ``engine`` makes an engine for an assigner and an allowed lateness (in ms).
    """
    running = engine(assigner_of(recording["window"]), recording["allowed_lateness_ms"])
    return {"batches": [_replay_batch(running, batch) for batch in recording["batches"]]}


def _replay_batch(engine: BatchEngine, batch: Mapping[str, Any]) -> Json:
    outcome = engine.advance([Event(*event) for event in batch["events"]], batch["watermark_after"])
    return {
        "results": sorted([*result] for result in outcome.results),
        "late": sorted(outcome.late),
        "in_flight": sorted([*window] for window in outcome.in_flight),
    }


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
    """The assigner that a scenario or recording names; raises InvalidSpec."""
    parameters = {name: value for name, value in given.items() if name != "type"}
    return _build("an assigner", ASSIGNERS, given, parameters)


def trigger_of(given: Mapping[str, Any]) -> Trigger:
    """The trigger that a scenario names; raises InvalidSpec."""
    renamed = {"abs": "absolute"}
    parameters = {renamed.get(name, name): value for name, value in given.items() if name != "type"}
    if "of" in parameters:
        parameters["of"] = trigger_of(parameters["of"])
    if given.get("type") == "delta":
        parameters["of"] = "value"
    return _build("a trigger", TRIGGERS, given, parameters)


def evictor_of(given: Mapping[str, Any]) -> Evictor:
    """The evictor that a scenario names; raises InvalidSpec."""
    renamed = {"abs": "absolute"}
    parameters = {renamed.get(name, name): value for name, value in given.items() if name != "type"}
    if given.get("type") == "delta":
        parameters["of"] = "value"
    return _build("an evictor", EVICTORS, given, parameters)


def _build(what: str, known: Mapping[str, Callable[..., T]], given: Mapping[str, Any], parameters: Json) -> T:
    if given.get("type") not in known:
        raise InvalidSpec(f"need {what} of type {list(known)}, got {dict(given)}")
    try:
        return known[given["type"]](**parameters)
    except TypeError as error:
        raise InvalidSpec(f"need the parameters of {what} {given['type']!r}, got {dict(given)}: {error}") from error


def _dynamic_session() -> DynamicSession:
    return DynamicSession("gap_ms")


ASSIGNERS: Mapping[str, Callable[..., Assigner]] = {
    "tumbling": Tumbling,
    "sliding": Sliding,
    "session": Session,
    "dynamic_session": _dynamic_session,
    "global": Global,
}
TRIGGERS: Mapping[str, Callable[..., Trigger]] = {
    "event_time": EventTimeTrigger,
    "processing_time": ProcessingTimeTrigger,
    "count": CountTrigger,
    "continuous_event_time": ContinuousEventTimeTrigger,
    "continuous_processing_time": ContinuousProcessingTimeTrigger,
    "delta": DeltaTrigger,
    "purging": PurgingTrigger,
    "processing_timeout": ProcessingTimeoutTrigger,
    "never": NeverTrigger,
    "end_of_stream": EndOfStreamTrigger,
}
EVICTORS: Mapping[str, Callable[..., Evictor]] = {"count": CountEvictor, "time": TimeEvictor, "delta": DeltaEvictor}
