"""Round numbers on an axis."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, isfinite, log10

from windowlib.definition.toml.durations import UNITS

MOST = 3  # steps of an axis
DURATIONS_MS = (
    *(seconds * UNITS["s"] for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * UNITS["m"] for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * UNITS["h"] for hours in (1, 2, 3, 6, 12)),
    UNITS["d"],
)


def ticks(highest: float, *, is_duration: bool = False, is_whole: bool = False) -> Sequence[float]:
    """Round numbers from 0 to at least `highest`, at equal distances. Durations are in ms.

    With `is_whole`, all are whole numbers.

    >>> ticks(7), ticks(0.031), ticks(1, is_whole=True)
    ((0, 5, 10), (0.0, 0.02, 0.04), (0, 1))
    >>> ticks(5_400_000, is_duration=True), ticks(0)
    ((0, 1800000, 3600000, 5400000), (0, 1))
    """
    if highest <= 0 or not isfinite(highest):
        return 0, 1
    step = _duration_step(highest) if is_duration else _step(highest)
    step = max(step, 1) if is_whole else step
    return tuple(round(step * number, 12) for number in range(ceil(round(highest / step, 9)) + 1))


def _duration_step(highest_ms: float) -> float:
    step_ms = next((step_ms for step_ms in DURATIONS_MS if highest_ms <= MOST * step_ms), None)
    if step_ms is None:
        return _step(highest_ms / UNITS["d"]) * UNITS["d"]
    return step_ms if highest_ms >= UNITS["s"] else _step(highest_ms)


def _step(highest: float) -> float:
    """Smallest of 1, 2 and 5 times a power of ten that needs at most `MOST` steps."""
    exponent = floor(log10(highest / MOST))
    factors = (factor * 10.0**power for power in (exponent, exponent + 1) for factor in (1, 2, 5))
    step = next(factor for factor in factors if highest <= MOST * factor * (1 + 1e-9))
    return int(step) if step >= 1 else step
