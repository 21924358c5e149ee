"""Reference engines that run a spec batch by batch: the operator, and the batch rule."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from windowlib.model import batch, operator
from windowlib.model.elements import Element, Output, Watermark
from windowlib.model.spec import WindowSpec
from windowlib.model.state import OperatorState, Row, restore
from windowlib.model.windows import TimeWindow


class Engine(Protocol):
    """Anything that runs a spec."""

    def advance(self, elements: Sequence[Element], watermark_ms: int) -> list[Output]:
        """Outputs after the elements arrive and the watermark moves."""

    def in_flight(self) -> list[tuple[Any, TimeWindow]]:
        """Every (key, window) in flight, in order."""


class OperatorEngine:
    """The reference operator, elements in the order given."""

    def __init__(self, spec: WindowSpec) -> None:
        self.spec, self.state = spec, OperatorState()

    def advance(self, elements: Sequence[Element], watermark_ms: int) -> list[Output]:
        return operator.run(self.spec, self.state, [*elements, Watermark(watermark_ms)])

    def in_flight(self) -> list[tuple[Any, TimeWindow]]:
        return self.state.in_flight

    def rows(self) -> list[Row]:
        return self.state.rows()


class SetEngine(OperatorEngine):
    """The reference of the batch rule: a batch is a set."""

    def advance(self, elements: Sequence[Element], watermark_ms: int) -> list[Output]:
        firings, late = batch.advance(self.spec, self.state, elements, watermark_ms)
        return [*firings, *late]


def restart(engine: OperatorEngine) -> OperatorEngine:
    """Restores the engine from its saved state, and from the watermark that a job keeps next to it."""
    resumed = type(engine)(engine.spec)
    resumed.state = restore(json.loads(json.dumps(engine.rows())))
    resumed.state.watermark_ms = engine.state.watermark_ms
    resumed.state.processing_time_ms = engine.state.processing_time_ms
    return resumed
