"""Spark jobs of a session, counted, and the rows of batches whose jobs are counted."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from tests.support.clicks import START_MS


def jobs_so_far(spark: SparkSession) -> int:
    """Number of jobs that this session has started; its list of jobs forgets the oldest."""
    scheduler: Any = spark.sparkContext._jsc.sc().dagScheduler()
    return int(scheduler.numTotalJobs())


def visits(first_minute: int, **changes: Any) -> list[dict[str, Any]]:
    """A visit of three clicks, twenty minutes of silence before the next file's."""
    return [
        {"id": f"{minute}", "user": "ann", "at_ms": START_MS + minute * 60_000, "value": 1, **changes}
        for minute in range(first_minute, first_minute + 3)
    ]
