"""Random small pipelines, and the outcomes of their checks.

A pipeline of sessions, tumbling or sliding windows reads some two hours of events of seven users at a time: most come
in order, some are late, some later than their windows are kept, some come twice or cannot be used. Times lie on whole
minutes, so that events touch the bounds of windows and the ends of sessions. In most of them a range is rerun.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.clicks import MINUTE_MS, SCHEMA_WITH_GAPS, START_MS
from windowlib.definition.definition import Definition, load_definition
from windowlib.engines import sail
from windowlib.ledger.ledger import Rejected
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import UnknownTable, read_table
from windowlib.quality.check import CheckResult, in_words
from windowlib.quality.validations import stored_outcomes
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

HOUR_MS = 60 * MINUTE_MS
BATCHES = 5
BATCH_MS = 2 * HOUR_MS
WINDOWS = (
    'type = "session"\ngap = "10m"',
    'type = "session"\ngap = "4m"',
    'type = "session"\ngap_column = "gap_ms"',
    'type = "tumbling"\nsize = "1h"',
    'type = "tumbling"\nsize = "30m"\noffset = "7m"',
    'type = "sliding"\nsize = "1h"\nslide = "15m"',
    'type = "sliding"\nsize = "50m"\nslide = "20m"',
)
COMPARED = ("results", "result_changes", "open_windows", "late_events", "quarantine", "watermarks", "seen_ids")
DEFINITION = """
name = "planted"
engine = "sail"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at_ms"
timestamp_unit = "ms"
min_file_age = "0s"
{event_id}
[watermark]
out_of_orderness = "{delay}"
{idle_timeout}
[window]
{window}
allowed_lateness = "{lateness}"
[aggregates]
events = "count(*)"
total = "sum(value)"
most = "max(value)"
"""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Definition of a seed, and the batch after which a range is rerun, if any."""

    seed: int
    window: str
    event_id: bool
    lateness: str
    delay: str
    idle: bool
    rerun_after: int | None

    @classmethod
    def of(cls, seed: int) -> Drawn:
        chance = random.Random(f"pipeline {seed}")
        return cls(
            seed,
            window=chance.choice(WINDOWS),
            event_id=chance.random() < 0.5,
            lateness=chance.choice(("0s", "30m", "2h")),
            delay=chance.choice(("5m", "20m")),
            idle=chance.random() < 0.3,
            rerun_after=chance.choice((None, 3, 4)),
        )

    def definition(self, folder: Path) -> Definition:
        """The definition in an empty folder, with a place for its source."""
        (folder / "incoming").mkdir(parents=True)
        file = folder / "planted.toml"
        text = DEFINITION.format(
            event_id='event_id = "id"' if self.event_id else "",
            delay=self.delay,
            idle_timeout='idle_timeout = "90m"' if self.idle else "",
            window=self.window,
            lateness=self.lateness,
        )
        file.write_text(text, encoding="utf-8")
        return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / "planted")})


@dataclass(frozen=True, slots=True)
class Played:
    """Outcome of a pipeline: each check by batch, a refusal, and the published rows."""

    checks: Mapping[int, list[CheckResult]]
    tables: Mapping[str, str]
    refused: bool = False
    error: str | None = None


def play(drawn: Drawn, folder: Path) -> Played:
    """A pipeline from its first batch to its last, in an empty folder; a refused batch ends it."""
    chance, definition = random.Random(drawn.seed), drawn.definition(folder)
    quiet = chance.randrange(3, BATCHES)  # where silence moves time, nothing comes for this batch
    refused, error = False, None
    try:
        for batch in range(1, BATCHES + 1):
            if batch != quiet or not drawn.idle:
                for _ in range(chance.choice((1, 1, 2))):
                    _arrive(definition, batch, chance)
            _run(definition, batch, finish=batch == BATCHES)
            if batch == drawn.rerun_after:
                from_ms = START_MS + chance.randrange(batch) * BATCH_MS
                to_ms = from_ms + chance.randrange(1, 5) * HOUR_MS
                _run(definition, batch, rerun=Rerun(from_ms, to_ms, "a range is rerun", "ann"))
    except Rejected:
        refused = True
    except Exception as problem:  # that it ends so is seen, too, but not by a check
        error = f"{type(problem).__name__}: {problem}"
    checks = {one.batch_id: in_words(one.suites, one.figures) for one in stored_outcomes(definition.store)}
    return Played(checks, {name: _digest(definition, name) for name in COMPARED}, refused, error)


def _run(definition: Definition, batch: int, **asked: Any) -> None:
    now_ms = START_MS + batch * BATCH_MS + HOUR_MS
    advance(definition, sail.session, clock=lambda: now_ms, **asked)


def _arrive(definition: Definition, batch: int, chance: random.Random) -> None:
    """One more file of the source."""
    folder = definition.source.path
    number = len(list(folder.iterdir())) + 1
    rows = [_row(f"{number}-{row}", batch, chance) for row in range(chance.randint(60, 90))]
    rows += [{**chance.choice(rows)} for _ in range(2)]
    if number > 1:
        rows += [{**_row(f"{number - 1}-{row}", batch, chance)} for row in range(2)]  # ids of the file before
    path = folder / f"{number}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA_WITH_GAPS), path)
    os.utime(path, ns=(number, number))


def _row(identity: str, batch: int, chance: random.Random) -> dict[str, Any]:
    late_min = chance.choices((0, chance.randrange(60), chance.randrange(400)), (90, 6, 4))[0]
    minute = chance.randrange(120) - late_min
    return {
        "id": identity,
        "user": None if chance.random() < 0.02 else f"u{max(0, chance.randrange(-3, 7))}",
        "at_ms": START_MS + batch * BATCH_MS + minute * MINUTE_MS,
        "value": chance.randrange(1000),
        "gap_ms": chance.choice((2, 5, 9)) * MINUTE_MS,
    }


def _digest(definition: Definition, name: str) -> str:
    """Checksum of a table's rows; for a missing table, of no rows."""
    try:
        rows = sorted(map(str, read_table(definition, name).to_pylist()))
    except UnknownTable:
        rows = []
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()
