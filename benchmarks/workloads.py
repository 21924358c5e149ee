"""Every workload by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.clickstream import BASE_MS, Clicks
from benchmarks.general import WORKLOADS as GENERAL
from benchmarks.nexmark import Bids, nexmark
from benchmarks.query import HOUR_MS, MINUTE_MS, Count, Query
from benchmarks.special import LATE_SHARE, special
from benchmarks.workload import Arrival, Case, Size, Workload
from windowlib.model.assigners import Cumulating, Session, Sliding, Tumbling

GAP_MS = 30 * MINUTE_MS
FIVE_MINUTES_MS = 5 * MINUTE_MS
USUAL = Clicks()


@dataclass(frozen=True, slots=True)
class Stream:
    """Where events come from, and how much time a file spans: an hour, or what its rate makes of it."""

    source: Clicks = USUAL
    events_per_second: float | None = None

    def arrivals(self, size: Size) -> list[Arrival]:
        """One file after another; the first warms up."""
        span_ms = HOUR_MS if self.events_per_second is None else round(size.events / self.events_per_second * 1000)
        return [
            Arrival("", self.source, size.events, BASE_MS + number * span_ms, span_ms, timed=number > 0)
            for number in range(size.files)
        ]


def plain(stream: Stream, query: Query) -> Callable[[Size], list[Case]]:
    """The cases of a workload in which the same query meets file after file."""
    return lambda size: [Case("", (query,), stream.arrivals(size))]


def workloads(clicks: Stream, bids: Bids, late_share: float = LATE_SHARE) -> dict[str, Workload]:
    """All of them, over these clicks."""
    sessions = Query("sessions", Session(GAP_MS))
    found = [
        Workload("sessions", "sessions of 30 minutes, by user", plain(clicks, sessions)),
        Workload(
            "tumbling", "windows of 5 minutes, by user", plain(clicks, Query("tumbling", Tumbling(FIVE_MINUTES_MS)))
        ),
        Workload(
            "sliding",
            "windows of an hour, every 5 minutes, by user",
            plain(clicks, Query("sliding", Sliding(HOUR_MS, FIVE_MINUTES_MS))),
        ),
        Workload(
            "sliding-day",
            "windows of 24 hours, every 5 minutes, by user",
            plain(clicks, Query("sliding_day", Sliding(24 * HOUR_MS, FIVE_MINUTES_MS))),
        ),
        Workload(
            "cumulating",
            "windows that grow by 5 minutes up to an hour, by user",
            plain(clicks, Query("cumulating", Cumulating(HOUR_MS, FIVE_MINUTES_MS))),
        ),
        Workload(
            "unkeyed",
            "windows of 5 minutes over all clicks",
            plain(clicks, Query("unkeyed", Tumbling(FIVE_MINUTES_MS), keyed=False)),
        ),
        Workload("count", "every 100 clicks of a user", plain(clicks, Query("count_windows", Count(100)))),
        *special(clicks.source, late_share),
        *nexmark(bids),
        *GENERAL,
    ]
    return {workload.name: workload for workload in found}
