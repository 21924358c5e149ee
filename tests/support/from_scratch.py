"""Windows of events, computed from scratch in plain Python: all events at once, none of them late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Event = tuple[str, int, int]
"""User, time in milliseconds, value."""


class Window(NamedTuple):
    """A window of a user, the number of its events, and the sum of their values."""

    user: str
    start_ms: int
    end_ms: int
    events: int
    total: int


def sessions(events: Iterable[Event], gap_ms: int) -> list[Window]:
    """Sessions by user and time. An event at the end of a session belongs to it.

    >>> [window[1:] for window in sessions([("ann", 0, 1), ("ann", 10, 2), ("ann", 21, 4)], 10)]
    [(0, 20, 2, 3), (21, 31, 1, 4)]
    """
    windows = list[Window]()
    for user, at_ms, value in sorted(events):
        last = windows[-1] if windows else None
        if last and last.user == user and at_ms <= last.end_ms:
            windows[-1] = Window(user, last.start_ms, at_ms + gap_ms, last.events + 1, last.total + value)
        else:
            windows.append(Window(user, at_ms, at_ms + gap_ms, 1, value))
    return windows


def tumbling(events: Iterable[Event], size_ms: int) -> list[Window]:
    """Tumbling windows by user and time.

    >>> [window[1:] for window in tumbling([("ann", 9, 1), ("ann", 10, 2), ("ann", 19, 4)], 10)]
    [(0, 10, 1, 1), (10, 20, 2, 6)]
    """
    windows = list[Window]()
    for user, at_ms, value in sorted(events):
        start_ms = at_ms // size_ms * size_ms
        last = windows[-1] if windows else None
        if last and (last.user, last.start_ms) == (user, start_ms):
            windows[-1] = last._replace(events=last.events + 1, total=last.total + value)
        else:
            windows.append(Window(user, start_ms, start_ms + size_ms, 1, value))
    return windows
