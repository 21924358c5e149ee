"""Gaps: hours of event time without results, in which a window could have started and must have ended.

Our decision: an hour is judged by the windows that start in it, after the watermark has passed all of them. If windows
start less often than every hour, hours without a start are not gaps. If the start of windows cannot be predicted, no
hour is a gap.
"""

from __future__ import annotations

from collections.abc import Iterator

from windowlib.definition.toml.durations import UNITS
from windowlib.model.assigners import Session, Sliding, Staggered, Tumbling
from windowlib.model.spec import WindowSpec
from windowlib.model.windows import window_start

HOUR_MS = UNITS["h"]


def step_ms(spec: WindowSpec) -> int | None:
    """Distance between two hours in which windows start, at least one hour; None if gaps are unknown.

    >>> from windowlib.model.aggregates import Count
    >>> windows = Tumbling(86_400_000), Sliding(86_400_000, 60_000), Session(60_000)
    >>> [step_ms(WindowSpec(assigner, Count())) for assigner in windows]
    [86400000, 3600000, 3600000]
    >>> step_ms(WindowSpec(Session(3_600_000), Count()))
    """
    if why_unknown(spec):
        return None
    assigner = spec.assigner
    return max(HOUR_MS, assigner.slide_ms) if isinstance(assigner, Tumbling | Sliding) else HOUR_MS


def why_unknown(spec: WindowSpec) -> str | None:
    """Reason why gaps are unknown; None if they are known."""
    if spec.time != "event":
        return "windows use processing time"
    match spec.assigner:
        case Tumbling() | Sliding():
            return None
        case Session(gap_ms=gap_ms):
            return (
                None
                if gap_ms < HOUR_MS
                else "with a gap of an hour or more, a session can last an hour without an event"
            )
        case Staggered(of=inner):
            return None if inner.slide_ms <= HOUR_MS else "the windows of each key start at different times"
    return "the start and end of windows cannot be predicted"


def must_have_ended(spec: WindowSpec, hour_ms: int, watermark_ms: int | None) -> bool:
    """Tests if windows can start in the hour from `hour_ms`, and the watermark has passed all of them.

    For sessions, this holds for sessions of one event. A longer session that starts in the hour may still be in flight.

    >>> from windowlib.model.aggregates import Count
    >>> day = WindowSpec(Tumbling(24 * HOUR_MS), Count())
    >>> [must_have_ended(day, hour * HOUR_MS, 24 * HOUR_MS - 1) for hour in (0, 1, 24)]
    [True, False, False]
    >>> must_have_ended(day, 0, 24 * HOUR_MS - 2)
    False
    """
    if watermark_ms is None or step_ms(spec) is None:
        return False
    last_ms, assigner = hour_ms + HOUR_MS - 1, spec.assigner
    match assigner:
        case Tumbling() | Sliding():
            start_ms = window_start(last_ms, assigner.slide_ms, assigner.offset_ms)
            return start_ms >= hour_ms and start_ms + assigner.size_ms <= watermark_ms + 1
        case Session(gap_ms=longest_ms) | Staggered(of=Tumbling(size_ms=longest_ms) | Sliding(size_ms=longest_ms)):
            return last_ms + longest_ms <= watermark_ms + 1
    return False


def notes(spec: WindowSpec, *, counts_events: bool, overlaps: bool) -> Iterator[str]:
    """Sentences that explain the results by hour."""
    if spec.assigner.merges:
        yield "A session counts in the hour in which it starts, with all its events."
    else:
        yield "A result, and the events in it, count in the hour in which its window starts."
    if overlaps:
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
