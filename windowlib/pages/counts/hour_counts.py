"""Windows and their events by hour, counted in one file of a table.

`pages/hours.json`, next to the tables, stores the counts. They hold times and numbers, but no values of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.batches.result_figures import in_ms
from windowlib.model.calendar import Calendar
from windowlib.pages.counts.count_cache import CountCache
from windowlib.pages.local_hours import Ints, edges_around
from windowlib.storage.store import Store

FILE = "pages/hours.json"


@dataclass(frozen=True, slots=True)
class HourCounts:
    """`hours` has (hour, windows, events) for each hour in which windows start; hours in ms.

    `reached` has spans of hours in which windows have events, in ms: the first hour, and the end of the last one.
    """

    hours: Sequence[tuple[int, int, int]] = ()
    reached: Sequence[tuple[int, int]] = ()


def counts(hours: Calendar, start_ms: Ints, events: Ints, last_ms: Ints | None = None) -> HourCounts:
    """Counts windows by the hour of their start. Each window has an event in every hour up to its `last_ms`.

    >>> from windowlib.pages.gaps import HOUR_MS
    >>> from windowlib.pages.local_hours import hours_in
    >>> starts, events, utc = np.array([5, HOUR_MS, 7]), np.array([1, 2, 4]), hours_in("UTC")
    >>> counts(utc, starts, events).hours, counts(utc, starts, events, np.array([5, 3 * HOUR_MS, 9])).reached
    (((0, 2, 5), (3600000, 1, 2)), ((3600000, 14400000),))
    >>> counts(utc, np.array([], np.int64), np.array([], np.int64))
    HourCounts(hours=(), reached=())
    """
    if not len(start_ms):
        return HourCounts()
    edges = edges_around(hours, start_ms if last_ms is None else np.concatenate([start_ms, last_ms]))
    place = np.searchsorted(edges, start_ms, side="right") - 1
    windows = np.bincount(place, minlength=len(edges))
    sums = np.bincount(place, weights=events, minlength=len(edges))
    counted = [(int(edges[index]), int(windows[index]), int(sums[index])) for index in np.flatnonzero(windows)]
    if last_ms is None:
        return HourCounts(tuple(counted))
    last, reached = np.searchsorted(edges, last_ms, side="right") - 1, np.arange(len(edges))
    np.maximum.at(reached, place, last)
    spans = [(int(edges[at]), int(edges[reached[at] + 1])) for at in np.flatnonzero(reached > np.arange(len(edges)))]
    return HourCounts(tuple(counted), tuple(_merged(spans)))


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merges sorted spans that overlap or are adjacent.

    >>> _merged([(0, 1), (1, 3), (9, 10)])
    [(0, 3), (9, 10)]
    """
    merged = list[tuple[int, int]]()
    for first_ms, end_ms in spans:
        if merged and first_ms <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end_ms)
        else:
            merged.append((first_ms, end_ms))
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
