"""Workloads of the general plan, which runs the operator element by element: its speed, and its memory for one key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.clickstream import BASE_MS, write_events
from benchmarks.query import MINUTE_MS, Query
from benchmarks.workload import Arrival, Case, Size, Workload
from windowlib.model.assigners import Session

GAP_MS, FILE_MS = 2 * MINUTE_MS, 10 * MINUTE_MS
COUNTING = """\
[window.trigger]
type = "count"
n = 5

[aggregates]
events = "count(*)"
total = "sum(value)"
"""
KEEPING = """\
function = "benchmarks.median:Median"
reads = ["value"]

[window.output]
median = "double"
"""


@dataclass(frozen=True, slots=True)
class Even:
    """Events evenly over `keys`, in order of time but for half a minute's worth of disorder."""

    keys: int = 100_000

    def write(self, path: Path, number: int, events: int, start_ms: int, span_ms: int) -> None:
        """File `number` of a source with such events."""
        rng = np.random.default_rng(number)
        offset = np.sort(rng.integers(0, span_ms, events)) - rng.integers(0, MINUTE_MS // 2, events)
        columns = {
            "user_id": rng.integers(0, self.keys, events),
            "ts": start_ms + offset,
            "value": rng.integers(1, 1001, events),
        }
        write_events(path, columns, "ts")


def arrivals(size: Size, keys: int) -> list[Arrival]:
    """A file for each ten minutes; the first warms up."""
    return [
        Arrival("", Even(keys), size.events, BASE_MS + number * FILE_MS, FILE_MS, timed=number > 0)
        for number in range(size.files)
    ]


def general(size: Size) -> list[Case]:
    """Sessions over 100,000 keys that fire at every fifth event."""
    query = Query("general", Session(GAP_MS), out_of_orderness_ms=MINUTE_MS, more=COUNTING)
    return [Case("", (query,), arrivals(size, keys=100_000))]


def one_key(size: Size) -> list[Case]:
    """All events in one session of one key: with aggregates, whose state does not grow, and with all elements kept."""
    cases = []
    for name, more in (("count trigger, aggregates", COUNTING), ("function over all elements", KEEPING)):
        query = Query("one_key", Session(GAP_MS), out_of_orderness_ms=MINUTE_MS, more=more)
        cases.append(Case(name, (query,), arrivals(Size(2, size.events), keys=1), memory=True))
    return cases


WORKLOADS = [
    Workload("general", "sessions that fire at every fifth event, in the general plan; ours alone", general),
    Workload("one-key", "memory of a worker for one key, in the general plan; two files, ours alone", one_key),
]
