"""Columns of `results` that follow from the event times of a window, in every plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, START_MS, clicks, clock
from windowlib.contract.result_tables import COMPUTED
from windowlib.definition.instants import time_of
from windowlib.inspection.lineage.explain_window import explain_window
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.embedded]

SAME = {"last_event_time": "max(at_ms)"}
"""Each computed column, and the aggregate that gives the same time in ms."""
LATE = 'allowed_lateness = "2h"'
HOUR_MS = 3_600_000
WINDOWS = {
    "sessions": f'type = "session"\ngap = "10m"\n{LATE}',
    "aligned": f'type = "sliding"\nsize = "1h"\nslide = "30m"\n{LATE}',
    "counts": 'type = "sliding_count"\nsize = 6\nslide = 4',
    "folded": f'type = "tumbling"\nsize = "1h"\n{LATE}\ntrigger = {{ type = "count", n = 3 }}',
    "kept": f'type = "tumbling"\nsize = "1h"\n{LATE}\nevictor = {{ type = "count", n = 3 }}',
}


@pytest.mark.parametrize("kind", WINDOWS)
def test_computed_columns_are_those_of_aggregates_over_event_times(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """Windows of several batches, late events, and a rerun that changes nothing."""
    head, _, _ = CLICKS.partition("[window]")
    aggregates = "\n".join(f'same_{name} = "{sql}"' for name, sql in SAME.items())
    definition = clicks(tmp_path, 3, f"{head}[window]\n{WINDOWS[kind]}\n[aggregates]\n{aggregates}\n")
    advance(definition, lambda: spark, clock=clock)
    rows = read_table(definition, "results").to_pylist()
    assert SAME.keys() == COMPUTED.keys()
    assert len(rows) > 20
    for row in rows:
        assert {name: time_of(row[name]) for name in SAME} == {name: row[f"same_{name}"] for name in SAME}
    if kind in ("sessions", "aligned"):
        everything = Rerun(START_MS - 10 * HOUR_MS, START_MS + 30 * HOUR_MS, "a test", "ann")
        advance(definition, lambda: spark, clock=clock, rerun=everything)
        for row in read_table(definition, "results").to_pylist():
            assert {name: time_of(row[name]) for name in SAME} == {name: row[f"same_{name}"] for name in SAME}
        explained = explain_window(definition, [rows[0]["user"]], rows[0]["same_last_event_time"])
        assert all(SAME.keys() <= row.keys() for window in explained.windows for row in window.published)
    if kind in ("sessions", "aligned", "counts"):
        assert verify(definition, VerifyRequest(), spark, clock).differences == []
