"""Numbers that one engine once read or floored wrongly, in whole pipelines on both engines."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from windowlib.definition.definition import Definition, load_definition
from windowlib.engines.sail import is_sail
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

pytestmark = pytest.mark.spark

DEFINITION = """
name = "numbers"
[source]
format = "parquet"
path = "incoming"
key = ["key"]
timestamp = "at"
timestamp_unit = "us"
max_files_per_run = 1
[watermark]
out_of_orderness = "1m"
[window]
type = "tumbling"
size = "1h"
[aggregates]
events = "count(*)"
total = "sum(x)"
least = "min(x)"
most = "max(x)"
"""
HOUR_US = 3_600_000_000
SCHEMA = pa.schema([("key", pa.string()), ("at", pa.int64()), ("x", pa.float64())])


def run(folder: Path, spark: SparkSession, batches: Sequence[Sequence[tuple[str, int, float]]]) -> Definition:
    """Runs the pipeline after each file."""
    (folder / "incoming").mkdir()
    (folder / "numbers.toml").write_text(DEFINITION)
    definition = load_definition(folder / "numbers.toml")
    engine = "sail" if is_sail(spark) else "spark"
    definition = definition.model_copy(update={"store": Disk(folder / "warehouse" / "numbers"), "engine": engine})
    for number, rows in enumerate(batches):
        path = folder / "incoming" / f"{number}.parquet"
        made = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
        pq.write_table(pa.Table.from_pylist(made, schema=SCHEMA), path)
        os.utime(path, ns=(number + 1, number + 1))
        advance(definition, lambda: spark)
    return definition


def published(definition: Definition) -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in read_table(definition, "results").to_pylist()}


@pytest.mark.embedded  # whose statistics once gave them; Spark computes the same windows below
def test_a_key_without_numbers_is_not_given_those_of_another(spark: SparkSession, tmp_path: Path) -> None:
    first = [("a", 0, math.nan), ("b", 1, 5.0), ("b", 2, 5.0)]  # by its statistics, a column of fives
    found = published(run(tmp_path, spark, [first, [("clock", 3 * HOUR_US, 1.0)]]))
    assert all(math.isnan(found["a"][name]) for name in ("total", "least", "most"))
    assert [found["b"][name] for name in ("events", "total", "least", "most")] == [2, 10.0, 5.0, 5.0]


@pytest.mark.both
def test_event_times_are_floored_on_both_sides_of_1970_and_malformed_at_the_ends_of_64_bits(
    spark: SparkSession, tmp_path: Path
) -> None:
    times = {"before": -1, "ms": -1000, "at": 0, "after": 999, "hour": -HOUR_US, "earlier": -HOUR_US - 1}
    ends = [("a", 2**63 - 1, 1.0), ("b", -(2**63), 1.0), ("b", -(2**63) + 999, 1.0)]
    floored = [(key, us, 1.0) for key, us in times.items()]
    definition = run(tmp_path, spark, [[*ends, *floored, ("clock", 3 * HOUR_US, 1.0)]])
    found = published(definition)
    windows = {key: row["window_start"].timestamp() / 3600 for key, row in found.items()}
    assert windows == {"before": -1, "ms": -1, "at": 0, "after": 0, "hour": -1, "earlier": -2}
    last = {key: row["last_event_time"].timestamp() for key, row in found.items()}
    assert (last["before"], last["after"], last["earlier"]) == (-0.001, 0.0, -3600.001)
    assert [row["reason"] for row in read_table(definition, "quarantine").to_pylist()] == ["malformed"] * 3
