"""Recordings of batches. A recording contains a window and batches of events; a batch states the watermark after it.

Any ``BatchEngine`` can replay a recording; the reference is the batch rule in `windowlib.model.batch`. A recording in
JSON:

    {"window": {"type": "session", "gap_ms": 10}, "allowed_lateness_ms": 0, "out_of_orderness_ms": 0,
     "batches": [{"events": [["key", 5, 7, "id"]], "watermark_after": 4}]}

An event is a list of key, event time in ms, value and id. If each event has its own session gap, the gap in ms follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from windowlib.model.aggregates import Count, Sum, Together
from windowlib.model.assigners import Assigner
from windowlib.model.batch import advance
from windowlib.model.elements import Element
from windowlib.model.spec import WindowSpec
from windowlib.model.state import OperatorState
from windowlib.replay.scenarios import Json, assigner_of


@dataclass(frozen=True, slots=True)
class Event:
    """Event of a recording; ``gap_ms`` is None unless each event has its own session gap."""

    key: str
    timestamp_ms: int
    value: int
    id: str
    gap_ms: int | None = None


Result = tuple[str, int, int, int, int]
"""(key, window_start_ms, window_end_ms, count, sum of values)"""


class BatchOutcome(NamedTuple):
    """Outcome of a batch: the last firing of each window, the ids of late events, the windows in flight afterwards."""

    results: list[Result]
    late: list[str]
    in_flight: list[tuple[str, int, int]]


class BatchEngine(Protocol):
    """Engine that runs batches of events and keeps its state between batches."""

    def advance(self, batch: Sequence[Event], watermark_ms: int) -> BatchOutcome:
        """Runs one batch. Afterwards the watermark is ``watermark_ms``."""


class ReferenceEngine:
    """Reference engine: `windowlib.model.batch.advance`, in memory."""

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
            [element.element.value["id"] for element in late],
            [(key, window.start_ms, window.end_ms) for key, window in self.state.in_flight],
        )


COUNT_AND_SUM = Together((Count(), Sum("value")))


def _element(event: Event, arrival: int) -> Element:
    value = {"id": event.id, "value": event.value, "gap_ms": event.gap_ms}
    return Element(event.key, event.timestamp_ms, value, arrival)


def replay_batches(
    recording: Mapping[str, Any], engine: Callable[[Assigner, int], BatchEngine] = ReferenceEngine
) -> Json:
    """Replays a recording. Returns ``{"batches": [{"results", "late", "in_flight"}, ...]}`` with sorted lists.

    ``engine`` creates an engine for an assigner and an allowed lateness (in ms).
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
