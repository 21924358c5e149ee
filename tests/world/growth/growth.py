"""A pipeline with one event per batch, and the cost of its batches.

What a batch costs is a median of `MEASURED` of them, so that it does not depend on how many entries a log has since its
last checkpoint. A run that lists the whole source, which happens once a day, is measured apart.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.clicks import SCHEMA
from tests.support.disks import folder_of
from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition, load_definition
from windowlib.engines import sail
from windowlib.maintenance.maintain import maintain
from windowlib.runs.run import RunRequest
from windowlib.runs.start import run
from windowlib.source.marker import due_from, marker_of
from windowlib.storage.disk import Disk

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
START_MS = 1_893_456_000_000  # 2030-01-01, midnight UTC: to maintenance, all that is written here soon is old
STEP_MS = 600_000  # a batch comes every ten minutes
MEASURED, EMPTY_RUNS = 100, 30
KEPT = "measured.jsonl"


@dataclass(frozen=True, slots=True)
class Measured:
    """Cost of the batches up to `batch`: medians of processor time, and sizes of the process and the warehouse.

    `sitting` distinguishes processes, each of which has a memory of its own; it began after batch `since`.
    """

    batch: int
    batch_ms: float
    empty_ms: float
    maintain_ms: float
    listing_ms: float
    memory_mb: float
    servers: int
    threads: int
    files: int
    mb: float
    log_entries: int
    sitting: str
    since: int

    HEAD = (
        "batch  CPU ms: batch  empty run  maintain  full listing   memory MB  retired servers  threads"
        "   warehouse: files      MB  ledger entries"
    )

    def __str__(self) -> str:
        return (
            f"{self.batch:5}  {self.batch_ms:13.0f}  {self.empty_ms:9.0f}  {self.maintain_ms:8.0f}"
            f"  {self.listing_ms:12.0f}  {self.memory_mb:10.0f}  {self.servers:15}  {self.threads:7}"
            f"  {self.files:17}  {self.mb:6.1f}  {self.log_entries:14}"
        )


class Growth:
    """The pipeline in a folder; made, or continued."""

    def __init__(self, folder: Path, keep: str) -> None:
        self.folder, self.now_ms = folder, START_MS
        (folder / "incoming").mkdir(parents=True, exist_ok=True)
        file = folder / "grown.toml"
        file.write_text(DEFINITION.format(keep=keep))
        self.definition: Definition = load_definition(file).model_copy(update={"store": Disk(folder / "warehouse")})
        self.cpu_ms: deque[float] = deque(maxlen=MEASURED)
        self.memory_mb: deque[float] = deque(maxlen=MEASURED)  # after each batch: it falls with each server replaced
        self.maintain_ms = self.listing_ms = 0.0
        self.since, process = self.batches(), psutil.Process()
        self.now_ms = START_MS + self.since * STEP_MS
        self.sitting = f"{process.pid} of {process.create_time()}"

    def clock(self) -> int:
        return self.now_ms

    def batches(self) -> int:
        """Number of committed batches, without maintenance."""
        commit = ledger_of(self.definition, self.clock).state().commit
        return commit.to_sequence if commit else 0

    def in_turns_with(self, young: Growth) -> dict[str, tuple[float, float]]:
        """Cost of a batch and an empty run of `young` and of this pipeline: medians of alternating runs, in ms.

        What else the machine does meanwhile slows both.
        """
        costs: dict[Growth, tuple[deque[float], deque[float]]] = {one: (deque(), deque()) for one in (young, self)}
        while min(len(batches) for batches, _ in costs.values()) < MEASURED:
            for one, (batches_ms, empty_ms) in costs.items():
                number = one.batches() + 1
                one.arrive(number)
                one._run(number, batches_ms)
                one._run(None, empty_ms)
        of_young, of_this = costs.values()
        medians = [(statistics.median(a), statistics.median(b)) for a, b in zip(of_young, of_this, strict=True)]
        return dict(zip(("batch", "empty run"), medians, strict=True))

    def arrive(self, number: int) -> None:
        """The file of the next batch, an event, which is its user's next click: four take turns, so sessions end."""
        self.now_ms = START_MS + number * STEP_MS
        at_ms = self.now_ms - 60_000
        row = {"id": f"e{number:08}", "user": f"u{number // 4 % 4}", "at_ms": at_ms, "value": number}
        path = self.folder / "incoming" / f"{number // 100:05}" / f"{number:08}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist([row], schema=SCHEMA), path)
        os.utime(path, ns=(self.now_ms * 1_000_000,) * 2)

    def batch(self, number: int) -> None:
        """The batch of one event."""
        self.arrive(number)
        self._run(number, self.cpu_ms)
        self.memory_mb.append(psutil.Process().memory_info().rss / 1e6)

    def maintain(self) -> None:
        before_ms = used_ms()
        maintain(self.definition, "growth", self.clock)
        self.maintain_ms = used_ms() - before_ms

    def measured(self, number: int) -> Measured:
        """Measures the present cost, and keeps it in the folder."""
        empty_ms: deque[float] = deque()
        while len(empty_ms) < EMPTY_RUNS:
            self._run(None, empty_ms)
        sizes = [path.stat().st_size for path in folder_of(self.definition).rglob("*") if path.is_file()]
        process = psutil.Process()
        found = Measured(
            number,
            statistics.median(self.cpu_ms),
            statistics.median(empty_ms),
            self.maintain_ms,
            self.listing_ms,
            statistics.median(self.memory_mb),
            len(sail._retired),
            process.num_threads(),
            len(sizes),
            sum(sizes) / 1e6,
            len(list((folder_of(self.definition) / "ledger" / "_delta_log").glob("*.json"))),
            self.sitting,
            self.since,
        )
        with (self.folder / KEPT).open("a") as kept:
            kept.write(json.dumps(asdict(found)) + "\n")
        return found

    def all_measured(self) -> list[Measured]:
        """All that was measured in the folder, oldest first."""
        file = self.folder / KEPT
        lines = file.read_text().splitlines() if file.exists() else []
        return [Measured(**json.loads(line)) for line in lines]

    def _run(self, expected: int | None, costs_ms: deque[float]) -> None:
        """Runs a batch and records its cost; runs that list the whole source are recorded separately."""
        commit = ledger_of(self.definition, self.clock).state().commit
        of, left = self.definition.source, marker_of(self.definition.source, self.definition.store, commit)
        lists_all = due_from(left, of.full_listing_every_ms, self.now_ms) is None
        before_ms = used_ms()
        done = run(RunRequest.of(self.definition, self.clock))
        assert len(done) == (0 if expected is None else 1), f"expected batch {expected}, got {done}"
        cost_ms = used_ms() - before_ms
        if lists_all:
            self.listing_ms = cost_ms
        else:
            costs_ms.append(cost_ms)


def used_ms() -> float:
    """The processor time of this process so far, and of those that it has started, such as the one that judges."""
    own = psutil.Process()
    times = [one.cpu_times() for one in own.children(recursive=True)]
    ended = own.cpu_times()
    children_s = sum(one.user + one.system for one in times) + ended.children_user + ended.children_system
    return (time.process_time() + children_s) * 1000
