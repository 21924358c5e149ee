"""Thin bars in a row of a table."""

from __future__ import annotations

from collections.abc import Sequence

HEIGHT, STEP = 16, 3


def sparkline(values: Sequence[float]) -> str:
    """Path of thin bars, oldest value on the left, in a box of `STEP` per value and `HEIGHT`.

    >>> sparkline([0, 1, 2]), sparkline([0, 0])
    ('M4 16V8M7 16V0', '')
    """
    highest = max(values, default=0)
    heights = [(number, HEIGHT * value / highest) for number, value in enumerate(values) if value > 0]
    return "".join(f"M{STEP * number + 1} {HEIGHT}V{HEIGHT - height:.3g}" for number, height in heights)
