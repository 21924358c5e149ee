"""Expected windows in the form that every kind of plan returns.

results, in_flight: key, the bounds (ms or numbers), elements, last_event_ms, and the definition's partial aggregates
late: key, window_start_ms, window_end_ms, batch_id, should_be and is (expected and actual number of events of the
      window in `late_events` that are in no window)

A frame without rows is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowlib.model.rerun import TimeRange
from windowlib.plans.step import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class ExpectedWindows:
    """Expected windows of a pipeline. `unsure` holds key and bounds of chains of sessions that cannot be compared."""

    step: Step
    results: DataFrame | None
    in_flight: DataFrame | None
    late: DataFrame | None = None
    unsure: DataFrame | None = None


def meets_any(spans: Sequence[TimeRange], start: str, end: str, *, touching: bool = False) -> str:
    """SQL that tests if a window overlaps a span. With `touching`, it also tests if the window touches a span.

    `start` and `end` are SQL for the window's bounds in ms.
    """
    less = "<=" if touching else "<"
    met = (f"({start} {less} {span.to_ms} AND {end} {less.replace('<', '>')} {span.from_ms})" for span in spans)
    return f"({' OR '.join(met)})" if spans else "false"
