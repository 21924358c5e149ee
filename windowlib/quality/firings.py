"""Firings of a batch: before the end of a window, when the watermark reached the end, and later by late events.

Each firing counts in exactly one of the three figures, so their sum is the number of firings.
"""

from __future__ import annotations

from collections.abc import Mapping

EARLY, ON_TIME, LATE = "windows_fired_early", "windows_fired_on_time", "windows_fired_late"


def windows_fired(figures: Mapping[str, int | None]) -> int:
    """Number of firings of a batch; a missing figure counts as 0.

    >>> windows_fired({EARLY: 3, ON_TIME: 40, LATE: 2}), windows_fired({ON_TIME: 40, LATE: None})
    (45, 40)
    """
    return sum(figures.get(name) or 0 for name in (EARLY, ON_TIME, LATE))
