"""Evictors: rules that remove elements from a window before or after an evaluation.

An evictor gets the elements in arrival order and returns the elements that stay. All others are removed for good. A
window with an evictor keeps its elements, not only an accumulator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from windowlib.model.elements import Element
from windowlib.model.windows import MIN_TIME_MS, TimeWindow

Elements = Sequence[Element]


class Evictor(Protocol):
    """Interface of an evictor; users may write their own."""

    def evict_before(self, elements: Elements, window: TimeWindow) -> Elements:
        """The elements that the evaluation uses."""

    def evict_after(self, elements: Elements, window: TimeWindow) -> Elements:
        """The elements that stay in the window after the evaluation."""


class _BeforeOrAfter(Evictor, Protocol):
    """Evicts before the evaluation, or after it if ``after`` is true."""

    @property
    def after(self) -> bool: ...

    def kept(self, elements: Elements) -> Elements:
        """The elements that stay."""
        ...

    def evict_before(self, elements: Elements, window: TimeWindow) -> Elements:
        return elements if self.after else self.kept(elements)

    def evict_after(self, elements: Elements, window: TimeWindow) -> Elements:
        return self.kept(elements) if self.after else elements


@dataclass(frozen=True, slots=True)
class CountEvictor(_BeforeOrAfter):
    """Keeps the last ``n`` elements."""

    n: int
    after: bool = False

    def kept(self, elements: Elements) -> Elements:
        return elements[max(0, len(elements) - max(0, self.n)) :]


@dataclass(frozen=True, slots=True)
class TimeEvictor(_BeforeOrAfter):
    """Keeps elements less than ``keep_ms`` older than the newest. Keeps all if the first has no timestamp."""

    keep_ms: int
    after: bool = False

    def kept(self, elements: Elements) -> Elements:
        if not elements or elements[0].timestamp_ms is None:
            return elements
        timestamps = [MIN_TIME_MS if e.timestamp_ms is None else e.timestamp_ms for e in elements]
        cutoff_ms = max(timestamps) - self.keep_ms
        return [element for element, timestamp_ms in zip(elements, timestamps, strict=True) if timestamp_ms > cutoff_ms]


@dataclass(frozen=True, slots=True)
class DeltaEvictor(_BeforeOrAfter):
    """Drops an element if the last element exceeds it by ``threshold`` or more in column ``of``.

    An element with a null stays. If the last element has a null, all stay.
    """

    threshold: float
    of: str
    absolute: bool = False
    after: bool = False

    def kept(self, elements: Elements) -> Elements:
        last = elements[-1].value if elements else None
        return [element for element in elements if not self._delta(element.value, last) >= self.threshold]  # NaN stays

    def _delta(self, value: Any, last: Any) -> float:
        if last[self.of] is None or value[self.of] is None:
            return math.nan
        delta: float = last[self.of] - value[self.of]
        return abs(delta) if self.absolute else delta
