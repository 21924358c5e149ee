"""Counters in Airflow's own metrics (StatsD, OpenTelemetry). Without a metrics server they do nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk.observability.stats import incr

from windowlib.airflow.outcome import results_of


def count(batches: Sequence[dict[str, Any]], tags: Mapping[str, str]) -> None:
    """Adds the batches, results and late events to `windowlib.batches`, `windowlib.results` and `windowlib.late`."""
    late = sum(int(batch.get("rows_late") or 0) for batch in batches)
    for name, number in (("batches", len(batches)), ("results", results_of(batches)), ("late", late)):
        if number:
            incr(f"windowlib.{name}", number, tags=dict(tags))
