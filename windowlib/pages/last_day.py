"""Figures of the batches of the last 24 hours, for the home page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windowlib.definition.toml.durations import UNITS
from windowlib.pages.newest_rows import RecentRun
from windowlib.pages.trends import late_share

HOURS = 24


@dataclass(frozen=True, slots=True)
class LastDay:
    """Figures of the last 24 hours. `by_hour` has the added results of each hour, oldest first.

    * `late_share` is a share of the admitted events, `refused_share` of the rows read; None if there were none.
    """

    by_hour: Sequence[int] = (0,) * HOURS
    late_share: float | None = None
    refused_share: float | None = None

    @property
    def results(self) -> int:
        """Results that were added."""
        return sum(self.by_hour)


def last_day(runs: Sequence[RecentRun], now_ms: int) -> LastDay:
    """Sums up the batches of the last 24 hours. `runs` are in force, newest first.

    >>> runs = [RecentRun(batch, at_ms, 0, 1, 1, 0, {"windows_added": 5, "rows_read": 4, "rows_quarantined": 1})
    ...         for batch, at_ms in ((3, 86_400_000), (2, 1), (1, 0))]
    >>> day = last_day(runs, now_ms=86_400_000)
    >>> day.results, day.by_hour[0], day.by_hour[-1], day.late_share, day.refused_share
    (10, 5, 5, None, 0.25)
    """
    recent = [run for run in runs if 0 <= now_ms - run.at_ms < HOURS * UNITS["h"]]
    by_hour = [0] * HOURS
    for run in recent:
        by_hour[HOURS - 1 - (now_ms - run.at_ms) // UNITS["h"]] += run.figures.get("windows_added", 0)
    refused, read = (sum(run.figures.get(name, 0) for run in recent) for name in ("rows_quarantined", "rows_read"))
    return LastDay(by_hour, late_share(recent), refused / read if read else None)
