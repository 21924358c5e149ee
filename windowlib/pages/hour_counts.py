"""Windows and their events by hour, counted in one file of a table.

`pages/hours.json`, next to the tables, stores the counts. They hold times and numbers, but no values of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windowlib.batches.result_figures import in_ms
from windowlib.pages.count_cache import CountCache
from windowlib.pages.gaps import HOUR_MS
from windowlib.storage.store import Store

FILE = "pages/hours.json"
MOST_HOURS = 1_000_000  # longest span of a file that is counted in an array

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HourCounts:
    """`hours` has (hour, windows, events) for each hour in which windows start; hours in ms.

    `reached` has spans (first hour, last hour), in ms and inclusive, in which windows have events.
    """

    hours: Sequence[tuple[int, int, int]] = ()
    reached: Sequence[tuple[int, int]] = ()


def counts(start_ms: Ints, events: Ints, last_ms: Ints | None = None) -> HourCounts:
    """Counts windows by the hour of their start. Each window has an event in every hour up to its `last_ms`.

    >>> starts, events = np.array([5, HOUR_MS, 7]), np.array([1, 2, 4])
    >>> counts(starts, events).hours, counts(starts, events, np.array([5, 3 * HOUR_MS, 9])).reached
    (((0, 2, 5), (3600000, 1, 2)), ((3600000, 10800000),))
    >>> counts(np.array([], np.int64), np.array([], np.int64))
    HourCounts(hours=(), reached=())
    """
    if not len(start_ms):
        return HourCounts()
    hour = start_ms // HOUR_MS
    first = int(hour.min())
    if int(hour.max()) - first < MOST_HOURS:
        hours, place = np.arange(first, int(hour.max()) + 1), hour - first
    else:
        hours, place = np.unique(hour, return_inverse=True)
    windows = np.bincount(place, minlength=len(hours))
    sums = np.bincount(place, weights=events, minlength=len(hours))
    counted = [
        (int(hours[index]) * HOUR_MS, int(windows[index]), int(sums[index])) for index in np.flatnonzero(windows)
    ]
    if last_ms is None:
        return HourCounts(tuple(counted))
    last, reached = last_ms // HOUR_MS, hours.copy()
    long = np.flatnonzero(last > hour)
    np.maximum.at(reached, place[long], last[long])
    spans = [(int(hours[index]) * HOUR_MS, int(reached[index]) * HOUR_MS) for index in np.flatnonzero(reached > hours)]
    return HourCounts(tuple(counted), tuple(_merged(spans)))


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merges sorted spans that overlap or are adjacent.

    >>> _merged([(0, HOUR_MS), (HOUR_MS, 3 * HOUR_MS), (9 * HOUR_MS, 9 * HOUR_MS)])
    [(0, 10800000), (32400000, 32400000)]
    """
    merged = list[tuple[int, int]]()
    for first, last in spans:
        if merged and first <= merged[-1][1] + HOUR_MS:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return merged


def times_ms(times: pa.ChunkedArray) -> Ints:
    """Values of a TIMESTAMP column without nulls, in ms."""
    return numbers(in_ms(times))


def numbers(column: pa.Array | pa.ChunkedArray) -> Ints:
    """Values of an integer column without nulls."""
    integers: Ints = column.cast(pa.int64()).to_numpy()
    return integers


def hour_count_cache(store: Store, terms: str) -> CountCache[HourCounts]:
    """Stored counts by hour."""
    return CountCache.read(store, FILE, terms, _counts, _plain)


def _counts(stored: Any) -> HourCounts:
    hours, reached = stored
    return HourCounts(
        tuple((int(hour), int(windows), int(events)) for hour, windows, events in hours),
        tuple((int(first), int(last)) for first, last in reached),
    )


def _plain(counted: HourCounts) -> Any:
    return [[*map(list, counted.hours)], [*map(list, counted.reached)]]
