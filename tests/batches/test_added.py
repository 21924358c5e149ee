"""Columns may be added on a live pipeline: filled by events from then on, and every row says what it has of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks, clock
from windowlib.definition.definition import Definition
from windowlib.inspection.verify.asked import Asked
from windowlib.inspection.verify.verify import verify
from windowlib.runs.advance import advance
from windowlib.tables.read import read_table
from windowlib.tables.rerun import Rerun

PLAIN = {"n": "count(*)", "total": "sum(value)"}
MORE = {**PLAIN, "values": "collect_list(value)", "most": "max(value) + 0 * count(*)"}
WINDOWS = {
    "tumbling": 'type = "tumbling"\nsize = "10m"\nallowed_lateness = "2h"',
    "sliding": 'type = "sliding"\nsize = "20m"\nslide = "10m"\nallowed_lateness = "2h"',
    "session": 'type = "session"\ngap = "10m"\nallowed_lateness = "2h"',
    "count": 'type = "tumbling_count"\nsize = 2',
    "early": 'type = "tumbling"\nsize = "10m"\nallowed_lateness = "2h"\n[window.trigger]\ntype = "count"\ncount = 2',
}


def defined(folder: Path, aggregates: Mapping[str, str], window: str = "session", more: str = "") -> Definition:
    source, _, _ = CLICKS.replace('event_id = "id"\n', "").partition("[window]")
    lines = "".join(f"{name} = '''{sql}'''\n" for name, sql in aggregates.items())
    return clicks(folder, 0, f"{source}[window]\n{WINDOWS[window]}\n[aggregates]\n{lines}{more}")


def events(*minutes: int, value: int = 1, user: str = "a") -> list[dict[str, Any]]:
    return [{"id": None, "user": user, "at_ms": START_MS + m * MINUTE_MS, "value": value} for m in minutes]


def run(definition: Definition, spark: SparkSession, rerun: Rerun | None = None) -> list[str]:
    """What the run says."""
    said: list[str] = []
    advance(definition, lambda: spark, clock=clock, rerun=rerun, on_note=said.append)
    return said


def results(definition: Definition, *columns: str, table: str = "results") -> list[tuple[Any, ...]]:
    rows = read_table(definition, table).to_pylist()
    return sorted((tuple(row[name] for name in columns) for row in rows), key=repr)


@pytest.mark.spark
@pytest.mark.both
@pytest.mark.parametrize("window", ["tumbling", "session"])
def test_windows_of_events_since_then_are_filled(spark: SparkSession, tmp_path: Path, window: str) -> None:
    first = defined(tmp_path, PLAIN, window)
    arrive(tmp_path, 1, [*events(0, value=5), *events(31, value=6)])
    run(first, spark)
    definition = defined(tmp_path, MORE, window)
    arrive(tmp_path, 2, [*events(2, value=1), *events(32, value=7), *events(45, value=8), *events(100, value=1)])
    said = run(definition, spark)
    assert (
        len([one for one in said if "from batch 2 on: windows with events from before batch 2 have none" in one]) == 2
    )
    columns = "total", "values", "most", "filled_columns"
    assert results(definition, *columns) == [
        (13, None, None, None),
        (6, None, None, None),
        (8, [8], 8, "values, most"),
    ]
    assert not verify(definition, Asked(), spark, clock).differs
