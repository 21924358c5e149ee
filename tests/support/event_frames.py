"""Frames of events made by tests, as admission leaves them to a plan."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowlib.plans import names


def with_internal(events: DataFrame) -> DataFrame:
    """Adds the columns timestamp_ms and arrival to `events` under the internal names of plans."""
    return events.withColumns({names.TIMESTAMP_MS: F.col("timestamp_ms"), names.ARRIVAL: F.col("arrival")})
