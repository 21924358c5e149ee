"""Flink's DataStream API on this machine: one job that goes on from file to file, its state on the heap or in RocksDB.

The job is benchmarks/flink/WindowBench.java, compiled against Flink's JARs, which `make bench WORKLOADS=--get-flink`
fetches into `.flink` once. Flink reads Parquet only with Hadoop's help, so each file is rewritten beforehand, and not
timed, as 24 bytes an event. Watermarks come after each file, as a run has them. It takes no checkpoints, and its
results are plain files: what a restart would need is not paid for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.query import Count, Query, normal
from benchmarks.sides.side import FINISH, MissingSide, Task, Work
from windowlib.engines.jars import locked, present
from windowlib.engines.setup_jars import fetch
from windowlib.engines.setup_java import find_java
from windowlib.model.assigners import Cumulating, Session, Sliding, Tumbling

PROJECT = Path(__file__).resolve().parents[2]
JARS = PROJECT / ".flink"
SOURCE = Path(__file__).resolve().parents[1] / "flink" / "WindowBench.java"
LOCK = SOURCE.with_name("jars.lock")
VERSION = next(jar.version for jar in locked(LOCK) if jar.name == "flink-clients")
ROWS = ("key", "window_start", "window_end", "events", "total", "greatest")
FUNCTIONS = {"count": "events", "sum": "total", "max": "greatest"}
OPENED = ("java.lang", "java.util", "java.time")  # to Flink's serializers
END_MS = 2**63 - 1


def get(folder: Path = JARS) -> list[Path]:
    """Flink's JARs in `folder`, fetched when they are not there yet; raises MissingJars, UnusableJava."""
    fetch(folder, locked(LOCK))
    return sorted(folder.glob("*.jar"))


def need() -> None:
    if not present(JARS, locked(LOCK)):
        raise MissingSide(f"this side needs Flink's JARs in {JARS}; fetch them once: make bench WORKLOADS=--get-flink")
    if shutil.which("javac") is None:
        raise MissingSide("this side needs javac, found none on PATH: install a JDK (not a JRE) 17 or newer")


def refuses(query: Query) -> str | None:
    if isinstance(query.window, Count) and not query.keyed:
        return "count windows without a key are not written for it"
    if isinstance(query.window, Cumulating):
        return "Flink's DataStream API has no cumulating windows"
    return "this trigger or function is not written for it" if query.more else None


def heap(task: Task) -> Work:
    return _work("hashmap", task)


def rocksdb(task: Task) -> Work:
    return _work("rocksdb", task)


def deliver(file: Path, task: Task) -> None:
    """The events of a Parquet file as little-endian integers; the name gives the greatest time."""
    columns = task.queries[0].columns
    rows = pq.read_table(file, columns=[columns.key, columns.time, columns.value])
    time_ms = rows[columns.time].cast(pa.int64()).to_numpy() // 1000
    events = np.column_stack([rows[columns.key].to_numpy(), time_ms, rows[columns.value].to_numpy()])
    (task.incoming / f"{file.stem}-{time_ms.max()}.events").write_bytes(events.astype("<i8").tobytes())


def _work(backend: str, task: Task) -> Work:
    [query] = task.queries
    command = _command(backend, task)
    # Leaving the block closes the job's stdin, which ends it, and waits for that.
    with (
        (task.folder / "flink.log").open("w") as log,
        subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=log, text=True) as job,
    ):
        _expect(job, "ready", task)
        seen, watermark_ms = 0, 0
        while True:
            piece = yield
            files = sorted(task.incoming.glob("*.events"))
            for file in files[seen:]:
                newest_ms = int(file.stem.partition("-")[2])
                watermark_ms = max(watermark_ms, newest_ms - query.out_of_orderness_ms - 1)
                _order(job, f"{watermark_ms} {file}", task)
            seen = len(files)
            if piece == FINISH:
                _order(job, str(END_MS), task)


def _order(job: subprocess.Popen[str], line: str, task: Task) -> None:
    assert job.stdin is not None
    job.stdin.write(line + "\n")
    job.stdin.flush()
    _expect(job, "done", task)


def _expect(job: subprocess.Popen[str], word: str, task: Task) -> None:
    assert job.stdout is not None
    for line in job.stdout:
        if line.strip() == word:
            return
    raise RuntimeError(f"Flink's job has ended: {(task.folder / 'flink.log').read_text()}")


def _command(backend: str, task: Task) -> list[str]:
    [query] = task.queries
    match query.window:
        case Session(gap_ms=gap_ms):
            window = ["session", gap_ms, 0]
        case Tumbling(size_ms=size_ms):
            window = ["tumbling", size_ms, 0]
        case Sliding(size_ms=size_ms, slide_ms=slide_ms):
            window = ["sliding", size_ms, slide_ms]
        case Count(size=size):
            window = ["count", size, 0]
    results = task.folder / "results"
    results.mkdir()
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    classes = os.pathsep.join([str(_compiled(JARS / "classes")), f"{JARS}/*"])
    keyed = str(query.keyed).lower()
    arguments = [*window, keyed, query.allowed_lateness_ms, backend, os.cpu_count() or 2, results]
    return [find_java(), "-Xmx2g", *opened, "-cp", classes, "WindowBench", *map(str, arguments)]


def _compiled(folder: Path) -> Path:
    """The folder of the job's classes, newer than its source."""
    made = folder / "WindowBench.class"
    if not made.exists() or made.stat().st_mtime < SOURCE.stat().st_mtime:
        command = ["javac", "-nowarn", "-d", str(folder), "-cp", f"{JARS}/*", str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return folder


def published(task: Task, query: Query) -> pa.Table:
    """The newest row of each window; rows of sessions that were merged into a larger one later do not count."""
    files = sorted((task.folder / "results").glob("*.results"))
    rows = np.concatenate([np.fromfile(file, ">i8").reshape(-1, len(ROWS)).astype(np.int64) for file in files])
    table = dict(zip(ROWS, rows.T, strict=True))
    if isinstance(query.window, Count):
        order = np.argsort(table["key"], kind="stable")  # rows of one key lie in one file, in order
        keys = table["key"][order]
        number = np.empty(len(keys), np.int64)
        number[order] = np.arange(len(keys)) - np.searchsorted(keys, keys) + 1
        table["number"] = number
    else:
        kept = _newest(table["key"], table["window_start"], table["window_end"])
        table = {name: values[kept] for name, values in table.items()}
    found = {one.name: table[FUNCTIONS[one.function]] for one in query.aggregates}
    return normal(pa.table({**{name: table[name] for name in query.identity}, **found}), query)


def _newest(key: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The rows that lie in no later row of their key.

    >>> columns = [(1, 0, 5), (1, 7, 9), (1, 0, 9), (2, 0, 5), (2, 0, 5)]
    >>> _newest(*np.array(columns).T)
    array([2, 4])
    """
    order = np.lexsort((-np.arange(len(key)), -end, start, key))
    _, group = np.unique(key[order], return_inverse=True)
    width = int(end.max() - end.min()) + 1 if len(end) else 1
    reach = end[order] - (end.min() if len(end) else 0) + group * width
    before = np.concatenate([[-1], np.maximum.accumulate(reach)[:-1]])
    return order[reach > before]
