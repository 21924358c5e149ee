"""Expected outcome of a run over the arrival files, known from their generation.

Sessions     Each visit that is not lost is a session with all its events, if the final watermark has reached its end.
Sliding      An event counts in each of its windows that has not reached its cleanup when the event arrives. An event
             that counts in no window is late. A window is published if the final watermark has reached its end.

Nothing here merges windows: sessions are the visits, and sliding windows are arithmetic.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from windowlib.demo.arrivals import LATENESS_MS, Arrivals, make_arrivals
from windowlib.demo.clicks import HOUR_MS, MINUTE_MS, ClickSettings, Ints, Mask, make_clicks
from windowlib.demo.files import event_ids, make_rows, timestamps, user_names, write_files

SIZE_MS, SLIDE_MS = HOUR_MS, 10 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class WindowTruth:
    """``results``: user_id, window_start, window_end, events, total; ``late``: ids of events in no window."""

    results: pa.Table
    late: pa.Array


@dataclass(frozen=True, slots=True)
class Truth:
    """Expected outcome of both pipelines, rows in quarantine by reason, and the final watermark."""

    sessions: WindowTruth
    sliding: WindowTruth
    unusable: dict[str, int]
    rows: int
    watermark_ms: int


def make_demo_data(settings: ClickSettings, folder: Path) -> Truth:
    """Writes the arrival files into ``folder``. The same settings give the same files and the same truth."""
    rng = np.random.default_rng(settings.seed)
    arrivals = make_arrivals(settings, make_clicks(settings, rng), rng)
    number = len(arrivals.file)
    value, is_null = rng.integers(1, 1001, number), rng.random(number) < 0.03
    rows = make_rows(arrivals, pa.array(value, mask=is_null), rng)
    write_files(rows, folder)
    total_rows = sum(len(table) for table in rows.files)
    value[is_null] = 0
    sessions, sliding = _sessions(arrivals, value, ~is_null), _sliding(arrivals, value, ~is_null)
    return Truth(sessions, sliding, rows.unusable, total_rows, int(arrivals.watermark_ms[-1]))


def _sessions(arrivals: Arrivals, value: Ints, has_value: Mask) -> WindowTruth:
    visits = arrivals.clicks.visits
    first = np.cumsum(visits.size) - visits.size
    total, values = np.add.reduceat(value, first), np.add.reduceat(has_value, first, dtype=np.int64)
    published = ~arrivals.lost & (visits.end_ms - 1 <= arrivals.watermark_ms[-1])
    results = _results(visits.user, visits.first_ms, visits.end_ms, visits.size, total, values)
    return WindowTruth(
        results.filter(pa.array(published)), event_ids(np.flatnonzero(arrivals.lost[arrivals.clicks.visit]))
    )


def _sliding(arrivals: Arrivals, value: Ints, has_value: Mask) -> WindowTruth:
    """Counts all events in their newest window, then in the window before, and so on. A cell is a user and a start."""
    timestamp, watermark = arrivals.clicks.timestamp_ms, arrivals.watermark_ms[arrivals.file]
    user = arrivals.clicks.visits.user[arrivals.clicks.visit]
    newest = timestamp // SLIDE_MS
    oldest = int(newest.min()) - SIZE_MS // SLIDE_MS + 1
    columns = int(newest.max()) - oldest + 1
    sums = np.zeros((3, (int(user.max()) + 1) * columns), dtype=np.int64)
    late = np.ones(len(timestamp), dtype=bool)
    for start in (newest - older for older in range(SIZE_MS // SLIDE_MS)):
        counts = start * SLIDE_MS + SIZE_MS - 1 + LATENESS_MS > watermark
        late &= ~counts
        cell = (user * columns + start - oldest)[counts]
        for row, numbers in enumerate((np.ones_like(value), value, has_value.astype(np.int64))):
            sums[row] += np.bincount(cell, weights=numbers[counts], minlength=sums.shape[1]).astype(np.int64)
    events, total, values = sums
    start_ms = (np.arange(sums.shape[1]) % columns + oldest) * SLIDE_MS
    published = np.flatnonzero((events > 0) & (start_ms + SIZE_MS - 1 <= arrivals.watermark_ms[-1]))
    cells = [numbers[published] for numbers in (events, total, values)]
    results = _results(published // columns, start_ms[published], start_ms[published] + SIZE_MS, *cells)
    return WindowTruth(results, event_ids(np.flatnonzero(late)))


def _results(user: Ints, start_ms: Ints, end_ms: Ints, events: Ints, total: Ints, values: Ints) -> pa.Table:
    """One row for each window; a sum of no values is null, as in SQL."""
    columns = {
        "user_id": user_names(user),
        "window_start": timestamps(start_ms * 1000),
        "window_end": timestamps(end_ms * 1000),
        "events": pa.array(events),
        "total": pa.array(total, mask=values == 0),
    }
    return pa.table(columns)
