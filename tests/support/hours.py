"""Hours of two users with few events: the tables of a pipeline, and the outcome of `windowlib verify`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from copy import copy
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import time_of
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.runs.attempt import BatchReport
from windowlib.storage.disk import Disk

DAY = datetime(2026, 3, 2)
TUMBLING = 'type = "tumbling"\nsize = "1h"'
SLIDING = 'type = "sliding"\nsize = "2h"\nslide = "1h"'
DEFINITION = """
name = "hours"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at"
event_id = "id"
max_files_per_run = 1
min_file_age = "0s"
[watermark]
out_of_orderness = "0s"
[window]
{window}
[aggregates]
events = "count(*)"
total = "sum(value)"
"""
SCHEMA = pa.schema([("id", pa.string()), ("user", pa.string()), ("at", pa.timestamp("us")), ("value", pa.int64())])
Row = tuple[str | None, str, str, int]  # id, user, hour and minute, value


def at(clock: str) -> datetime:
    """A time of the day; hours count on after midnight."""
    hour, minute = clock.split(":")
    return DAY + timedelta(hours=int(hour), minutes=int(minute))


def _clock(time_ms: int) -> str:
    """Hour and minute, of which it is the first millisecond."""
    minutes, rest_ms = divmod(time_ms - time_of(DAY), 60_000)
    assert rest_ms == 0
    return f"{minutes // 60:02}:{minutes % 60:02}"


def now() -> int:
    return time_of(DAY) + 40 * 86_400_000


class Hours:
    """A pipeline in a folder of its own."""

    def __init__(self, folder: Path, spark: SparkSession, window: str = TUMBLING, horizon: str = "") -> None:
        self.incoming, self.spark, self.times = folder / "incoming", spark, 0
        self.incoming.mkdir(parents=True)
        text = DEFINITION.format(window=window).replace("max_files", f"{horizon}\nmax_files")
        (folder / "hours.toml").write_text(text, encoding="utf-8")

    def copied(self, folder: Path) -> Hours:
        """The same, with all it has, in another folder."""
        made = copy(self)
        made.incoming = Path(shutil.copytree(self.incoming.parent, folder)) / "incoming"
        return made

    @property
    def definition(self) -> Definition:
        folder = self.incoming.parent
        return load_definition(folder / "hours.toml").model_copy(update={"store": Disk(folder / "warehouse")})

    def write(self, number: int, *rows: Row) -> None:
        """A file, or another content for it."""
        path = self.incoming / f"{number}.parquet"
        values = [
            dict(zip(SCHEMA.names, (one, user, at(clock), value), strict=True)) for one, user, clock, value in rows
        ]
        pq.write_table(pa.Table.from_pylist(values, schema=SCHEMA), path)
        self.times += 1
        os.utime(path, ns=(self.times, self.times))

    def read(self, *files: Sequence[Row]) -> Hours:
        """Files, each read by a batch of its own."""
        for number, rows in enumerate(files, 1):
            self.write(number, *rows)
        self.run()
        return self

    def move(self, *numbers: int) -> None:
        """Renames files, in the order of their time."""
        (self.incoming / "archive").mkdir(exist_ok=True)
        for number in numbers:
            (self.incoming / f"{number}.parquet").rename(self.incoming / "archive" / f"{number}.parquet")

    def run(self, rerun: Rerun | None = None) -> list[BatchReport]:
        return advance(self.definition, lambda: self.spark, clock=now, rerun=rerun)

    def rerun(self, start: str, end: str, **more: Any) -> BatchReport:
        return self.run(Rerun(time_of(at(start)), time_of(at(end)), "a test", "ann", **more))[-1]

    def rows(self, table: str) -> list[dict[str, Any]]:
        return read_table(self.definition, table).to_pylist()

    def results(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Events and total of each window that has fired, by user and start."""
        return {(r["user"], f"{r['window_start']:%H:%M}"): (r["events"], r["total"]) for r in self.rows("results")}

    def refused(self) -> dict[tuple[str, int], str]:
        return {(row["source_file"], row["source_row"]): row["reason"] for row in self.rows("quarantine")}

    def late(self) -> dict[tuple[str, int], int | None]:
        return {(row["source_file"], row["source_row"]): row["readmitted_by"] for row in self.rows("late_events")}

    def seen(self) -> dict[str, str]:
        """The ids that make a duplicate, with their times."""
        found = self.rows("seen_ids")
        assert len(found) == len({row["event_id"] for row in found})
        return {row["event_id"]: _clock(row["timestamp_ms"]) for row in found}

    def span(self, number: int) -> tuple[str, str] | None:
        """Times of the first and the last event of a file, from its record."""
        [row] = [row for row in self.rows("source_files") if row["path"] == f"{number}.parquet"]
        first_ms, last_ms = row["min_timestamp_ms"], row["max_timestamp_ms"]
        return None if first_ms is None and last_ms is None else (_clock(first_ms), _clock(last_ms))

    def differences(self) -> list[Any]:
        """Differences that `windowlib verify` finds."""
        return list(verify(self.definition, VerifyRequest(), self.spark, now).differences)
