"""Runs of a pipeline whose clock a test sets: each look at the clock is a second later."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from windowlib.definition.definition import Definition
from windowlib.runs.advance import advance
from windowlib.runs.attempt import BatchReport

SECOND = 1000
EVENTS = pa.schema([("user", pa.string()), ("at", pa.int64()), ("v", pa.int64()), ("id", pa.string())])
TOML = """
name = "general"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at"
timestamp_unit = "ms"
max_files_per_run = 1
[watermark]
out_of_orderness = "20s"
[storage]
state_partition = "1m"
"""


def clock() -> int:
    """Each look at the clock is a second later; a batch is planned at the first."""
    clock.now += SECOND  # type: ignore[attr-defined]
    return clock.now  # type: ignore[attr-defined,no-any-return]


def run(definition: Definition, spark: SparkSession, **options: Any) -> list[BatchReport]:
    return advance(definition, lambda: spark, clock=clock, **options)
