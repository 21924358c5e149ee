"""Expected ranges of the main figures at this hour of the week, derived from the same hour in earlier weeks.

    band = median ± 3 deviations, over the batches planned in the same hour (UTC) in the last `WEEKS` weeks

The deviation is the median absolute deviation, but at least a quarter of the median. So the narrowest band is from 0.25
to 1.75 times the median. There is no band if fewer than `ENOUGH_WEEKS` of these weeks had a batch that read something.
A batch that reads nothing has no band either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from windowlib.definition.toml.durations import UNITS
from windowlib.quality.bands import usual
from windowlib.quality.firings import LATE, ON_TIME, windows_fired

WEEK_MS, HOUR_MS = 7 * UNITS["d"], UNITS["h"]
WEEKS, ENOUGH_WEEKS = 8, 4
LEAST_DEVIATION = 0.25  # of the median
LEAST_LATE_SHARE = 0.01  # lowest upper bound of the late share: a smaller share is not worth a warning
NEEDED = ("plan_time_ms", "rows_read", "rows_admitted", "rows_late", ON_TIME, LATE)
"""Figures of earlier batches that the bands are computed from."""

Figures: TypeAlias = Mapping[str, int | None]


def weeks_before(plan_time_ms: int, earlier_ms: int) -> int | None:
    """Number of weeks between two times in the same hour of the week, 1 to `WEEKS`. None for other times.

    >>> weeks_before(2 * WEEK_MS, WEEK_MS + HOUR_MS - 1), weeks_before(2 * WEEK_MS, WEEK_MS - 1)
    (1, None)
    >>> weeks_before(2 * WEEK_MS, 2 * WEEK_MS), weeks_before(20 * WEEK_MS, WEEK_MS)
    (None, None)
    """
    hours = plan_time_ms // HOUR_MS - earlier_ms // HOUR_MS
    weeks, other = divmod(hours, WEEK_MS // HOUR_MS)
    return weeks if not other and 1 <= weeks <= WEEKS else None


def bounds(figures: Figures, history: Sequence[Figures]) -> dict[str, float | None]:
    """Bounds by the parameter that names them in suites. Without a band, bounds are 0 or None, which bound nothing.

    >>> past = [{"plan_time_ms": week * WEEK_MS, "rows_read": 100, "rows_admitted": 100, "rows_late": 2,
    ...          "windows_fired_on_time": 40, "windows_fired_late": 0} for week in range(5)]
    >>> now = past[0] | {"plan_time_ms": 5 * WEEK_MS}
    >>> bounds(now, past)  # doctest: +NORMALIZE_WHITESPACE
    {'usual_rows_read_low': 25.0, 'usual_rows_read_high': 175.0, 'usual_late_share_high': 0.035,
     'usual_windows_fired_low': 10.0, 'usual_windows_fired_high': 70.0}
    >>> set(bounds(now, past[:3]).values())
    {0.0, None}
    >>> bounds(now, [batch | {"rows_late": 0} for batch in past])["usual_late_share_high"]
    0.01
    """
    same = _same_hour(figures, history) if figures.get("rows_read") else []
    rows, late, fired = (_band(same, value) for value in (_rows_read, _late_share, windows_fired))
    return {
        "usual_rows_read_low": rows[0],
        "usual_rows_read_high": rows[1],
        "usual_late_share_high": max(late[1] or 0.0, LEAST_LATE_SHARE) if same else None,
        "usual_windows_fired_low": fired[0],
        "usual_windows_fired_high": fired[1],
    }


def _same_hour(figures: Figures, history: Sequence[Figures]) -> list[Figures]:
    """Figures of batches that read rows in the same hour of earlier weeks. Empty if too few weeks have such a batch."""
    now_ms = figures.get("plan_time_ms") or 0
    weeks = {id(past): weeks_before(now_ms, past.get("plan_time_ms") or 0) for past in history if past.get("rows_read")}
    same = [past for past in history if weeks.get(id(past)) is not None]
    return same if len({weeks[id(past)] for past in same}) >= ENOUGH_WEEKS else []


def _band(same: Sequence[Figures], value: Callable[[Figures], float]) -> tuple[float, float | None]:
    band = usual([value(past) for past in same], least=LEAST_DEVIATION, enough=ENOUGH_WEEKS)
    return (round(band[0], 6), round(band[1], 6)) if band and band[1] else (0.0, None)


def _rows_read(figures: Figures) -> float:
    return figures["rows_read"] or 0


def _late_share(figures: Figures) -> float:
    return (figures["rows_late"] or 0) / (figures["rows_admitted"] or 1)
