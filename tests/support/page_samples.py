"""Small pipelines for tests of the pages, run on Sail hour by hour: all is well, trouble, a batch waits, nothing yet.

A process of its own (`python -m tests.support.page_samples FOLDER [HOURS]`), since PySpark knows one kind of session in
a process.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowlib.definition.definition import Definition, load_definition
from windowlib.ledger.ledger import Rejected
from windowlib.ledger.rerun_request import Rerun
from windowlib.reruns.dry_run import dry_run
from windowlib.runs.advance import advance
from windowlib.runs.spark_sessions import spark_sessions
from windowlib.storage.disk import Disk

HOUR_MS = 3_600_000
NOW_MS = 1_772_712_000_000  # 2026-03-05, noon UTC
AS_OF_MS = NOW_MS + 10 * 60_000  # time of the pages
HOURS = {"orders": 4, "clicks": 6, "payments": 2}  # files of a pipeline, one an hour; the newest arrived at NOW_MS
SCRIPT = "<script>alert(1)</script>"
DEFINITION = """
name = "{name}"
engine = "sail"
warehouse = "warehouse"
[source]
format = "parquet"
path = "incoming-{name}"
key = ["user"]
timestamp = "at_ms"
timestamp_unit = "ms"
event_id = "id"
max_files_per_run = 1
[watermark]
out_of_orderness = "10m"
[window]
{window}
allowed_lateness = "30m"
[aggregates]
clicks = "count(*)"
total = "sum(value)"
[airflow]
schedule = "0 * * * *"
{checks}
"""
SESSION, TUMBLING = 'type = "session"\ngap = "20m"', 'type = "tumbling"\nsize = "15m"'
REFUSING = """{"expectations": [{"type": "expect_column_max_to_be_between",
 "kwargs": {"column": "quarantined_null_key", "max_value": 20}, "severity": "critical",
 "description": "Nearly every event has a user."}]}"""
SCHEMA = pa.schema([("id", pa.string()), ("user", pa.string()), ("at_ms", pa.int64()), ("value", pa.int64())])
WELL, TROUBLE, WAITING, NEW = NAMES = ("orders", "clicks", "payments", "returns")


def definition(folder: Path, name: str) -> Definition:
    """The definition of one of the pipelines; its file is written where it is not there."""
    file = folder / f"{name}.toml"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"incoming-{name}").mkdir()
        (folder / "refusing.json").write_text(REFUSING, encoding="utf-8")
        window = TUMBLING if name == WELL else SESSION
        checks = (
            '[checks]\nfigures_suite = "refusing.json"\n' if name == WAITING else "[checks]\nmax_late_share = 0.05\n"
        )
        file.write_text(DEFINITION.format(name=name, window=window, checks=checks), encoding="utf-8")
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / name)})


def arrival(name: str, hours_ago: int, count: int = 60) -> Iterator[dict[str, Any]]:
    """The rows of one file: an hour of events, few at night, some late; of `TROUBLE` a gap and a surge of late ones."""
    chance, end_ms = random.Random(f"{name} {hours_ago}"), NOW_MS - hours_ago * HOUR_MS
    trouble = name == TROUBLE
    if trouble and hours_ago in (3, 4):
        count = 2
    for row in range(count + chance.randrange(count // 2 + 1)):
        late_ms = (
            chance.randrange(2, 7) * HOUR_MS if chance.random() < (0.3 if trouble and hours_ago < 2 else 0.01) else 0
        )
        back_ms = chance.randrange(HOUR_MS) + (4 * HOUR_MS if count == 2 else 0)
        user = SCRIPT if row == 5 else f"u{chance.randrange(12)}"
        if (name == WAITING and hours_ago == 0 and row % 2) or chance.random() < 0.01:
            user = None
        at_ms = end_ms - back_ms - late_ms
        if row == 7 and hours_ago % 3 == 0:
            at_ms += 90 * 24 * HOUR_MS  # a clock that is wrong
        yield {"id": f"{hours_ago}-{row}", "user": user, "at_ms": at_ms, "value": chance.randrange(100)}


def since(then_ms: int) -> Callable[[], int]:
    """A clock that starts at the given time."""
    began = time.monotonic()
    return lambda: then_ms + int((time.monotonic() - began) * 1000)


def run(folder: Path, name: str, hours: int) -> None:
    """Lets each file arrive, and runs at its hour."""
    pipeline = definition(folder, name)
    spark = spark_sessions(pipeline)
    for hours_ago in reversed(range(hours)):
        at_ms = NOW_MS - hours_ago * HOUR_MS
        path = folder / f"incoming-{name}" / f"{hours - hours_ago:04}.parquet"
        pq.write_table(pa.Table.from_pylist(list(arrival(name, hours_ago)), schema=SCHEMA), path)
        os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))
        with suppress(Rejected):
            advance(pipeline, spark, clock=since(at_ms + 60_000))
    if name == TROUBLE:
        late = Rerun(NOW_MS - 3 * HOUR_MS, NOW_MS - 2 * HOUR_MS, "the phones' queue was stuck", "ann", late_only=True)
        dry_run(pipeline, late, since(NOW_MS + 90_000)).preview(spark())
        advance(pipeline, spark, clock=since(NOW_MS + 120_000), rerun=late)


def all_of_them(folder: Path, hours: int | None = None) -> None:
    """The four pipelines, of which `NEW` has not run yet."""
    for name in (WELL, TROUBLE, WAITING):
        run(folder, name, hours or HOURS[name])
    definition(folder, NEW)


def has_sail(request: pytest.FixtureRequest) -> bool:
    """Tests if this process may run Sail: a process with a JVM needs another one for it."""
    return bool(request.config.getoption("--engine") == "sail")


if __name__ == "__main__":
    all_of_them(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else None)
