"""Gaps: hours of event time without results, in which a window could have started and must have ended.

Our decision: an hour is judged by the windows that start in it, after the watermark has passed all of them. If windows
start less often than every hour, hours without a start are not gaps. If the start of windows cannot be predicted, no
hour is a gap.
"""

from __future__ import annotations

from collections.abc import Iterator

from windowlib.definition.toml.durations import UNITS
from windowlib.model.geometry import geometry_of
from windowlib.model.spec import WindowSpec

HOUR_MS = UNITS["h"]


def step_ms(spec: WindowSpec) -> int | None:
    """Distance between two hours in which windows start, at least one hour; None if gaps are unknown.

    With a calendar it is one hour, because the distance is not always the same.

    >>> from windowlib import Count, Session, Sliding, Tumbling
    >>> windows = Tumbling(86_400_000), Sliding(86_400_000, 60_000), Session(60_000)
    >>> [step_ms(WindowSpec(assigner, Count())) for assigner in windows]
    [86400000, 3600000, 3600000]
    >>> step_ms(WindowSpec(Session(3_600_000), Count()))
    """
    return None if why_unknown(spec) else max(HOUR_MS, geometry_of(spec.assigner).starts_every_ms or HOUR_MS)


def why_unknown(spec: WindowSpec) -> str | None:
    """Reason why gaps are unknown; None if they are known."""
    if spec.time != "event":
        return "windows use processing time"
    geometry = geometry_of(spec.assigner)
    if geometry.longest_ms is None or (geometry.starts_every_ms is None and geometry.calendar is None):
        return "the start and end of windows cannot be predicted"
    if geometry.merges and geometry.longest_ms >= HOUR_MS:
        return "with a gap of an hour or more, a session can last an hour without an event"
    if geometry.shifted and (geometry.starts_every_ms or 0) > HOUR_MS:
        return "the windows of each key start at different times"
    return None


def must_have_ended(spec: WindowSpec, hour_ms: int, next_ms: int, watermark_ms: int | None) -> bool:
    """Tests if windows can start in ``[hour_ms, next_ms)``, and the watermark has passed all of them.

    For sessions, this holds for sessions of one event. A longer session that starts in the hour may still be in flight.

    >>> from windowlib import Count, Tumbling
    >>> day = WindowSpec(Tumbling(24 * HOUR_MS), Count())
    >>> [must_have_ended(day, hour * HOUR_MS, (hour + 1) * HOUR_MS, 24 * HOUR_MS - 1) for hour in (0, 1, 24)]
    [True, False, False]
    >>> must_have_ended(day, 0, HOUR_MS, 24 * HOUR_MS - 2)
    False
    >>> from windowlib import Calendar, CalendarLength, CalendarWindows
    >>> day = WindowSpec(CalendarWindows(Calendar(CalendarLength(1, "day"), "Europe/Berlin")), Count())
    >>> midnight_ms = 1_774_738_800_000  # 2026-03-29 00:00 in Berlin, a day of 23 hours
    >>> hour = midnight_ms, midnight_ms + HOUR_MS
    >>> [must_have_ended(day, *hour, midnight_ms + 23 * HOUR_MS - ms) for ms in (1, 2)]
    [True, False]
    """
    if watermark_ms is None or step_ms(spec) is None:
        return False
    geometry = geometry_of(spec.assigner)
    start_ms = geometry.last_start_ms(next_ms - 1)
    end_ms = None if start_ms is None else geometry.latest_end_ms(start_ms)
    if start_ms is None or end_ms is None:
        return False
    return start_ms >= hour_ms and end_ms <= watermark_ms + 1


def notes(spec: WindowSpec, *, counts_events: bool, overlaps: bool) -> Iterator[str]:
    """Sentences that explain the results by hour."""
    if spec.assigner.merges:
        yield "A session counts in the hour in which it starts, with all its events."
    else:
        yield "A result, and the events in it, count in the hour in which its window starts."
    if overlaps and geometry_of(spec.assigner).most_windows is None:
        yield "The number of events per hour is unknown: windows may overlap, so an event may be in several results."
    elif overlaps:
        yield "The number of events per hour is unknown: windows overlap, so an event is in several results."
    elif not counts_events:
        yield "The number of events per hour is unknown: no aggregate is count(*)."
    if why := why_unknown(spec):
        yield f"Gaps are not marked: {why}."
    else:
        yield (
            "A gap is an hour without a result in which a window could have started and must have ended. Hours past the"
            " watermark are no gaps."
        )
