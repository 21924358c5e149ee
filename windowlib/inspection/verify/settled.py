"""Rule for touching sessions that came in several batches, in plain Python.

- A batch is a set. Its sessions merge with touching sessions in flight. A merged session that is late against the
  watermark at the batch's start is dropped whole.
- A session in flight is published once the watermark has reached its last millisecond. It replaces the published
  sessions that merged into it. At its cleanup time it is retired, and later events do not join it.
- A rerun merges all touching sessions, including published and late sessions. It recomputes the chains that meet its
  range.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from windowlib.model.lateness import was_cleaned_up
from windowlib.model.rerun import TimeRange
from windowlib.model.windows import TimeWindow, cover, touches


class SessionPart(NamedTuple):
    """Touching events of one key and batch, in `[start_ms, end_ms)`.

    `readmitted_by` is the rerun that readmitted the events, or 0.
    """

    batch_id: int
    readmitted_by: int
    start_ms: int
    end_ms: int

    @property
    def window(self) -> TimeWindow:
        return TimeWindow(self.start_ms, self.end_ms)


@dataclass(frozen=True, slots=True)
class PastRerun:
    """A published rerun of the windows that overlap `span`, or of late events only."""

    batch_id: int
    span: TimeRange
    late_only: bool = False


class LatenessBound(NamedTuple):
    """A watermark, and the greatest max_timestamp_ms of a window that is late at that watermark."""

    watermark_ms: int
    late_up_to_ms: int


@dataclass(frozen=True, slots=True)
class Past:
    """Lateness bounds before each batch (including reruns) and after the newest batch, and the reruns."""

    before: Mapping[int, LatenessBound]
    now: LatenessBound
    reruns: Sequence[PastRerun] = ()


Parts = frozenset[int]  # numbers of parts


@dataclass(frozen=True, slots=True)
class SettledSessions:
    """Published sessions and sessions in flight, each with the numbers of its parts. Also the numbers of late parts."""

    results: Mapping[TimeWindow, Parts]
    in_flight: Mapping[TimeWindow, Parts]
    late: Collection[int]


@dataclass(frozen=True, slots=True)
class _Session:
    """A session in flight. `published` holds the results that its next firing replaces."""

    window: TimeWindow
    parts: Parts
    published: Mapping[TimeWindow, Parts] = field(default_factory=dict)
    due: bool = True  # it fires when the watermark reaches its end


def settle(parts: Sequence[SessionPart], past: Past) -> SettledSessions:
    """Settles the parts of one key.

    >>> parts = [SessionPart(1, 0, 0, 10), SessionPart(2, 0, 5, 20), SessionPart(3, 0, 12, 22)]
    >>> bounds = {1: LatenessBound(-1, -1), 2: LatenessBound(5, 5), 3: LatenessBound(30, 30)}
    >>> sessions = settle(parts, Past(bounds, bounds[3]))
    >>> sessions.results, sessions.late
    ({TimeWindow(start_ms=0, end_ms=20): frozenset({0, 1})}, {2})
    """
    key = _Key(parts)
    reruns = {rerun.batch_id: rerun for rerun in past.reruns}
    first = min((part.batch_id for part in parts), default=0)
    steps = {part.batch_id for part in parts} | {number for number in reruns if number > first}
    for batch_id in sorted(steps):
        now = past.before[batch_id]
        key.move(now)
        if rerun := reruns.get(batch_id):
            key.rerun(rerun, now)
        else:
            key.batch([n for n, part in enumerate(parts) if part.batch_id == batch_id], now)
    key.move(past.now)
    published = {window: held for session in key.in_flight for window, held in session.published.items()}
    in_flight = {session.window: session.parts for session in key.in_flight}
    return SettledSessions(key.retired | published, in_flight, key.late)


class _Key:
    """State of one key from batch to batch."""

    def __init__(self, parts: Sequence[SessionPart]) -> None:
        self.all_parts = parts
        self.in_flight: list[_Session] = []
        self.retired: dict[TimeWindow, Parts] = {}  # published and no longer in flight
        self.late: set[int] = set()

    def move(self, now: LatenessBound) -> None:
        """Advances time: publishes sessions that have ended, and retires sessions past their cleanup time."""
        kept = []
        for session in self.in_flight:
            if session.due and session.window.max_timestamp_ms <= now.watermark_ms:
                session = _Session(session.window, session.parts, {session.window: session.parts}, due=False)
            if was_cleaned_up(session.window, now.late_up_to_ms):
                self.retired |= session.published
            else:
                kept.append(session)
        self.in_flight = kept

    def batch(self, numbers: Iterable[int], now: LatenessBound) -> None:
        """Adds the parts of a batch."""
        new = [_Session(self.all_parts[n].window, frozenset([n])) for n in numbers]
        joined = [_merged(together) for together in _chains([*self.in_flight, *new])]
        self.in_flight = []
        for session in joined:
            if was_cleaned_up(session.window, now.late_up_to_ms):
                self.late |= session.parts
            else:
                self.in_flight.append(session)

    def rerun(self, rerun: PastRerun, now: LatenessBound) -> None:
        """Recomputes the chains that a rerun covers."""
        own = [n for n, part in enumerate(self.all_parts) if part.batch_id <= rerun.batch_id]
        chosen = {n for n in self.late if self.all_parts[n].readmitted_by == rerun.batch_id}
        if rerun.late_only:
            own = [n for n in own if n not in self.late or n in chosen]
        sessions = [
            *(_Session(window, frozenset()) for window in (*self.retired, *(old.window for old in self.in_flight))),
            *(_Session(self.all_parts[n].window, frozenset([n])) for n in own),
        ]
        for chain in _chains(sessions):
            whole = _merged(chain)
            if not (whole.parts & chosen if rerun.late_only else rerun.span.meets(whole.window)):
                continue
            inside = TimeRange(*whole.window)
            self.retired = {w: held for w, held in self.retired.items() if not inside.meets(w)}
            self.in_flight = [session for session in self.in_flight if not inside.meets(session.window)]
            self.late -= whole.parts
            fresh = [_Session(self.all_parts[n].window, frozenset([n])) for n in sorted(whole.parts)]
            self.in_flight += [_merged(together) for together in _chains(fresh)]
        self.move(now)


def _chains(sessions: Iterable[_Session]) -> list[list[_Session]]:
    """Groups sessions into chains: sessions that touch directly or through other sessions are in one group."""
    chains: list[list[_Session]] = []
    reached: TimeWindow | None = None
    for session in sorted(sessions, key=lambda session: session.window):
        if reached is not None and touches(reached, session.window):
            chains[-1].append(session)
            reached = cover(reached, session.window)
        else:
            chains.append([session])
            reached = session.window
    return chains


def _merged(together: Sequence[_Session]) -> _Session:
    """Merges touching sessions into one; a single session stays unchanged."""
    if len(together) == 1:
        return together[0]
    window, parts, published = together[0].window, frozenset[int](), dict[TimeWindow, Parts]()
    for session in together:
        window, parts = cover(window, session.window), parts | session.parts
        published |= session.published
    return _Session(window, parts, published)
