"""Figures of the batches of the last 24 hours, for the first screen of the pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from windowlib.definition.toml.durations import UNITS
from windowlib.pages.newest_rows import RecentRun
from windowlib.plans.admission import REASONS

HOURS = 24


@dataclass(frozen=True, slots=True)
class LastDay:
    """Figures of the last 24 hours. `by_hour` has the added results of each hour, oldest first.

    `refused_by` has the number of refused rows by reason, without reasons that refused no row.
    """

    by_hour: Sequence[int] = (0,) * HOURS
    late: int = 0
    admitted: int = 0
    refused: int = 0
    read: int = 0
    refused_by: Mapping[str, int] = field(default_factory=dict)

    @property
    def results(self) -> int:
        """Results that were added."""
        return sum(self.by_hour)

    @property
    def late_share(self) -> float | None:
        """Late events as a share of admitted events; None if no event was admitted."""
        return self.late / self.admitted if self.admitted else None

    @property
    def refused_share(self) -> float | None:
        """Refused rows as a share of the rows read; None if no row was read."""
        return self.refused / self.read if self.read else None


def last_day(runs: Sequence[RecentRun], now_ms: int) -> LastDay:
    """Sums up the batches of the last 24 hours. `runs` are in force, newest first.

    >>> refused = {"rows_quarantined": 1, "quarantined_future": 1}
    >>> runs = [RecentRun(batch, at_ms, 0, 1, 1, 0, {"windows_added": 5, "rows_read": 4, **refused})
    ...         for batch, at_ms in ((3, 86_400_000), (2, 1), (1, 0))]
    >>> day = last_day(runs, now_ms=86_400_000)
    >>> day.results, day.by_hour[0], day.by_hour[-1], day.late_share, day.refused_share, day.refused_by
    (10, 5, 5, None, 0.25, {'future': 2})
    """
    recent = [run for run in runs if 0 <= now_ms - run.at_ms < HOURS * UNITS["h"]]
    by_hour = [0] * HOURS
    for run in recent:
        by_hour[HOURS - 1 - (now_ms - run.at_ms) // UNITS["h"]] += run.figures.get("windows_added", 0)

    def total(figure: str) -> int:
        return sum(run.figures.get(figure, 0) for run in recent)

    refused_by = {reason: rows for reason in REASONS if (rows := total(f"quarantined_{reason}"))}
    late, admitted, refused, read = map(total, ("rows_late", "rows_admitted", "rows_quarantined", "rows_read"))
    return LastDay(by_hour, late, admitted, refused, read, refused_by)
