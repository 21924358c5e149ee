"""`python -m benchmarks.checks`: what it costs that every batch is counted, checked, and shown on pages.

Sessions of clicks, in a started session: every other batch is published without asking the judge. Of those that are
checked: how long the figures take, which are counted from what was written, and the judge; afterwards the page is
built. First batches of `--events` each, then of one event each.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.clickstream import BASE_MS, Clicks
from benchmarks.publication import pipeline, timed
from benchmarks.query import HOUR_MS
from windowlib.batches import figures
from windowlib.engines import sail
from windowlib.engines.spark import session
from windowlib.pages import site
from windowlib.quality import check
from windowlib.runs.advance import advance
from windowlib.tables.ledger import wall_clock_ms

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
"""


@dataclass(slots=True)
class Measured:
    """Seconds: of batches that are checked and of others, and of each part of those that are checked."""

    checked: list[float] = field(default_factory=list)
    unchecked: list[float] = field(default_factory=list)
    figures: list[float] = field(default_factory=list)
    judge: list[float] = field(default_factory=list)
    page: list[float] = field(default_factory=list)

    def rows(self, title: str) -> Iterator[tuple[str, str]]:
        """What was measured, in words, with medians."""
        without = statistics.median(self.unchecked)
        yield f"{title}, not checked", f"{without:.2f} s"
        yield "the same, checked, in turns with it", f"{statistics.median(self.checked):.2f} s"
        parts: Iterable[tuple[str, list[float]]] = (
            ("of it: figures", self.figures),
            ("of it: waiting for the judge", self.judge),
            ("afterwards: the page", self.page),
        )
        for name, seconds in parts:
            yield name, f"{statistics.median(seconds):.2f} s, {statistics.median(seconds) / without:.1%}"


def measure(folder: Path, engine: str, spark: SparkSession, events: int, pairs: int, warm_up: int) -> Measured:
    """Batches of so many events, checked and not in turns; the first ones warm up."""
    definition, found = pipeline(folder, DEFINITION.format(engine=engine)), Measured()
    for number in range(2 * pairs + warm_up):
        at_ms = BASE_MS + number * 6 * HOUR_MS
        Clicks().write(folder / "incoming" / f"{number:06}.parquet", number, events, at_ms, 6 * HOUR_MS)
        checked = number % 2 == 0
        here = Measured() if number < warm_up else found
        with timed(figures, "of_batch", here.figures if checked else []), judging(checked, here.judge):
            began = time.perf_counter()
            [report] = advance(definition, lambda: spark)
            (here.checked if checked else here.unchecked).append(time.perf_counter() - began)
        assert bool(report.checks) == checked
        with timed(site, "report", here.page):
            site.report(definition, wall_clock_ms())
    return found


def judging(really: bool, seconds: list[float]) -> Any:
    """The judge is asked, and how long it takes added to `seconds`; or else nothing is asked."""
    no_checks: Callable[..., list[Any]] = lambda *given: []  # noqa: E731
    return timed(check, "check", seconds) if really else mock.patch.object(check, "check", no_checks)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000, help="of a large batch")
    parser.add_argument("--pairs", type=int, default=5, help="of large batches; of small ones five times as many")
    parser.add_argument("--engine", choices=("sail", "spark"), default="sail")
    parser.add_argument("--scratch", type=Path, help="a folder for the tables; otherwise a temporary folder")
    asked = parser.parse_args()
    check.preload()
    spark = sail.session() if asked.engine == "sail" else session()
    shown = Table("what", f"median on {asked.engine}")
    with tempfile.TemporaryDirectory(dir=asked.scratch) as scratch:
        for events, pairs, warm_up in ((asked.events, asked.pairs, 2), (1, 5 * asked.pairs, 6)):
            of_size = measure(Path(scratch) / str(events), asked.engine, spark, events, pairs, warm_up)
            for row in of_size.rows(f"a batch of {events:,} event{'s' if events > 1 else ''}"):
                shown.add_row(*row)
            shown.add_section()
    Console().print(shown)
