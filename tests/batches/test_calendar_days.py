"""Calendar windows from files to results, across a change of the clock, against dates of the standard library."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, SCHEMA, clicks, clock
from windowlib.definition.instants import time_of
from windowlib.inspection.lineage.explain_window import explain_window
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.embedded]

BERLIN = ZoneInfo("Europe/Berlin")
FIRST_MS = 1_774_605_600_000  # 2026-03-27 11:00 in Berlin, two days before a day of 23 hours
TIMES = range(FIRST_MS, FIRST_MS + 96 * 3_600_000, 1_800_000)


def test_results_are_those_of_local_dates_across_a_clock_change(spark: SparkSession, tmp_path: Path) -> None:
    head, _, _ = CLICKS.partition("[window]")
    window = 'type = "tumbling"\nevery = "1 day"\ntime_zone = "Europe/Berlin"\nallowed_lateness = "2h"'
    definition = clicks(tmp_path, 0, f'{head}[window]\n{window}\n[aggregates]\nclicks = "count(*)"\n')
    incoming = tmp_path / "incoming"
    incoming.mkdir(exist_ok=True)
    for number, times in enumerate((TIMES[:70], TIMES[70:])):
        rows = [{"id": f"{at_ms}", "user": "ann", "at_ms": at_ms, "value": 1} for at_ms in times]
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), incoming / f"{number}.parquet")
    advance(definition, lambda: spark, clock=clock)
    rows = read_table(definition, "results").sort_by("window_start").to_pylist()
    dates = Counter(datetime.fromtimestamp(at_ms / 1_000, BERLIN).date() for at_ms in TIMES)
    midnights = [datetime(date.year, date.month, date.day, tzinfo=BERLIN).astimezone(UTC) for date in sorted(dates)]
    ended = list(zip(midnights, midnights[1:], dates.values(), strict=False))
    assert [(row["window_start"], row["window_end"], row["clicks"]) for row in rows] == ended
    assert [(row["window_end"] - row["window_start"]).total_seconds() / 3_600 for row in rows] == [24, 24, 23, 24]
    [explained] = explain_window(definition, ["ann"], time_of(midnights[2])).windows
    assert explained.bounds_ms == (time_of(midnights[2]), time_of(midnights[3]))
    assert [row["values"] for row in explained.published] == [{"clicks": 46}]
    assert len(explained.events) == 46
