"""When the clicks arrive: each event in the file of the hour of its arrival, none of it in order.

The rule of late events that the truth counts on: a run reads one file, and an event of it is late when its window,
joined with those of its user, has ``end - 1 + LATENESS_MS <= watermark`` as the watermark was *before* that file. That
watermark is the largest event time of the files before, less ``OUT_OF_ORDERNESS_MS + 1``.

Most events     come within the out-of-orderness
some            come up to LATENESS_MS late: their results are updated, none is lost
whole visits    come after their clean-up (`lost`): nothing else is near, so every event of them is late
marathons       have one event whose own window is late when it comes, in a session that is not: it is kept
edge visits     come when ``end - 1 + LATENESS_MS`` equals the watermark (late), or is 1 ms above it (kept)
early birds     come ahead of their file and put a watermark exactly where sliding windows end
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
    """Clicks with the file and moment each arrives in; ``watermark_ms[f]`` is the watermark before file ``f``.

    ``watermark_ms`` has one number more than there are files: its last is the watermark after them all.
    ``lost`` says of each visit whether it comes after its clean-up.
    """

    clicks: Clicks
    lost: Mask
    file: Ints
    arrival_ms: Ints
    watermark_ms: Ints


def make_arrivals(settings: ClickSettings, clicks: Clicks, rng: np.random.Generator) -> Arrivals:
    """Every click in the file it arrives in; early birds and edge visits are added to the clicks given."""
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
    """Two events ahead of their file, so that the watermark after it stops on the last millisecond of its hour.

    There sliding windows end too: without the birds no watermark would meet the end or the clean-up of one exactly.
    """
    file = np.array([files // 2, files - 1])
    timestamp = BASE_MS + (file + 1) * HOUR_MS + OUT_OF_ORDERNESS_MS
    return single_events(int(clicks.visits.user.max()) + 1, timestamp), file


def _delays(clicks: Clicks, rng: np.random.Generator) -> Ints:
    """Small ones; some up to LATENESS_MS, but only in visits that will be over when the last file is read.

    (Otherwise a part of a session might be published while the whole is still in flight at the end.)
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
    can &= visits.end_ms - 1 + LATENESS_MS <= watermark_ms[-2]  # some file is still to come after the clean-up
    chosen: Mask = can & (rng.random(len(can)) < LOST_SHARE)
    return chosen


def _after_cleanup(clicks: Clicks, lost: Mask, watermark_ms: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The events of lost visits, and for each some file that is read at or after the clean-up of its visit."""
    events = np.flatnonzero(lost[clicks.visit])
    cleanup = clicks.visits.end_ms[clicks.visit[events]] - 1 + LATENESS_MS
    earliest = np.searchsorted(watermark_ms[:-1], cleanup)
    return events, rng.integers(earliest, len(watermark_ms) - 1)


def _saved_by_company(clicks: Clicks, watermark_ms: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The first or third event of each marathon, and the first file that finds that event's own window late."""
    marathons = np.flatnonzero(clicks.visits.kind == MARATHON)
    first = (np.cumsum(clicks.visits.size) - clicks.visits.size)[marathons]
    events = first + 2 * rng.integers(0, 2, len(first))
    own_cleanup = clicks.timestamp_ms[events] + GAP_MS - 1 + LATENESS_MS
    return events, np.searchsorted(watermark_ms[:-1], own_cleanup)


def _edges(clicks: Clicks, watermark_ms: Ints, files: int) -> tuple[Clicks, Ints, Mask]:
    """For each file from the fourth on, ten visits late by 0 ms and ten with 1 ms to spare.

    And in the last file ten sessions that the final watermark just reaches, and ten that it misses by 1 ms.
    """
    file = np.repeat(np.append(np.arange(3, files), files - 1), 20)
    spare = np.tile(np.repeat([0, 1], 10), files - 2)
    reached = watermark_ms[file] - LATENESS_MS
    reached[-20:] = watermark_ms[-1]
    lost = spare == 0
    lost[-20:] = False
    return single_events(int(clicks.visits.user.max()) + 1, reached + 1 + spare - GAP_MS), file, lost
