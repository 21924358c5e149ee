"""Clicks: users in bursts, and a few hot users who never pause; by seed, one Parquet file for each batch.

Columns `user_id` (bigint), `ts` (timestamp, whole milliseconds), `value` (bigint, 1 to 1000).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.query import HOUR_MS, MINUTE_MS, TIMESTAMP

Ints = np.ndarray[Any, np.dtype[np.int64]]
BASE_MS = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp()) * 1000
BURST_MS = 10 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class Clicks:
    """Who clicks, and how the clicks arrive.

    `hot_share` of all clicks are by the first `hot_users` users, evenly over time; the others come in bursts of `burst`
    within ten minutes. With `zipf`, the users of bursts are drawn by Zipf's law with that exponent, instead of evenly.
    Rows of a file lie in any order, or with `disorder_ms` at most that far from their place in time. `late_share` of
    them are moved back in time by `late_by_ms` (least, most).
    """

    users: int = 200_000
    hot_users: int = 200
    hot_share: float = 0.1
    burst: int = 9
    zipf: float | None = None
    disorder_ms: int | None = None
    late_share: float = 0.0
    late_by_ms: tuple[int, int] = (HOUR_MS, 5 * HOUR_MS)
    seed: int = 0

    def write(self, path: Path, number: int, events: int, start_ms: int, span_ms: int) -> None:
        """File `number`: so many clicks whose times begin at `start_ms` and spread over `span_ms`."""
        rng = np.random.default_rng([self.seed, number])
        user, offset = self._clicks(rng, events, span_ms)
        if self.disorder_ms is None:
            order = rng.permutation(events)
        else:
            order = np.argsort(offset + rng.integers(0, self.disorder_ms + 1, events), kind="stable")
        user, time_ms = user[order], start_ms + offset[order]
        late = rng.random(events) < self.late_share
        time_ms[late] -= rng.integers(*self.late_by_ms, int(late.sum()))
        write_events(path, {"user_id": user, "ts": time_ms, "value": rng.integers(1, 1001, events)}, "ts")

    def _clicks(self, rng: np.random.Generator, events: int, span_ms: int) -> tuple[Ints, Ints]:
        """User and time of each click, the bursts first."""
        bursts = int(events * (1 - self.hot_share)) // self.burst
        alone = events - bursts * self.burst
        burst_user = np.repeat(self._burst_users(rng, bursts), self.burst)
        burst_start = np.repeat(rng.integers(0, span_ms, bursts), self.burst)
        in_burst = burst_start + rng.integers(0, min(BURST_MS, span_ms), bursts * self.burst)
        user = np.concatenate([burst_user, rng.integers(0, max(1, self.hot_users), alone)])
        return user, np.concatenate([in_burst, rng.integers(0, span_ms, alone)])

    def _burst_users(self, rng: np.random.Generator, bursts: int) -> Ints:
        if self.zipf is None:
            return rng.integers(self.hot_users, self.users, bursts)
        weight = np.arange(1, self.users - self.hot_users + 1) ** -float(self.zipf)
        share = np.cumsum(weight) / weight.sum()
        return self.hot_users + np.searchsorted(share, rng.random(bursts)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Once:
    """One click of each of many users, far apart: as many sessions as events, for a large state."""

    first_user: int = 1_000_000

    def write(self, path: Path, number: int, events: int, start_ms: int, span_ms: int) -> None:
        """File `number`, users and times in no order; file after file has users of its own."""
        rng = np.random.default_rng([1, number])
        user = self.first_user + number * events + rng.permutation(events)
        time_ms = start_ms + rng.integers(0, span_ms, events)
        write_events(path, {"user_id": user, "ts": time_ms, "value": rng.integers(1, 1001, events)}, "ts")


def write_events(path: Path, columns: dict[str, Ints], time: str) -> None:
    """Integer columns as a Parquet file; `time` in ms becomes a timestamp."""
    arrays = {name: pa.array(values) for name, values in columns.items()}
    arrays[time] = pa.array(columns[time] * 1000).cast(TIMESTAMP)
    pq.write_table(pa.table(arrays), path)
