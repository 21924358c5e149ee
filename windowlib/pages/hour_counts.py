"""Windows, and events in them, by hour, of one file of a table. A file never changes, so it is counted once.

Counts are kept in `pages/hours.json` next to the tables, of the files that the last page was made of: a page reads the
files that are new. They hold times and numbers, no value of a row; without them all is counted again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windowlib.batches.result_figures import in_ms
from windowlib.delta import disk
from windowlib.pages.gaps import HOUR_MS

FILE = Path("pages") / "hours.json"
MOST_HOURS = 1_000_000  # from the first hour of a file to its last one, that are counted in an array

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HourCounts:
    """`hours` has (hour, windows, events) of each hour in which windows start, in ms.

    `reached` has spans of hours, the first and the last of each in ms, in which windows have events.
    """

    hours: Sequence[tuple[int, int, int]] = ()
    reached: Sequence[tuple[int, int]] = ()


def counts(start_ms: Ints, events: Ints, last_ms: Ints | None = None) -> HourCounts:
    """Windows by the hour of their start; `last_ms` is where each has an event for certain, as it has in between.

    >>> one, two = np.array([5, HOUR_MS, 7]), np.array([1, 2, 4])
    >>> counts(one, two).hours, counts(one, two, np.array([5, 3 * HOUR_MS, 9])).reached
    (((0, 2, 5), (3600000, 1, 2)), ((3600000, 10800000),))
    >>> counts(np.array([], np.int64), np.array([], np.int64))
    HourCounts(hours=(), reached=())
    """
    if not len(start_ms):
        return HourCounts()
    hour = start_ms // HOUR_MS
    first = int(hour.min())
    if int(hour.max()) - first < MOST_HOURS:
        known, place = np.arange(first, int(hour.max()) + 1), hour - first
    else:
        known, place = np.unique(hour, return_inverse=True)
    windows = np.bincount(place, minlength=len(known))
    sums = np.bincount(place, weights=events, minlength=len(known))
    found = [(int(known[at]) * HOUR_MS, int(windows[at]), int(sums[at])) for at in np.flatnonzero(windows)]
    if last_ms is None:
        return HourCounts(tuple(found))
    last, reached = last_ms // HOUR_MS, known.copy()
    long = np.flatnonzero(last > hour)
    np.maximum.at(reached, place[long], last[long])
    spans = [(int(known[at]) * HOUR_MS, int(reached[at]) * HOUR_MS) for at in np.flatnonzero(reached > known)]
    return HourCounts(tuple(found), tuple(_joined(spans)))


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that follow one another or overlap as one.

    >>> _joined([(0, HOUR_MS), (HOUR_MS, 3 * HOUR_MS), (9 * HOUR_MS, 9 * HOUR_MS)])
    [(0, 10800000), (32400000, 32400000)]
    """
    found = list[tuple[int, int]]()
    for first, last in spans:
        if found and first <= found[-1][1] + HOUR_MS:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found


def times_ms(times: pa.ChunkedArray) -> Ints:
    """TIMESTAMPs without nulls, in ms."""
    return numbers(in_ms(times))


def numbers(column: pa.Array | pa.ChunkedArray) -> Ints:
    """A column of integers without nulls."""
    found: Ints = column.cast(pa.int64()).to_numpy()
    return found


@dataclass(slots=True)
class HourCountCache:
    """The counts of files that a page asks for, on some `terms`; `known` are those of the last page."""

    root: Path
    terms: str
    known: dict[str, HourCounts] = field(default_factory=dict)
    asked: dict[str, HourCounts] = field(default_factory=dict)

    @classmethod
    def read(cls, root: Path, terms: str) -> HourCountCache:
        """Those that were kept on the same terms; none where there is no such file, or it cannot be read."""
        found = cls(root, terms)
        with suppress(OSError, ValueError, TypeError, KeyError):
            kept = json.loads((root / FILE).read_text(encoding="utf-8"))
            if kept["terms"] == terms:
                found.known = {name: _counts(one) for name, one in kept["files"].items()}
        return found

    def of(self, name: str, count: Callable[[], HourCounts]) -> HourCounts:
        """The counts of a file, which `count` gives where they are not known."""
        if name not in self.asked:
            self.asked[name] = self.known[name] if name in self.known else count()
        return self.asked[name]

    def write(self) -> None:
        """Keeps what was asked for, unless that is known; where nothing can be written, the next page counts again."""
        if self.asked == self.known:
            return
        files = {name: [[*map(list, one.hours)], [*map(list, one.reached)]] for name, one in self.asked.items()}
        with suppress(OSError):
            disk.put(self.root / FILE, json.dumps({"terms": self.terms, "files": files}))


def _counts(kept: Any) -> HourCounts:
    hours, reached = kept
    return HourCounts(
        tuple((int(hour), int(windows), int(events)) for hour, windows, events in hours),
        tuple((int(first), int(last)) for first, last in reached),
    )
