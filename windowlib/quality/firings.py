"""How many windows a batch fired: before their end, when the watermark reached it, and after it.

Each firing is counted once, so that the three together are the firings of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping

EARLY, ON_TIME, LATE = "windows_fired_early", "windows_fired_on_time", "windows_fired_late"


def windows_fired(figures: Mapping[str, int | None]) -> int:
    """All firings of a batch.

    >>> windows_fired({EARLY: 3, ON_TIME: 40, LATE: 2}), windows_fired({ON_TIME: 40, LATE: None})
    (45, 40)
    """
    return sum(figures.get(one) or 0 for one in (EARLY, ON_TIME, LATE))
