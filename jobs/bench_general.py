"""The general plan timed: sessions that fire at every fifth event, over 100,000 keys; and its memory for one large key.

`python -m jobs.bench_general` makes files of a million events, runs the pipeline over them one by one in a started
session, and prints the events per second of each whole run (plan, windows, checks, commits). The first file warms up.
`--one-key N` instead gives all N events to one key, and prints the most memory that a Python worker took: once with
aggregates, whose state does not grow, and once with a function over all elements of the window, which keeps them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from expectations.check import preload
from jobs.advance import advance
from jobs.bench import BASE_MS, TIMESTAMP, processor
from jobs.definition import Definition, load_definition
from jobs.spark import session

KEYS = 100_000
MINUTE_MS = 60_000
FILE_MS = 10 * MINUTE_MS
SAMPLE_S = 0.05

DEFINITION = """\
name = "general"
warehouse = "warehouse"

[source]
format = "parquet"
path = "incoming"
key = ["user_id"]
timestamp = "ts"
max_files_per_run = 1

[watermark]
out_of_orderness = "1m"
"""
COUNTING = """
[window]
type = "session"
gap = "2m"

[window.trigger]
type = "count"
n = 5

[aggregates]
events = "count(*)"
total = "sum(value)"
"""
KEEPING = """
[window]
type = "session"
gap = "2m"
function = "median_windows:Median"
reads = ["value"]

[window.output]
median = "double"
"""
MEDIAN = """\
from statistics import median


class Median:
    def process(self, values, context):
        return [{"median": float(median(value["value"] for value in values))}]

    def clear(self, context):
        pass
"""


def make_file(path: Path, number: int, events: int, keys: int) -> None:
    """Events of ten minutes, in order of time but for the last minute's worth of disorder, evenly over the keys."""
    rng = np.random.default_rng(number)
    offset = np.sort(rng.integers(0, FILE_MS, events)) - rng.integers(0, MINUTE_MS // 2, events)
    micros = (BASE_MS + number * FILE_MS + offset) * 1000
    columns = [
        pa.array(rng.integers(0, keys, events)),
        pa.array(micros).cast(TIMESTAMP),
        pa.array(rng.integers(1, 1001, events)),
    ]
    pq.write_table(pa.table(columns, names=["user_id", "ts", "value"]), path)


def define(folder: Path, windows: str) -> Definition:
    """The pipeline in `folder`, with its folder for files and its code."""
    (folder / "incoming").mkdir(parents=True)
    (folder / "median_windows.py").write_text(MEDIAN)
    (folder / "general.toml").write_text(DEFINITION + windows)
    return load_definition(folder / "general.toml")


def speed(folder: Path, files: int, events: int) -> str:
    """The seconds of each run, as a Markdown report."""
    definition = define(folder, COUNTING)
    preload()
    spark = session()
    seconds, fired = [], 0
    for number in range(files):
        make_file(folder / "next.parquet", number, events, KEYS)
        (folder / "next.parquet").rename(definition.source.path / f"{number:02}.parquet")
        began = time.perf_counter()
        [run] = advance(definition, lambda: spark)
        seconds.append(time.perf_counter() - began)
        fired += run.figures["windows_fired_on_time"] or 0
        print(f"file {number}: {seconds[-1]:.2f} s, {events / seconds[-1]:,.0f} events a second", flush=True)
    spark.stop()
    return report(seconds, events, fired)


def report(seconds: list[float], events: int, fired: int) -> str:
    """The times of all files but the first.

    >>> print(report([9.0, 2.0, 4.0, 2.0], 1_000_000, 7).split("\\n\\n")[0])
    | a run over 1,000,000 events | median | min | max |
    |---|---|---|---|
    | seconds | 2.00 | 2.00 | 4.00 |
    | events a second | 500,000 | 500,000 | 250,000 |
    """
    times = [statistics.median(seconds[1:]), min(seconds[1:]), max(seconds[1:])]
    lines = [f"| a run over {events:,} events | median | min | max |", "|---|---|---|---|"]
    lines.append(f"| seconds | {' | '.join(f'{time:.2f}' for time in times)} |")
    lines.append(f"| events a second | {' | '.join(f'{events / time:,.0f}' for time in times)} |")
    return (
        "\n".join(lines) + f"\n\n{KEYS:,} keys, {fired:,} firings. First file (cold): {seconds[0]:.1f} s.\n{_where()}"
    )


def memory(folder: Path, events: int) -> str:
    """The most memory that a Python worker took for a key with so many events, as a Markdown report."""
    lines = [f"| one key, {events:,} events | seconds | most memory of a worker |", "|---|---|---|"]
    spark = session()
    for name, windows in (("count trigger, aggregates", COUNTING), ("function over all elements", KEEPING)):
        definition = define(folder / name.split()[0], windows)
        make_file(definition.source.path / "0.parquet", 0, events, keys=1)
        began = time.perf_counter()
        with largest_worker() as most:
            advance(definition, lambda: spark)
        lines.append(f"| {name} | {time.perf_counter() - began:.1f} | {most[0] / 2**20:,.0f} MiB |")
    spark.stop()
    return "\n".join(lines) + f"\n\n{_where()}"


@contextmanager
def largest_worker() -> Iterator[list[int]]:
    """The greatest resident set of a Python worker below this process, in bytes, sampled while the block runs."""
    most, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(SAMPLE_S):
            for process in psutil.Process().children(recursive=True):
                try:
                    if "pyspark" in " ".join(process.cmdline()) and process.name().startswith("python"):
                        most[0] = max(most[0], process.memory_info().rss)
                except psutil.Error:
                    continue  # it has ended meanwhile

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield most
    finally:
        done.set()
        watcher.join()


def _where() -> str:
    versions = f"Spark {version('pyspark')}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    return f"{os.cpu_count()} cores ({processor()}), {versions}"


def main() -> None:
    """`python -m jobs.bench_general [--files N] [--events N] [--one-key N]`."""
    parser = argparse.ArgumentParser(description="The general plan: sessions that fire at every fifth event.")
    parser.add_argument("--files", type=int, default=5, help="at least 2; the first warms up")
    parser.add_argument("--events", type=int, default=1_000_000, help="events in each file")
    parser.add_argument("--one-key", type=int, metavar="N", help="measure memory instead, for one key with N events")
    options = parser.parse_args()
    if options.files < 2:
        parser.error(f"need --files 2 or more, got {options.files}")
    with tempfile.TemporaryDirectory(prefix="windowlib-bench-") as folder:
        if options.one_key:
            print(memory(Path(folder), options.one_key))
        else:
            print(speed(Path(folder), options.files, options.events))


if __name__ == "__main__":
    main()
