"""The scale that all parts of a picture share: minutes of both clocks across, and the heights of the story's parts."""

from __future__ import annotations

WIDTH, LEFT, RIGHT = 1000, 206, 988
FIRST, LAST = -5, 46  # minutes
TITLE, AXIS, VALUES, HAPPENS, ARRIVES, WATERMARK, ROWS = 28, 54, 80, 98, 140, 176, 198


def x(minute: float) -> float:
    """Where a minute stands."""
    return round(LEFT + (minute - FIRST) / (LAST - FIRST) * (RIGHT - LEFT), 1)
