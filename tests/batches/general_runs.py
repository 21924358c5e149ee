"""Runs of a pipeline with a test's clock, which advances by a second each time it is read."""

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
    """Clock that advances by a second each time it is read; a batch is planned at its first time."""
    clock.now += SECOND  # type: ignore[attr-defined]
    return clock.now  # type: ignore[attr-defined,no-any-return]


def run(definition: Definition, spark: SparkSession, **options: Any) -> list[BatchReport]:
    return advance(definition, lambda: spark, clock=clock, **options)
