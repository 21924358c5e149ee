"""Windows past their cleanup time are counted, whether or not the batch has to read them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import MINUTE_MS, START_MS, arrive, clicks, clock
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]


def event(at: int) -> dict[str, object]:
    return {"id": f"at {at}", "user": f"u{at}", "at_ms": START_MS + at * MINUTE_MS, "value": 1}


def test_windows_that_are_dropped_unread_are_retired(tmp_path: Path, spark: SparkSession) -> None:
    definition = clicks(tmp_path, 0)
    arrive(tmp_path, 1, map(event, (0, 54, 180)))
    arrive(tmp_path, 2, map(event, (540,)))
    first, second = advance(definition, lambda: spark, clock=clock)
    assert first.figures["windows_open"] == 2  # that of minute 0 is past its cleanup time at once
    assert first.figures["windows_retired"] == 1
    assert second.figures["windows_open"] == 1
    assert second.figures["windows_retired"] == 2
    assert second.figures["events_in_state_before"] == 1  # that of minute 54 has fired: it is dropped unread
