"""The folder that a local Airflow runs in: two pipelines on Sail over files of live events, one for each minute."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

PROJECT = Path(__file__).resolve().parents[3]
MINUTE_MS = 60_000
GAP_MS = 20_000  # of sessions
ROWS, USERS = 500, 40  # of a file
MOVED_AT_S = 40  # of each minute: long before the next run looks, so that it finds one file
SETTLED_MS = 1_000  # events end before their file is moved, so that the next file's are later
SEED = 7

WINDOWS = {"tumbling": 'type = "tumbling"\nsize = "1m"', "sessions": f'type = "session"\ngap = "{GAP_MS // 1000}s"'}
DEFINITION = """
name = "{name}"
engine = "sail"
warehouse = "../../warehouse"

[source]
format = "parquet"
path = "../../incoming/{name}"
key = ["user"]
timestamp = "at"
timestamp_unit = "ms"
min_file_age = "0s"

[watermark]
out_of_orderness = "5s"

[window]
{window}

[aggregates]
events = "count(*)"

[airflow]
schedule = "* * * * *"
"""


class Event(NamedTuple):
    user: str
    at_ms: int


def make(folder: Path) -> None:
    """The DAG files of this project, and the two definitions."""
    pipelines = folder / "dags" / "pipelines"
    pipelines.mkdir(parents=True)
    for file in (PROJECT / "dags").glob("*.py"):
        shutil.copy(file, folder / "dags")
    for name, window in WINDOWS.items():
        (folder / "incoming" / name).mkdir(parents=True)
        (folder / "made" / name).mkdir(parents=True)
        (pipelines / f"{name}.toml").write_text(DEFINITION.format(name=name, window=window), encoding="utf-8")


@dataclass(slots=True)
class Feed:
    """Moves one file per pipeline and minute into place, and remembers its events."""

    folder: Path
    minutes: int
    moved: int = 0
    newest_ms: int = field(default_factory=lambda: now_ms() - MINUTE_MS)
    events: dict[str, list[Event]] = field(default_factory=lambda: {name: [] for name in WINDOWS})

    def is_due(self, at_ms: int, begin_ms: int) -> bool:
        """Tests if the next file is due by then; `begin_ms` is the start of the first minute."""
        return self.moved < self.minutes and at_ms >= begin_ms + self.moved * MINUTE_MS + MOVED_AT_S * 1000

    def move(self) -> None:
        """A file for each pipeline, of events since those of the file before."""
        until_ms = now_ms() - SETTLED_MS
        for name in WINDOWS:
            new = list(events(f"{SEED} {name} {self.moved}", self.newest_ms, until_ms))
            file = self.folder / "made" / name / f"{self.moved:05}.parquet"
            table = pa.table(
                {"user": [one.user for one in new], "at": pa.array([one.at_ms for one in new], pa.int64())}
            )
            pq.write_table(table, file)
            file.rename(self.folder / "incoming" / name / file.name)
            self.events[name] += new
        self.newest_ms, self.moved = until_ms, self.moved + 1


def events(seed: str, after_ms: int, until_ms: int) -> Iterator[Event]:
    """Events in `(after_ms, until_ms]`, in any order."""
    drawn = random.Random(seed)
    for _ in range(ROWS):
        yield Event(f"u{drawn.randrange(USERS)}", drawn.randint(after_ms + 1, until_ms))


def now_ms() -> int:
    return int(time.time() * 1000)
