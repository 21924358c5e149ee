"""Arrival times of the clicks. Each event lies in the file of the hour it arrives in, and events are out of order.

The truth relies on this rule of late events. A run reads one file. The watermark before that file is the largest event
time of the earlier files, minus ``OUT_OF_ORDERNESS_MS + 1``. An event is late if its window, merged with the other
windows of its user, has ``end - 1 + LATENESS_MS <= watermark``.

Most events     arrive within the out-of-orderness
some            arrive up to LATENESS_MS late: they update results, and none is lost
whole visits    arrive after their cleanup (`lost`): no other window is near, so all their events are late
marathons       have one event whose own window is late when it arrives; its session is not late, so it is kept
edge visits     arrive when ``end - 1 + LATENESS_MS`` equals the watermark (late), or is 1 ms above it (kept)
early birds     arrive ahead of their file and put a watermark exactly on the end of sliding windows
"""

from dataclasses import dataclass

import numpy as np

from windowlib.demo.clicks import (
    BASE_MS,
    GAP_MS,
    HOUR_MS,
    MARATHON,
    MINUTE_MS,
    ORDINARY,
    Clicks,
    ClickSettings,
    Ints,
    Mask,
    single_events,
)

OUT_OF_ORDERNESS_MS = 5 * MINUTE_MS
LATENESS_MS = HOUR_MS
MIN_WATERMARK_MS = -(2**63)
LATE_SHARE, LOST_SHARE, LOST_SIZE = 0.03, 0.02, 20


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Clicks with the file and the moment of arrival; ``watermark_ms[f]`` is the watermark before file ``f``.

    ``watermark_ms`` has a further last number: the watermark after all files.
    ``lost`` is true for each visit that arrives after its cleanup.
    """

    clicks: Clicks
    lost: Mask
    file: Ints
    arrival_ms: Ints
    watermark_ms: Ints


def make_arrivals(settings: ClickSettings, clicks: Clicks, rng: np.random.Generator) -> Arrivals:
    """Assigns every click to a file. Adds early birds and edge visits to ``clicks``."""
    birds, bird_file = _early_birds(clicks, settings.files)
    clicks = clicks + birds
    arrival = clicks.timestamp_ms + _delays(clicks, rng)
    file = np.minimum((arrival - BASE_MS) // HOUR_MS, settings.files - 1)
    file[-len(bird_file) :] = bird_file
    watermark = _watermarks(clicks.timestamp_ms, file, settings.files)
    lost = _choose_lost(clicks, watermark, rng)
    for events, files in (_after_cleanup(clicks, lost, watermark, rng), _saved_by_company(clicks, watermark, rng)):
        file[events] = files
        arrival[events] = _moments_in(files, rng)

    edges, edge_file, edge_lost = _edges(clicks, watermark, settings.files)
    all_files = np.concatenate([file, edge_file])
    arrivals = np.concatenate([arrival, _moments_in(edge_file, rng)])
    return Arrivals(clicks + edges, np.concatenate([lost, edge_lost]), all_files, arrivals, watermark)


def _early_birds(clicks: Clicks, files: int) -> tuple[Clicks, Ints]:
    """Two events that arrive early, so that the watermark after their file is the last millisecond of an hour.

    Sliding windows also end at full hours. Without these events no watermark would exactly meet a window's end or
    cleanup.
    """
    file = np.array([files // 2, files - 1])
    timestamp = BASE_MS + (file + 1) * HOUR_MS + OUT_OF_ORDERNESS_MS
    return single_events(int(clicks.visits.user.max()) + 1, timestamp), file


def _delays(clicks: Clicks, rng: np.random.Generator) -> Ints:
    """Delay of each event: mostly small, some up to LATENESS_MS in visits that end before the final watermark.

    In other visits, a long delay could publish a part of a session while the whole session is still in flight.
    """
    number = len(clicks.timestamp_ms)
    final = clicks.timestamp_ms.max() - OUT_OF_ORDERNESS_MS - 1
    over = (clicks.visits.kind == ORDINARY) & (clicks.visits.end_ms - 1 <= final)
    late = over[clicks.visit] & (rng.random(number) < LATE_SHARE)
    small = rng.integers(0, OUT_OF_ORDERNESS_MS - 30_000, number)
    return np.where(late, rng.integers(OUT_OF_ORDERNESS_MS, LATENESS_MS, number), small)


def _moments_in(file: Ints, rng: np.random.Generator) -> Ints:
    return BASE_MS + file * HOUR_MS + rng.integers(0, HOUR_MS, len(file))


def _watermarks(timestamp_ms: Ints, file: Ints, files: int) -> Ints:
    largest = np.full(files, MIN_WATERMARK_MS // 2)
    np.maximum.at(largest, file, timestamp_ms)
    after = np.maximum.accumulate(largest) - OUT_OF_ORDERNESS_MS - 1
    return np.concatenate([[MIN_WATERMARK_MS], after])


def _choose_lost(clicks: Clicks, watermark_ms: Ints, rng: np.random.Generator) -> Mask:
    visits = clicks.visits
    can = (visits.kind == ORDINARY) & (visits.size <= LOST_SIZE)
    can &= visits.end_ms - 1 + LATENESS_MS <= watermark_ms[-2]  # at least one file follows the cleanup
    chosen: Mask = can & (rng.random(len(can)) < LOST_SHARE)
    return chosen


def _after_cleanup(clicks: Clicks, lost: Mask, watermark_ms: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The events of lost visits, and for each event a random file that is read at or after the visit's cleanup."""
    events = np.flatnonzero(lost[clicks.visit])
    cleanup = clicks.visits.end_ms[clicks.visit[events]] - 1 + LATENESS_MS
    earliest = np.searchsorted(watermark_ms[:-1], cleanup)
    return events, rng.integers(earliest, len(watermark_ms) - 1)


def _saved_by_company(clicks: Clicks, watermark_ms: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The first or third event of each marathon, and the first file for which the event's own window is late."""
    marathons = np.flatnonzero(clicks.visits.kind == MARATHON)
    first = (np.cumsum(clicks.visits.size) - clicks.visits.size)[marathons]
    events = first + 2 * rng.integers(0, 2, len(first))
    own_cleanup = clicks.timestamp_ms[events] + GAP_MS - 1 + LATENESS_MS
    return events, np.searchsorted(watermark_ms[:-1], own_cleanup)


def _edges(clicks: Clicks, watermark_ms: Ints, files: int) -> tuple[Clicks, Ints, Mask]:
    """For each file from the fourth on: ten visits that just reach their cleanup, and ten with 1 ms to spare.

    For the last file also: ten sessions that the final watermark just reaches, and ten that it misses by 1 ms.
    """
    file = np.repeat(np.append(np.arange(3, files), files - 1), 20)
    spare = np.tile(np.repeat([0, 1], 10), files - 2)
    reached = watermark_ms[file] - LATENESS_MS
    reached[-20:] = watermark_ms[-1]
    lost = spare == 0
    lost[-20:] = False
    return single_events(int(clicks.visits.user.max()) + 1, reached + 1 + spare - GAP_MS), file, lost
