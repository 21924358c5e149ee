"""Figures over the newest batches, each with its expected range from the batches before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from windowlib.definition.toml.durations import LONGEST_MS, UNITS
from windowlib.pages.newest_rows import RecentRun
from windowlib.plans.admission import REASONS
from windowlib.quality.bands import usual

OF_ENGINE = ("Watermark lag", "Windows in flight", "Run time", "Throughput")
LIVE_MS = 3 * UNITS["d"]  # data further behind the clock are not live, so their lag is not shown


class Measure(StrEnum):
    """Format of a number."""

    COUNT = "count"
    SHARE = "share"
    DURATION = "duration"  # ms
    RATE = "rate"  # per second


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One batch in a trend."""

    batch_id: int
    at_ms: int
    value: float


@dataclass(frozen=True, slots=True)
class Trend:
    """A figure over batches, oldest first. `usual` is the expected range (lowest, highest), or None.

    `is_of_engine`: the figure is about runs and state, not about the data.
    """

    title: str
    measure: Measure
    points: Sequence[TrendPoint]
    usual: tuple[float, float] | None
    explains: str
    is_of_engine: bool = False

    @property
    def newest(self) -> TrendPoint:
        return self.points[-1]

    @property
    def is_unusual(self) -> bool:
        """Tests if the newest value lies outside the expected range."""
        return self.usual is not None and not self.usual[0] <= self.newest.value <= self.usual[1]


def trends(runs: Sequence[RecentRun], troubled: Collection[int] = ()) -> list[Trend]:
    """Trends of figures with at least two values in `runs`, newest first. Skips reruns and decisions of operators.

    Expected ranges are not derived from `troubled` batches, which have a failed check.
    """
    ordinary = [run for run in reversed(runs) if run.rerun is None and run.decision is None]
    all_trends = (_trend(ordinary, troubled, *figure) for figure in _FIGURES)
    return [trend for trend in all_trends if trend is not None]


def late_share(runs: Sequence[RecentRun]) -> float | None:
    """Late events as a share of admitted events, over all batches; None if no event was admitted."""
    late, admitted = (sum(run.figures.get(name, 0) for run in runs) for name in ("rows_late", "rows_admitted"))
    return late / admitted if admitted else None


def _trend(
    runs: Sequence[RecentRun],
    troubled: Collection[int],
    title: str,
    measure: Measure,
    value: Callable[[RecentRun], float | None],
    explains: str,
) -> Trend | None:
    points = [TrendPoint(run.batch_id, run.at_ms, figure) for run in runs if (figure := value(run)) is not None]
    if len(points) < 2 or not any(point.value for point in points):
        return None
    before = [point.value for point in points[:-1] if point.batch_id not in troubled]
    return Trend(title, measure, points, usual(before), explains, title in OF_ENGINE)


def _figure(name: str) -> Callable[[RecentRun], float | None]:
    return lambda run: run.figures.get(name)


def _lateness_ms(name: str) -> Callable[[RecentRun], float | None]:
    """A lateness figure in ms. None after the input was declared complete, because the figure is meaningless then."""

    def late_ms(run: RecentRun) -> float | None:
        late_by_ms = run.figures.get(name)
        return None if late_by_ms is None or late_by_ms > LONGEST_MS else late_by_ms

    return late_ms


def _lag_ms(run: RecentRun) -> float | None:
    """Distance of the watermark behind the plan time, for live data only."""
    return run.lag_ms if run.lag_ms is not None and 0 <= run.lag_ms <= LIVE_MS else None


def _run_time_ms(run: RecentRun) -> float | None:
    return None if run.seconds is None else run.seconds * 1000


def _throughput(run: RecentRun) -> float | None:
    rows = run.figures.get("rows_read")
    return rows / run.seconds if rows and run.seconds and run.seconds > 0 else None


_EARLY = "results that a trigger fired before the end of their window"
_ON_TIME = "results that fired when the watermark reached the end of their window"
_LATE = "results that a late event changed, within the allowed lateness"
_NO_LATER = "no later than this after the cleanup time of their window"
_FIGURES: Sequence[tuple[str, Measure, Callable[[RecentRun], float | None], str]] = (
    ("Late share", Measure.SHARE, lambda run: late_share([run]), "late events, as a share of admitted events"),
    ("How late, median", Measure.DURATION, _lateness_ms("late_by_p50_ms"), f"half of the late events came {_NO_LATER}"),
    ("How late, 95 %", Measure.DURATION, _lateness_ms("late_by_p95_ms"), f"of late events, 95 % came {_NO_LATER}"),
    ("How late, at most", Measure.DURATION, _lateness_ms("late_by_max_ms"), f"all late events came {_NO_LATER}"),
    ("Watermark lag", Measure.DURATION, _lag_ms, "distance of the watermark behind the time of the run"),
    ("Rows read", Measure.COUNT, _figure("rows_read"), "rows of the files that a batch read"),
    ("Windows fired early", Measure.COUNT, _figure("windows_fired_early"), _EARLY),
    ("Windows fired on time", Measure.COUNT, _figure("windows_fired_on_time"), _ON_TIME),
    ("Windows fired late", Measure.COUNT, _figure("windows_fired_late"), _LATE),
    ("Windows in flight", Measure.COUNT, _figure("windows_open"), "rows of state at the start of the next batch"),
    ("Run time", Measure.DURATION, _run_time_ms, "from the start of the batch to its commit"),
    ("Throughput", Measure.RATE, _throughput, "rows read per second of run time"),
    *(
        (f"Quarantined: {reason}", Measure.COUNT, _figure(f"quarantined_{reason}"), f"rows refused as {reason}")
        for reason in REASONS
    ),
)
