"""Which hours of event time have no result although they could: a window can have started in them, and must have ended.

Our decision: an hour is judged by the windows that start in it, once the watermark has passed the last of them. Windows
further apart than an hour leave hours in which none starts; those are not gaps. Where it is not known whether a window
should have been there, no hour is one.
"""

from __future__ import annotations

from collections.abc import Iterator

from windowlib.definition.toml.durations import UNITS
from windowlib.model.assigners import Session, Sliding, Staggered, Tumbling
from windowlib.model.spec import WindowSpec
from windowlib.model.windows import window_start

HOUR_MS = UNITS["h"]


def step_ms(spec: WindowSpec) -> int | None:
    """From one hour in which windows start to the next, at least; None where gaps are not known.

    >>> from windowlib.model.aggregates import Count
    >>> windows = Tumbling(86_400_000), Sliding(86_400_000, 60_000), Session(60_000)
    >>> [step_ms(WindowSpec(one, Count())) for one in windows]
    [86400000, 3600000, 3600000]
    >>> step_ms(WindowSpec(Session(3_600_000), Count()))
    """
    if why_unknown(spec):
        return None
    assigner = spec.assigner
    return max(HOUR_MS, assigner.slide_ms) if isinstance(assigner, Tumbling | Sliding) else HOUR_MS


def why_unknown(spec: WindowSpec) -> str | None:
    """Why gaps are not known; None where they are."""
    if spec.time != "event":
        return "windows are of processing time"
    match spec.assigner:
        case Tumbling() | Sliding():
            return None
        case Session(gap_ms=gap_ms):
            return None if gap_ms < HOUR_MS else "with a gap of an hour or more, sessions go on without events"
        case Staggered(of=of):
            return None if of.slide_ms <= HOUR_MS else "the windows of each key start at a time of their own"
    return "when windows start and end is not known beforehand"


def must_have_ended(spec: WindowSpec, hour_ms: int, watermark_ms: int | None) -> bool:
    """Whether windows can start in the hour from `hour_ms`, and a watermark has passed all of them.

    A session that starts in it and goes on is in flight.

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
    """What is to be known about results by hour, in sentences."""
    if spec.assigner.merges:
        yield "A session counts in the hour in which it starts, with all its events."
    else:
        yield "A result, and the events in it, count in the hour in which its window starts."
    if overlaps:
        yield "How many events there are by hour is not known: windows overlap, so an event is in several results."
    elif not counts_events:
        yield "How many events there are by hour is not known: no aggregate is count(*)."
    if why := why_unknown(spec):
        yield f"Gaps are not marked: {why}."
    else:
        yield (
            "A gap is an hour without a result in which a window could have started, and must have ended: no hour past"
            " the watermark is one."
        )
