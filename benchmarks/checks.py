"""`python -m benchmarks.checks`: what it costs that every batch is counted, checked, and shown on a page.

The definition has short tests of its result columns.

Sessions of clicks, in a started session, in pairs: of two batches one is published without asking the judge, and
without a page. Of the other: how long the figures take, which are counted from what was written, the judge, and the
page, which the process that has run the batch builds, as `windowlib run --report` does. Figures are counted of both,
and left out of what a batch without all this takes. First batches of `--events` each, then of one event each.

Each number is a median, in seconds that pass and in seconds of the processor: those of this process, its engine and the
judge together, which other work on the machine changes less. The last line is what all three cost together, and what
they may.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.clickstream import BASE_MS, Clicks
from benchmarks.publication import pipeline
from benchmarks.query import HOUR_MS
from windowlib.batches import figures
from windowlib.engines import sail
from windowlib.engines.spark import session
from windowlib.ledger.ledger import wall_clock_ms
from windowlib.pages import site
from windowlib.quality import check
from windowlib.runs.advance import batches
from windowlib.runs.attempt import BatchReport
from windowlib.runs.claimed_pipeline import first_batch
from windowlib.runs.run import RunRequest

DEFINITION = """\
name = "checked"
engine = "{engine}"
[source]
format = "parquet"
path = "incoming"
key = ["user_id"]
timestamp = "ts"
min_file_age = "0s"
max_files_per_run = 1
[watermark]
out_of_orderness = "5m"
[window]
type = "session"
gap = "30m"
[aggregates]
events = "count(*)"
total = "sum(value)"
[checks]
row_count = {{ min = 0 }}
[checks.columns]
events = {{ min = 1, max = 1_000_000, not_null = true }}
total = {{ min = 0, max = 1e12, not_null = true }}
user_id = {{ not_null = true }}
"""
PARTS = {"figures": (figures, "batch_figures"), "the judge": (check, "check"), "the page": (site, "report")}
MOST_SHARE, MOST_S = 0.05, 1.0  # of a large batch, and of one of one event


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds that passed, and seconds of the processor."""

    passed: float = 0.0
    used: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.passed + other.passed, self.used + other.used)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.passed - other.passed, self.used - other.used)


@dataclass(slots=True)
class Measured:
    """What batches took that are checked and shown, without that, and of those that are each part."""

    batches: list[Spent] = field(default_factory=list)
    without: list[Spent] = field(default_factory=list)
    parts: dict[str, list[Spent]] = field(default_factory=lambda: {name: [] for name in PARTS})

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """What was measured, in words, passed and used."""
        alone = median(self.without)
        yield "a batch, without all this", *words(alone)
        yield "the same, counted and checked, in turns with it", *words(median(self.batches))
        for name, spent in self.parts.items():
            yield f"of it, {name}" if name != "the page" else "afterwards, the page", *words(median(spent), alone)
        yield "figures, judge and page together", *words(self.together, alone)

    @property
    def together(self) -> Spent:
        """What all three take of a batch."""
        return median([sum(three, Spent()) for three in zip(*self.parts.values(), strict=True)])

    @property
    def share(self) -> float:
        """That part of a batch without them, of the processor."""
        return self.together.used / median(self.without).used


def median(spent: list[Spent]) -> Spent:
    """The medians of both."""
    return Spent(*(statistics.median(getattr(one, name) for one in spent) for name in ("passed", "used")))


def words(spent: Spent, of: Spent | None = None) -> tuple[str, str]:
    """Seconds, and which share they are of others."""
    passed, used = (f"{seconds:.2f} s" for seconds in (spent.passed, spent.used))
    if of is None:
        return passed, used
    return f"{passed}, {spent.passed / of.passed:.1%}", f"{used}, {spent.used / of.used:.1%}"


@contextmanager
def taking(spent: list[Spent]) -> Iterator[None]:
    """Adds to `spent` what the block takes."""
    others, own, passed = children_s(), time.process_time(), time.perf_counter()
    try:
        yield
    finally:
        passed, own = time.perf_counter() - passed, time.process_time() - own
        spent.append(Spent(passed, own + children_s() - others))


def children_s() -> float:
    """Of the processor, what the children of this process have used: the engine, where it is one, and the judge."""
    children = (one.cpu_times() for one in psutil.Process().children(recursive=True))
    return float(sum(one.user + one.system for one in children))


@contextmanager
def timed(name: str, spent: list[Spent]) -> Iterator[None]:
    """Adds to `spent` what each call of a part takes."""
    module, function = PARTS[name]
    real: Callable[..., Any] = getattr(module, function)

    def call(*given: Any) -> Any:
        with taking(spent):
            return real(*given)

    with mock.patch.object(module, function, call):
        yield


def measure(folder: Path, engine: str, spark: SparkSession, events: int, pairs: int, warm_up: int) -> Measured:
    """Batches of so many events, with all of it and without in turns; the first ones warm up."""
    definition, found = pipeline(folder, DEFINITION.format(engine=engine)), Measured()
    for number in range(2 * pairs + warm_up):
        at_ms = BASE_MS + number * 6 * HOUR_MS
        Clicks().write(folder / "incoming" / f"{number:06}.parquet", number, events, at_ms, 6 * HOUR_MS)
        here = found if number >= warm_up else Measured()
        (with_all if number % 2 == 0 else without)(definition, spark, here)
    return found


def one_batch(run: RunRequest, spark: SparkSession) -> BatchReport:
    """The only batch that is to do."""
    first = first_batch(run)
    assert first is not None, "a file has arrived"
    [report] = batches(run, first, lambda: spark)
    return report


def with_all(definition: Any, spark: SparkSession, found: Measured) -> None:
    """A batch that is counted and checked, then its page."""
    run = RunRequest.of(definition)
    with timed("figures", found.parts["figures"]), timed("the judge", found.parts["the judge"]), taking(found.batches):
        report = one_batch(run, spark)
    assert report.checks
    with timed("the page", found.parts["the page"]):
        site.report(definition, wall_clock_ms(), run.ledger)


def without(definition: Any, spark: SparkSession, found: Measured) -> None:
    """A batch that no judge is asked about, its figures left out."""
    run, whole, counted = RunRequest.of(definition), list[Spent](), list[Spent]()
    no_checks: Callable[..., list[Any]] = lambda *given: []  # noqa: E731
    with timed("figures", counted), mock.patch.object(check, "check", no_checks), taking(whole):
        report = one_batch(run, spark)
    assert not report.checks
    site.report(definition, wall_clock_ms(), run.ledger)  # so that the next page counts one batch, as in a pipeline
    found.without.append(whole[0] - counted[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000, help="of a large batch")
    parser.add_argument("--pairs", type=int, default=7, help="of large batches; of small ones three times as many")
    parser.add_argument("--engine", choices=("sail", "spark"), default="sail")
    parser.add_argument("--scratch", type=Path, help="a folder for the tables; otherwise a temporary folder")
    asked = parser.parse_args()
    gc.set_threshold(50_000)  # as every command does
    check.preload()
    spark = sail.session() if asked.engine == "sail" else session()
    shown = Table("what", f"passed, on {asked.engine}", "of the processor")
    if asked.scratch is not None:
        asked.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=asked.scratch) as scratch:
        large, small = (
            measure(Path(scratch) / str(events), asked.engine, spark, events, pairs, warm_up)
            for events, pairs, warm_up in ((asked.events, asked.pairs, 2), (1, 3 * asked.pairs, 6))
        )
    for title, found in ((f"{asked.events:,} events", large), ("1 event", small)):
        shown.add_section()
        shown.add_row(f"batches of {title}, {len(found.batches)} pairs")
        for row in found.rows():
            shown.add_row(*row)
    Console().print(shown)
    print(
        f"together {large.share:.1%} of a batch of {asked.events:,} events (at most {MOST_SHARE:.0%}),"
        f" {small.together.used:.2f} s of a batch of one event (at most {MOST_S:.0f} s)"
    )
