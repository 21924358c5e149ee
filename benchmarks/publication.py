"""`python -m benchmarks.publication`: what it costs that a batch is prepared, synced and then rolled forward.

Two questions, both on Sail in this process, on the disk of `--scratch`:

* A batch of ten thousand files (a window on each of so many days) is killed as soon as it is prepared. How long does
  the next run take to roll it forward, and by how much has the ledger grown?
* Of small batches, one event each: how long do the synced publication and its row take, and how long all flushes? Every
  other batch is run with flushes that do nothing.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from windowlib.definition.definition import Definition, load_definition
from windowlib.engines import sail
from windowlib.ledger import prepare
from windowlib.quality.check import preload
from windowlib.runs import attempt
from windowlib.runs.advance import advance
from windowlib.storage import disk as storage_disk

DAY_MS = 86_400_000
DEFINITION = """\
name = "publication"
engine = "sail"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at_ms"
timestamp_unit = "ms"
min_file_age = "0s"
[watermark]
out_of_orderness = "0s"
[window]
type = "tumbling"
size = "1h"
[aggregates]
events = "count(*)"
"""


class Killed(Exception):
    """The run is dead as soon as its batch is prepared."""


def pipeline(folder: Path, definition: str = DEFINITION) -> Definition:
    """A new pipeline in an empty folder."""
    (folder / "incoming").mkdir(parents=True)
    (folder / "pipeline.toml").write_text(definition, encoding="utf-8")
    return load_definition(folder / "pipeline.toml")


def arrive(folder: Path, number: int, at_ms: list[int]) -> None:
    """The file `number`: an event at each of these times."""
    rows = pa.table({"user": [f"u{at % 7}" for at in at_ms], "at_ms": at_ms})
    pq.write_table(rows, folder / "incoming" / f"{number:06}.parquet")


def many_files(folder: Path, files: int) -> dict[str, str]:
    """Rolls forward a batch of so many files."""
    definition = pipeline(folder)
    arrive(folder, 1, [day * DAY_MS for day in range(files + 1)])
    wrote: list[float] = []

    def killed(*given: Any) -> None:
        raise Killed

    with timed(prepare, "write", wrote), mock.patch.object(attempt, "publish", killed):
        try:
            advance(definition, sail.session)
        except Killed:
            ledger = folder / "warehouse" / "publication" / "ledger"
            before = size_of(ledger)

    def nothing_is_computed() -> Any:
        raise AssertionError("a prepared batch needs no engine")

    began = time.perf_counter()
    [report] = advance(definition, nothing_is_computed)
    seconds = time.perf_counter() - began
    added = len(list((Path(definition.store.url) / "results").rglob("*.parquet")))
    assert added == files, f"{added} files in results"
    return {
        "files of the batch": f"{added:,}",
        "written down and synced": f"{wrote[0]:.2f} s",
        "rolled forward by the next run": f"{report.seconds:.2f} s, {seconds:.2f} s with the run around it",
        "the ledger before and after": f"{before / 1e3:,.0f} kB, {size_of(ledger) / 1e3:,.0f} kB",
    }


def small_batches(folder: Path, batches: int) -> dict[str, str]:
    """Batches of one event; every other one flushes nothing."""
    definition = pipeline(folder)
    whole: dict[bool, list[float]] = {True: [], False: []}
    prepared: list[float] = []
    for number in range(2 * batches + 10):
        arrive(folder, number, [number * DAY_MS])
        flushes = number % 2 == 0
        here: list[float] = []
        began = time.perf_counter()
        with timed(prepare, "write", here), timed(attempt, "fix", here), flushing(flushes):
            advance(definition, sail.session)
        if number >= 10:  # the first ones warm up
            whole[flushes].append(time.perf_counter() - began)
            prepared += [sum(here)] if flushes else []
    with_flushes, without = statistics.median(whole[True]), statistics.median(whole[False])
    return {
        "a run of one small batch": f"{with_flushes * 1e3:.0f} ms (median of {batches})",
        "the same without flushes": f"{without * 1e3:.0f} ms",
        "of it: the publication, synced, and its row": f"{statistics.median(prepared) * 1e3:.0f} ms",
    }


@contextmanager
def timed(module: Any, name: str, seconds: list[float]) -> Iterator[None]:
    """Adds to `seconds` how long each call of a function takes."""
    real: Callable[..., Any] = getattr(module, name)

    def call(*given: Any) -> Any:
        began = time.perf_counter()
        try:
            return real(*given)
        finally:
            seconds.append(time.perf_counter() - began)

    with mock.patch.object(module, name, call):
        yield


@contextmanager
def flushing(really: bool) -> Iterator[None]:
    """Where not `really`, nothing is asked of the disk."""
    with mock.patch.object(storage_disk, "flush", storage_disk.flush if really else lambda path: None):
        yield


def size_of(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--scratch", type=Path, help="a folder on the disk that is asked; otherwise a temporary folder")
    asked = parser.parse_args()
    preload()
    shown = Table("what", "measured")
    with tempfile.TemporaryDirectory(dir=asked.scratch) as scratch:
        for part in (
            many_files(Path(scratch) / "many", asked.files),
            small_batches(Path(scratch) / "small", asked.batches),
        ):
            for row in part.items():
                shown.add_row(*row)
            shown.add_section()
    Console().print(shown)
