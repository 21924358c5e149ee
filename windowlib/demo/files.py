"""Arrival files: every click once or twice, and unusable rows, in the order of their arrival.

Columns: ``event_id``, ``user_id``, ``ts``, ``value``, ``kind``. ``ts`` has microseconds, of which only the
milliseconds count. Unusable rows are:

* a second copy of a click, in the same file or a later one
* a null user
* a null timestamp
* a timestamp a century ahead
"""

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from windowlib.demo.arrivals import Arrivals
from windowlib.demo.clicks import BASE_MS, HOUR_MS, MINUTE_MS, Ints

CENTURY_MS = 100 * 365 * 24 * HOUR_MS
DUPLICATE_SHARE, UNUSABLE_SHARE = 0.01, 0.0005


@dataclass(frozen=True, slots=True)
class DemoRows:
    """One table for each file, and the number of unusable rows by reason."""

    files: list[pa.Table]
    unusable: dict[str, int]


def make_rows(arrivals: Arrivals, value: pa.Array, rng: np.random.Generator) -> DemoRows:
    """Clicks with their ``value``, second copies and unusable rows. Groups them by file, in the order of arrival."""
    files = len(arrivals.watermark_ms) - 1
    clicks = _clicks(arrivals, value, rng)
    repeated = np.flatnonzero(rng.random(len(value)) < DUPLICATE_SHARE)
    longest_wait = np.where(rng.random(len(repeated)) < 0.5, MINUTE_MS, 3 * HOUR_MS)
    copies_ms = arrivals.arrival_ms[repeated] + rng.integers(0, longest_wait)
    junk, unusable = _unusable(clicks, rng)
    junk_ms = BASE_MS + rng.integers(0, files * HOUR_MS, len(junk))

    table = pa.concat_tables([clicks, clicks.take(repeated), junk]).combine_chunks()
    arrival = np.concatenate([arrivals.arrival_ms, copies_ms, junk_ms])
    file = np.concatenate([arrivals.file, _file_of(copies_ms, files), _file_of(junk_ms, files)])
    order = np.lexsort((arrival, file))
    bounds = np.searchsorted(file[order], np.arange(files + 1))
    sorted_table = table.take(order)
    tables = [sorted_table.slice(start, end - start) for start, end in pairwise(bounds)]
    return DemoRows(tables, {"duplicate": len(repeated), **unusable})


def write_files(rows: DemoRows, folder: Path) -> None:
    """Writes ``clicks-00.parquet`` and so on. Modification times are the arrival times."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(rows.files):
        path = folder / f"clicks-{number:02}.parquet"
        pyarrow.parquet.write_table(table, path)
        _date(path, BASE_MS + (number + 1) * HOUR_MS)


def move_files(folder: Path, by_ms: int) -> None:
    """Moves the clicks ``by_ms`` into the future: their event times and the arrival times of their files."""
    later = pa.scalar(by_ms * 1000, pa.duration("us"))
    for path in folder.iterdir():
        arrived_ms = path.stat().st_mtime_ns // 1_000_000
        table = pyarrow.parquet.read_table(path)
        place, field = table.schema.get_field_index("ts"), table.schema.field("ts")
        pyarrow.parquet.write_table(table.set_column(place, field, pc.add(table["ts"], later)), path)
        _date(path, arrived_ms + by_ms)


def _date(path: Path, arrived_ms: int) -> None:
    os.utime(path, ns=(arrived_ms * 1_000_000, arrived_ms * 1_000_000))


def user_names(user: Ints) -> pa.Array:
    """Names of users, by their numbers: ``user-00000`` and so on."""
    names = pa.array([f"user-{number:05}" for number in range(int(user.max()) + 1)])
    return names.take(pa.array(user))


def event_ids(number: Ints) -> pa.Array:
    """Event ids of numbers: ``e0`` and so on."""
    return pc.binary_join_element_wise("e", pc.cast(pa.array(number), pa.string()), "")


def timestamps(micros: Ints) -> pa.Array:
    return pa.array(micros).cast(pa.timestamp("us", tz="UTC"))


def _file_of(arrival_ms: Ints, files: int) -> Ints:
    return np.minimum((arrival_ms - BASE_MS) // HOUR_MS, files - 1)


def _clicks(arrivals: Arrivals, value: pa.Array, rng: np.random.Generator) -> pa.Table:
    clicks = arrivals.clicks
    number = len(clicks.timestamp_ms)
    kind = pa.array(["view", "click", "buy"]).take(pa.array(rng.choice(3, number, p=[0.7, 0.27, 0.03])))
    micros = clicks.timestamp_ms * 1000 + rng.integers(0, 1000, number)
    user = user_names(clicks.visits.user[clicks.visit])
    columns = [event_ids(np.arange(number)), user, timestamps(micros), value, kind]
    return pa.table(columns, names=["event_id", "user_id", "ts", "value", "kind"])


def _unusable(clicks: pa.Table, rng: np.random.Generator) -> tuple[pa.Table, dict[str, int]]:
    """Clicks with new event ids and one unusable column each, and the numbers of these clicks by reason."""
    number = max(5, int(len(clicks) * UNUSABLE_SHARE))
    copies = clicks.take(rng.integers(0, len(clicks), 3 * number))
    copies = copies.set_column(0, "event_id", event_ids(len(clicks) + np.arange(3 * number)))
    no_user = copies.slice(0, number).set_column(1, "user_id", pa.nulls(number, pa.string()))
    no_time = copies.slice(number, number).set_column(2, "ts", pa.nulls(number, copies.schema.field("ts").type))
    future = copies.slice(2 * number)
    ahead = pc.add(future["ts"].cast(pa.int64()), CENTURY_MS * 1000).cast(copies.schema.field("ts").type)
    spoilt = pa.concat_tables([no_user, no_time, future.set_column(2, "ts", ahead)])
    return spoilt, {"null_key": number, "null_timestamp": number, "future": number}
