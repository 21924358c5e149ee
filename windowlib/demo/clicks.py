"""Clicks with a known truth. Sessions are generated first and their events second, so no session is ever computed.

A *visit* is one true session: events of one user, with gaps of at most ``GAP_MS``. Visits of one user lie more than
``GAP_MS`` apart. So the session window of a visit is ``[first event, last event + GAP_MS)``, by construction.
Boundary cases are planted:

* Last gaps of exactly ``GAP_MS - 1`` and ``GAP_MS`` belong to one session, because windows that touch merge.
* Distances of exactly ``GAP_MS + 1`` between visits separate two sessions.

Three kinds of visits differ in the arrival of their events (`arrivals.py`):

ORDINARY   nearly all; users follow Zipf's law, so the first user alone has a tenth of the traffic
MARATHON   hours long; one early event arrives so late that it is kept only because its session is still open
EDGE       one event each, at the exact millisecond where an event becomes late or a session becomes final
"""

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Self

import numpy as np
from numpy.typing import NDArray

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
GAP_MS = 30 * MINUTE_MS
BASE_MS = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp()) * 1000
ORDINARY, MARATHON, EDGE = 0, 1, 2

# A visit lasts at most LONGEST_MS plus one planted gap, so ROOM_MS for each visit leaves time between them.
LONGEST_MS = 25 * MINUTE_MS
ROOM_MS = LONGEST_MS + 2 * GAP_MS + 5 * MINUTE_MS

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ClickSettings:
    """Size of the data: ``events`` clicks of ``users`` users, plus edge visits; one file for each of ``files`` hours.

    >>> ClickSettings(events=20_000, users=1_000, files=8).span_ms // HOUR_MS
    8
    """

    events: int = 1_200_000
    users: int = 50_000
    files: int = 10
    seed: int = 2026

    def __post_init__(self) -> None:
        if self.files < 8 or self.users < 10 or self.events < 4 * self.users:
            raise ValueError(f"{self} is not valid: need files >= 8, users >= 10 and events >= 4 * users")

    @property
    def span_ms(self) -> int:
        return self.files * HOUR_MS

    @property
    def marathons(self) -> int:
        return max(4, self.users // 250)


@dataclass(frozen=True, slots=True)
class Visits:
    """Sessions of the truth, one row each: user number, first and last event, number of events, kind."""

    user: Ints
    first_ms: Ints
    last_ms: Ints
    size: Ints
    kind: Ints

    @property
    def end_ms(self) -> Ints:
        """End (exclusive) of the session window."""
        return self.last_ms + GAP_MS

    def __add__(self, other: Self) -> "Visits":
        return Visits(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Clicks:
    """Visits and their events. Events of one visit are adjacent and in time order."""

    visits: Visits
    timestamp_ms: Ints

    @property
    def visit(self) -> Ints:
        """The visit of each event."""
        return np.repeat(np.arange(len(self.visits.size)), self.visits.size)

    def __add__(self, other: "Clicks") -> "Clicks":
        return Clicks(self.visits + other.visits, np.concatenate([self.timestamp_ms, other.timestamp_ms]))


def make_clicks(settings: ClickSettings, rng: np.random.Generator) -> Clicks:
    """Generates ordinary visits and marathons, with ``settings.events`` events in total."""
    marathons = _marathons(settings, rng)
    return _ordinary(settings, settings.events - len(marathons.timestamp_ms), rng) + marathons


def single_events(first_user: int, timestamp_ms: Ints) -> Clicks:
    """EDGE visits with one event each. Every visit has its own user."""
    size = np.ones_like(timestamp_ms)
    user = first_user + np.arange(len(size))
    return Clicks(Visits(user, timestamp_ms, timestamp_ms, size, np.full_like(size, EDGE)), timestamp_ms)


def _ordinary(settings: ClickSettings, events: int, rng: np.random.Generator) -> Clicks:
    rank = np.arange(1, settings.users + 1)
    per_user = 1 + rng.multinomial(events - settings.users, (1 / rank) / (1 / rank).sum())
    most = settings.span_ms // ROOM_MS
    visit_counts = np.minimum(np.minimum(per_user, most), 1 + rng.poisson(per_user / 8))
    user = np.repeat(np.arange(settings.users), visit_counts)
    size = _sizes(per_user, visit_counts, rng)
    offset = _offsets(size, rng)
    last = offset[np.cumsum(size) - 1]
    first = BASE_MS + _starts(visit_counts, last, settings.span_ms, rng)
    visits = Visits(user, first, first + last, size, np.full_like(size, ORDINARY))
    return Clicks(visits, np.repeat(first, size) + offset)


def _sizes(per_user: Ints, visit_counts: Ints, rng: np.random.Generator) -> Ints:
    """Number of events of each visit: at least one; the user's other events are distributed at random."""
    rest = per_user - visit_counts
    visit = np.repeat(np.cumsum(visit_counts) - visit_counts, rest)
    visit += (rng.random(len(visit)) * np.repeat(visit_counts, rest)).astype(np.int64)
    size: Ints = 1 + np.bincount(visit, minlength=int(visit_counts.sum()))
    return size


def _offsets(size: Ints, rng: np.random.Generator) -> Ints:
    """Offset of each event from the first event of its visit, in ms. The last gap of some visits is planted."""
    first = np.cumsum(size) - size
    steps = rng.exponential(size=int(size.sum()))
    steps[first] = 0
    walked = np.cumsum(steps)
    walked -= np.repeat(walked[first], size)
    last = first + size - 1
    length = rng.integers(MINUTE_MS, LONGEST_MS, len(size)) / np.maximum(walked[last], 1e-9)
    offset: Ints = (walked * np.repeat(length, size)).astype(np.int64)
    planted = rng.random(len(size)) < 0.04
    planted &= size > 1
    at = last[planted]
    offset[at] = offset[at - 1] + GAP_MS - rng.integers(0, 2, len(at))
    return offset


def _starts(visit_counts: Ints, length: Ints, span_ms: int, rng: np.random.Generator) -> Ints:
    """Start of each visit, in ms after the start of the data. Random pauses fill the user's spare time."""
    first = np.cumsum(visit_counts) - visit_counts
    needed = length + GAP_MS + 1
    share = rng.exponential(size=len(length))
    planted = rng.random(len(length)) < 0.04
    planted[first] = False
    share[planted] = 0  # this visit begins exactly GAP_MS + 1 after the previous visit ends
    all_shares = np.add.reduceat(share, first) + rng.exponential(size=len(first))
    spare = span_ms + GAP_MS - np.add.reduceat(needed, first)  # no gap is needed after the last visit
    lead = (share * np.repeat(spare / all_shares, visit_counts)).astype(np.int64)
    begin: Ints = np.cumsum(lead + needed) - needed
    begin -= np.repeat(begin[first] - lead[first], visit_counts)
    return begin


def _marathons(settings: ClickSettings, rng: np.random.Generator) -> Clicks:
    """Long visits. Their gaps are so small that a visit stays one session even if any single event is missing."""
    number, size = settings.marathons, 26
    gaps = rng.integers(8 * MINUTE_MS, 13 * MINUTE_MS, (number, size))
    times = BASE_MS + rng.integers(0, 2 * HOUR_MS, (number, 1)) + np.cumsum(gaps, axis=1)
    sizes = np.full(number, size)
    users = settings.users + np.arange(number)
    return Clicks(Visits(users, times[:, 0], times[:, -1], sizes, np.full(number, MARATHON)), times.reshape(-1))
