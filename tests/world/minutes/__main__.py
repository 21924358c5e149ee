"""`python -m tests.world.minutes --minutes 60`: two pipelines scheduled every minute in a local Airflow of their own.

Each minute a file of live events is moved into the source of each. In the end every minute must have had its run, at
the first try, its report at most a minute after its advance; and every row of every file must be in a result or in
flight. It takes the minutes and at most ten more; all processes that it starts end with it.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from docs import local_airflow
from tests.world.minutes.judge import DagRun, run_faults, runs, table_faults
from tests.world.minutes.place import MINUTE_MS, WINDOWS, Feed, make, now_ms
from windowlib.definition.instants import instant

AFTER_S = 300  # for the runs of the last minutes to end
LOOK_EVERY_S = 0.5


def play(folder: Path, minutes: int) -> tuple[Feed, int]:
    """Runs Airflow over the minutes; returns the files fed, and the start of the first minute."""
    port = local_airflow.free_port(18_080)
    settings = local_airflow.environment(folder, port)
    local_airflow.prepare(settings)
    with local_airflow.running(settings, port) as airflow:
        begin_ms = -(-now_ms() // MINUTE_MS) * MINUTE_MS
        print(f"Airflow is at work on port {port}; the first minute is {instant(begin_ms)}", flush=True)
        feed, until_ms = Feed(folder, minutes), begin_ms + minutes * MINUTE_MS
        while airflow.is_whole() and now_ms() < until_ms + AFTER_S * 1000:
            if feed.is_due(now_ms(), begin_ms):
                feed.move()
            if now_ms() > until_ms and all(_over(database(folder), name, begin_ms, minutes) for name in WINDOWS):
                break
            time.sleep(LOOK_EVERY_S)
        if not airflow.is_whole():
            print("a part of Airflow ended by itself: see airflow.log", flush=True)
    return feed, begin_ms


def _over(file: Path, name: str, begin_ms: int, minutes: int) -> bool:
    found = {run.minute_ms: run for run in runs(file, f"windows_{name}")}
    wanted = [begin_ms + number * MINUTE_MS for number in range(minutes)]
    return all(minute in found and found[minute].is_over for minute in wanted)


def database(folder: Path) -> Path:
    return local_airflow.home(folder) / "airflow.db"


def faults(folder: Path, feed: Feed, begin_ms: int) -> Iterator[str]:
    """Faults of the runs and the tables."""
    for name in WINDOWS:
        found = runs(database(folder), f"windows_{name}")
        print(shown(name, [run for run in found if run.minute_ms >= begin_ms]), flush=True)
        yield from (f"{name}: {fault}" for fault in run_faults(found, begin_ms, feed.minutes))
        file = folder / "dags" / "pipelines" / f"{name}.toml"
        yield from (f"{name}: {fault}" for fault in table_faults(file, feed.events[name], feed.moved))


def shown(name: str, found: Sequence[DagRun]) -> str:
    """A line of a table: number of runs, their durations, and the delays of starts and reports."""
    ended = [run for run in found if run.start_ms and run.end_ms]
    took = [(run.end_ms or 0) - (run.start_ms or 0) for run in ended]
    began = [(run.start_ms or 0) - run.minute_ms - MINUTE_MS for run in ended]
    reports = [run.report_after_ms for run in ended if run.report_after_ms is not None]
    columns = [_spread(numbers) for numbers in (began, took, reports)]
    return f"{name:10}{len(found):6}{len(reports):9}" + "".join(f"{one:>24}" for one in columns)


HEAD = f"{'pipeline':10}{'runs':>6}{'reports':>9}" + "".join(
    f"{one:>24}" for one in ("begun after, s", "run took, s", "report after, s")
)


def _spread(numbers_ms: Sequence[int]) -> str:
    """Median and most, in seconds."""
    if not numbers_ms:
        return "none"
    return f"median {median(numbers_ms) / 1000:.1f}, most {max(numbers_ms) / 1000:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--folder", type=Path, help="where Airflow and the pipelines are put; it must not exist yet")
    asked = parser.parse_args()
    folder = (asked.folder or Path(tempfile.mkdtemp(prefix="minutes-")) / "airflow").absolute()
    print(f"{asked.minutes} minutes, in {folder}", flush=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("stopped"))  # which ends Airflow, too
    make(folder)
    begun = time.monotonic()
    feed, begin_ms = play(folder, asked.minutes)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(HEAD)
    found = list(faults(folder, feed, begin_ms))
    cores = (used.ru_utime + used.ru_stime) / (time.monotonic() - begun)
    print(f"{feed.moved} files each, {sum(map(len, feed.events.values())):,} rows; {cores:.2f} cores on average")
    if found:
        sys.exit("\n".join([f"{len(found)} faults:", *found, f"all of it is in {folder}"]))
    print("every minute has had its run, each report came in time, each row is in one window")
    if not asked.folder:
        shutil.rmtree(folder.parent)


if __name__ == "__main__":
    main()
