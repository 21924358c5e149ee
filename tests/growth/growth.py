"""A pipeline that is given one event for each batch, and what its batches cost."""

from __future__ import annotations

import os
import statistics
import time
from collections import deque
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition, load_definition
from windowlib.runs.maintenance import maintain
from windowlib.runs.run import Run
from windowlib.runs.start import run

DEFINITION = """
name = "grown"
engine = "sail"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at_ms"
timestamp_unit = "ms"
event_id = "id"
dedup_horizon = "1d"
sorted_by_time = "folders"
min_file_age = "0s"
[watermark]
out_of_orderness = "5m"
[window]
type = "session"
gap = "30m"
allowed_lateness = "2h"
[aggregates]
clicks = "count(*)"
total = "sum(value)"
[retention]
cuts = "{keep}"
"""
SCHEMA = pa.schema([("id", pa.string()), ("user", pa.string()), ("at_ms", pa.int64()), ("value", pa.int64())])
START_MS = 1_893_456_000_000  # 2030-01-01, midnight UTC: to maintenance, all that is written here soon is old
STEP_MS = 600_000  # a batch comes every ten minutes
MEASURED = 10  # batches, and empty runs


class Growth:
    """The pipeline in a folder; made, or continued."""

    HEAD = "batch  CPU ms: batch  empty run  maintain   memory MB   warehouse: files      MB  ledger entries"

    def __init__(self, folder: Path, keep: str) -> None:
        self.folder, self.now_ms = folder, START_MS
        (folder / "incoming").mkdir(parents=True, exist_ok=True)
        file = folder / "grown.toml"
        file.write_text(DEFINITION.format(keep=keep))
        self.definition: Definition = load_definition(file).model_copy(update={"root": folder / "warehouse"})
        self.cpu_ms: deque[float] = deque(maxlen=MEASURED)
        self.maintain_ms: float = 0

    def clock(self) -> int:
        return self.now_ms

    def batches(self) -> int:
        """How many were committed so far, maintenance left out."""
        commit = ledger_of(self.definition, self.clock).state().commit
        return commit.to_sequence if commit else 0

    def batch(self, number: int) -> None:
        """The batch of one event, which is its user's next click: four users take turns, so sessions end."""
        self.now_ms = START_MS + number * STEP_MS
        at_ms = self.now_ms - 60_000
        row = {"id": f"e{number}", "user": f"u{number // 4 % 4}", "at_ms": at_ms, "value": number}
        path = self.folder / "incoming" / f"{number // 100:05}" / f"{number:08}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist([row], schema=SCHEMA), path)
        os.utime(path, ns=(self.now_ms * 1_000_000,) * 2)
        self.cpu_ms.append(self._cost_ms(number))

    def maintain(self) -> None:
        before = time.process_time()
        maintain(self.definition, "growth", self.clock)
        self.maintain_ms = (time.process_time() - before) * 1000

    def shown(self, number: int) -> str:
        empty = statistics.median(self._cost_ms(None) for _ in range(MEASURED))
        sizes = [path.stat().st_size for path in self.definition.root.rglob("*") if path.is_file()]
        entries = len(list((self.definition.root / "ledger" / "_delta_log").glob("*.json")))
        memory_mb = psutil.Process().memory_info().rss / 1e6
        return (
            f"{number:5}  {statistics.median(self.cpu_ms):13.0f}  {empty:9.0f}  {self.maintain_ms:8.0f}"
            f"  {memory_mb:10.0f}  {len(sizes):17}  {sum(sizes) / 1e6:6.1f}  {entries:14}"
        )

    def _cost_ms(self, expected: int | None) -> float:
        before = time.process_time()
        done = run(Run.of(self.definition, self.clock))
        assert len(done) == (0 if expected is None else 1), f"expected batch {expected}, got {done}"
        return (time.process_time() - before) * 1000
