"""A small pipeline for tests of the run: sessions of clicks in four files, with everything that can happen to an event.

Events come late enough to change results, to bridge sessions, to be late for good; some come twice, some lack a key.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.definition.definition import Definition, load_definition
from windowlib.publication.readers import read_table
from windowlib.storage.disk import Disk

CLICKS = """
name = "clicks"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at_ms"
timestamp_unit = "ms"
event_id = "id"
max_files_per_run = 1
[watermark]
out_of_orderness = "5m"
[window]
type = "session"
gap = "10m"
allowed_lateness = "2h"
[aggregates]
clicks = "count(*)"
total = "sum(value)"
first = "first(value)"
"""
ON_SAIL = f'engine = "sail"\n{CLICKS}'
MORE = ("event_id", "max_files_per_run", "allowed_lateness", "first")  # what tests of values can do without
SCHEMA = pa.schema([("id", pa.string()), ("user", pa.string()), ("at_ms", pa.int64()), ("value", pa.int64())])
SCHEMA_WITH_GAPS = SCHEMA.append(pa.field("gap_ms", pa.int64()))  # of sessions, each event's own
START_MS = 1_772_409_600_000  # 2026-03-02, midnight UTC
MINUTE_MS = 60_000
PLAN_TIME_MS = START_MS + 30 * 24 * 60 * MINUTE_MS
FILES = 4
# The outcome of a run: whatever order of attempts led to it, these hold the same rows.
COMPARED = (
    "results",
    "open_windows",
    "result_changes",
    "late_events",
    "quarantine",
    "source_files",
    "watermarks",
    "seen_ids",
    "run_metrics",
    "dq_results",
)


def clock() -> int:
    """The time of every plan, so that two runs can be compared."""
    return PLAN_TIME_MS


def without(definition: str, *keys: str) -> str:
    """A definition without the lines of these keys."""
    lines = definition.splitlines(keepends=True)
    return "".join(line for line in lines if line.partition(" = ")[0] not in keys)


def clicks(folder: Path, files: int = FILES, definition: str = CLICKS) -> Definition:
    """The pipeline in a folder of its own, with its first `files` files arrived."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "clicks.toml"
    file.write_text(definition)
    (folder / "incoming").mkdir(exist_ok=True)
    for number in range(1, files + 1):
        arrive(folder, number, events(number))
    # Its own warehouse, whatever the environment says.
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / "clicks")})


def clicks_on_sail(folder: Path) -> Definition:
    """The pipeline that is in a folder, on Sail."""
    found = load_definition(folder / "clicks.toml")
    return found.model_copy(update={"store": Disk(folder / "warehouse" / "clicks"), "engine": "sail"})


def arrive(folder: Path, number: int, rows: Iterable[Mapping[str, Any]], schema: pa.Schema = SCHEMA) -> Path:
    """Writes one arrival file, the `number`-th by its modification time."""
    path = folder / "incoming" / f"{number}.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
    os.utime(path, ns=(number, number))
    return path


def events(number: int, count: int = 80) -> list[dict[str, Any]]:
    """The rows of one arrival file: two hours of clicks by eight users, a third of them delayed by up to five hours."""
    chance = random.Random(number)
    rows = []
    for row in range(count):
        delay_min = chance.choice((0, 0, chance.randrange(300)))
        minute = 120 * number + chance.randrange(120) - delay_min
        user = None if row % 40 == 7 else f"u{chance.randrange(8)}"
        at_ms = START_MS + minute * MINUTE_MS + chance.randrange(MINUTE_MS)
        rows.append({"id": f"{number}-{row}", "user": user, "at_ms": at_ms, "value": chance.randrange(100)})
    return rows + rows[10:12]  # two come twice


def tables(definition: Definition, names: Iterable[str] = COMPARED) -> dict[str, list[str]]:
    """The rows of each table as of the newest commit, in an order of their own."""
    return {name: sorted(map(str, read_table(definition, name).to_pylist())) for name in names}
