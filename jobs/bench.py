"""Sessions over ten files of a million clicks: our runs beside Spark Structured Streaming, as a schedule runs both.

`python -m jobs.bench` makes the files, then times file by file, in one started Spark session a side and in turns,

ours        one run of a session pipeline (`jobs.advance`): plan, windows, checks, commits
streaming   one `availableNow` query: `session_window`, RocksDB state store, checkpoint, Delta sink

with the same watermark delay, compares the sessions that both have published, and prints a Markdown table. The first
file warms both up and is left out of the medians. The clicks: 200,000 users in bursts of nine, and a tenth of all
clicks by 200 users who never pause. Nothing is late: streaming has no allowed lateness to compare with.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from expectations.check import preload
from jobs.advance import advance
from jobs.definition import load_definition
from jobs.demo.compare import compare_tables
from jobs.read import read_table
from jobs.snapshots import snapshot
from jobs.spark import DEFAULTS, delta_settings, session

MINUTE_MS = 60_000
BASE_MS = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp()) * 1000
USERS, HOT_USERS, HOT_SHARE, BURST = 200_000, 200, 0.1, 9
DELAY_MINUTES, GAP_MINUTES = 10, 30
COLUMNS = ("user_id", "window_start", "window_end", "events", "total")
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SPAWN = multiprocessing.get_context("spawn")
TIMESTAMP = pa.timestamp("us", tz="UTC")

DEFINITION = f"""\
name = "bench"
warehouse = "warehouse"

[source]
format = "parquet"
path = "incoming"
key = ["user_id"]
timestamp = "ts"
max_files_per_run = 1

[watermark]
out_of_orderness = "{DELAY_MINUTES}m"

[window]
type = "session"
gap = "{GAP_MINUTES}m"
allowed_lateness = "0s"

[aggregates]
events = "count(*)"
total = "sum(value)"
"""


def make_file(path: Path, number: int, events: int) -> None:
    """Clicks of hour `number`: bursts of nine within ten minutes, hot users evenly, out of order within the file."""
    rng = np.random.default_rng(number)
    hot = int(events * HOT_SHARE)
    bursts = (events - hot) // BURST
    burst_user = rng.integers(HOT_USERS, USERS, bursts)
    burst_start = rng.integers(0, 60 * MINUTE_MS, bursts)
    user = np.concatenate([np.repeat(burst_user, BURST), rng.integers(0, HOT_USERS, events - bursts * BURST)])
    in_burst = np.repeat(burst_start, BURST) + rng.integers(0, 10 * MINUTE_MS, bursts * BURST)
    offset = np.concatenate([in_burst, rng.integers(0, 60 * MINUTE_MS, events - bursts * BURST)])
    order = rng.permutation(events)
    micros = (BASE_MS + number * 60 * MINUTE_MS + offset[order]) * 1000
    columns = [pa.array(user[order]), pa.array(micros).cast(TIMESTAMP), pa.array(rng.integers(1, 1001, events))]
    pq.write_table(pa.table(columns, names=["user_id", "ts", "value"]), path)


def ours(folder: Path) -> Iterator[None]:
    """One run of the pipeline at a time, over the files that its ledger does not know yet."""
    definition = load_definition(folder / "bench.toml")
    preload()
    spark = session()
    while True:
        yield
        advance(definition, lambda: spark)


def streaming(folder: Path) -> Iterator[None]:
    """One query at a time, over the files in `folder`/incoming that its checkpoint does not know yet.

    Spark as it comes, but for what everybody sets on one machine: the store, the memory, as many partitions as cores.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    settings: dict[str, bool | float | int | str | None] = {
        **delta_settings(),
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        "spark.driver.memory": DEFAULTS["spark.driver.memory"],
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    spark = SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()
    clicks = spark.readStream.schema("user_id bigint, ts timestamp, value bigint").parquet(str(folder / "incoming"))
    gap = F.session_window("ts", f"{GAP_MINUTES} minutes")
    counted = clicks.withWatermark("ts", f"{DELAY_MINUTES} minutes").groupBy("user_id", gap.alias("session"))
    sessions = counted.agg(F.count("*").alias("events"), F.sum("value").alias("total"))
    bounds = [F.col("session.start").alias("window_start"), F.col("session.end").alias("window_end")]
    writer = sessions.select("user_id", *bounds, "events", "total").writeStream.format("delta").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    while True:
        yield
        writer.start(str(folder / "streaming")).awaitTermination()


def bench(folder: Path, files: int, events: int) -> str:
    """Both sides over the same files, in turns, as a Markdown report; RuntimeError where their sessions differ."""
    incoming = folder / "incoming"
    incoming.mkdir(parents=True)
    (folder / "bench.toml").write_text(DEFINITION)
    # A process and a session each: what one side leaves behind (memory, threads, compiled code) is not the other's.
    with worker(ours, folder) as run_ours, worker(streaming, folder) as run_streaming:
        sides = {"ours": run_ours, "streaming": run_streaming}
        seconds: dict[str, list[float]] = {side: [] for side in sides}
        for number in range(files):
            make_file(folder / "next.parquet", number, events)
            (folder / "next.parquet").rename(incoming / f"{number:02}.parquet")
            for side in list(sides) if number % 2 else list(reversed(sides)):
                seconds[side].append(sides[side]())
            newest = ", ".join(f"{side} {times[-1]:.2f} s" for side, times in seconds.items())
            print(f"file {number}: {newest}", flush=True)
    results = read_table(load_definition(folder / "bench.toml"), "results").select(list(COLUMNS))
    log = DeltaTable(str(folder / "streaming"))
    theirs = snapshot(folder / "streaming", log.version())
    comparison = compare_tables("sessions", theirs, results, COLUMNS[:3], COLUMNS[3:])
    if comparison.differences:
        raise RuntimeError(f"the two do not publish the same sessions: {comparison}")
    return report(seconds, events, len(results))


@contextmanager
def worker(work: Callable[[Path], Iterator[None]], folder: Path) -> Iterator[Callable[[], float]]:
    """A process that does one piece of `work` at each call, and gives the seconds that it took."""
    here, there = SPAWN.Pipe()
    process = SPAWN.Process(target=_serve, args=(work, folder, there), daemon=True)
    process.start()
    there.close()  # so that the end of the process is seen here

    def once() -> float:
        here.send(None)
        taken: float = here.recv()
        return taken

    try:
        yield once
    finally:
        here.close()
        process.join()


def _serve(work: Callable[[Path], Iterator[None]], folder: Path, calls: Connection) -> None:
    """Times the next piece of work whenever it is asked to, until nobody asks any more."""
    pieces = work(folder)
    next(pieces)  # up to the first yield: the session
    with suppress(EOFError):
        while True:
            calls.recv()
            began = time.perf_counter()
            next(pieces)
            calls.send(time.perf_counter() - began)


def report(seconds: dict[str, list[float]], events: int, sessions: int) -> str:
    """The times of all files but the first as a Markdown table.

    >>> text = report({"ours": [9.0, 1.0, 2.0, 2.0], "streaming": [9.0, 4.0, 5.0, 6.0]}, 10, 3)
    >>> print(text.split("\\n\\n")[0])
    | seconds a file | median | min | max | ratio |
    |---|---|---|---|---|
    | ours | 2.00 | 1.00 | 2.00 | 1.0 |
    | streaming | 5.00 | 4.00 | 6.00 | 2.5 |
    """
    base_times = seconds["ours"]
    base = statistics.median(base_times[1:])
    lines = ["| seconds a file | median | min | max | ratio |", "|---|---|---|---|---|"]
    for side, times in seconds.items():
        median, least, most = statistics.median(times[1:]), min(times[1:]), max(times[1:])
        lines.append(f"| {side} | {median:.2f} | {least:.2f} | {most:.2f} | {median / base:.1f} |")
    first = ", ".join(f"{side} {times[0]:.1f} s" for side, times in seconds.items())
    return "\n".join(lines) + (
        f"\n\n{len(base_times)} files of {events:,} clicks, {sessions:,} sessions published by both, 0 differences."
        f" First file (cold): {first}.\n{os.cpu_count()} cores ({processor()}), Python {platform.python_version()},"
        f" Spark {version('pyspark')}, Delta {version('delta-spark')}, deltalake {version('deltalake')},"
        f" {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    )


def processor() -> str:
    """The processor's name, where Linux tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else []
    return names[0] if names else platform.machine()


def main() -> None:
    """`python -m jobs.bench [--files N] [--events N]`."""
    parser = argparse.ArgumentParser(description="Sessions: our runs beside Spark Structured Streaming's.")
    parser.add_argument("--files", type=int, default=10, help="at least 2; the first warms up")
    parser.add_argument("--events", type=int, default=1_000_000, help="clicks in each file")
    options = parser.parse_args()
    if options.files < 2:
        parser.error(f"need --files 2 or more, got {options.files}")
    with tempfile.TemporaryDirectory(prefix="windowlib-bench-") as folder:
        print(bench(Path(folder), options.files, options.events))


if __name__ == "__main__":
    main()
