"""Number of windows that a batch fired: before their end, when the watermark reached it, and after it.

Each firing is counted once, so the sum of the three is the number of firings of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping

EARLY, ON_TIME, LATE = "windows_fired_early", "windows_fired_on_time", "windows_fired_late"


def windows_fired(figures: Mapping[str, int | None]) -> int:
    """All firings of a batch.

    >>> windows_fired({EARLY: 3, ON_TIME: 40, LATE: 2}), windows_fired({ON_TIME: 40, LATE: None})
    (45, 40)
    """
    return sum(figures.get(name) or 0 for name in (EARLY, ON_TIME, LATE))
