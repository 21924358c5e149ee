"""Aggregates of a window with events, whose values are all null."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import START_MS, clock
from windowlib.definition.definition import load_definition
from windowlib.plans.aggregates.functions import CALLABLE, WRITTEN_OUT
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

DEFINITION = """
name = "nothing"
engine = "{engine}"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at_ms"
timestamp_unit = "ms"
min_file_age = "0s"
[watermark]
out_of_orderness = "0s"
[window]
type = "tumbling"
size = "1h"
[aggregates]
"""
SKETCH = "hll_sketch_agg"
BOOLEANS = ("bool_and", "bool_or")
OF_TWO = ("min_by", "max_by", "covar_pop", "covar_samp", "corr")
NOT_NULL = {"count": 0, "count_distinct": 0, "approx_count_distinct": 0, "collect_list": [], "collect_set": []}


def call(name: str) -> str:
    if name == "count_distinct":
        return "count(distinct n)"
    if name in ("histogram", "percentile"):
        return f"{name}(n, {'array(1, 10)' if name == 'histogram' else '0.5'})"
    return f"{name}({'flag' if name in BOOLEANS else 'n, n' if name in OF_TWO else 'n'})"


@pytest.mark.spark
@pytest.mark.embedded
def test_aggregates_of_no_values_are_null_but_counts_lists_and_histograms(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Sail publishes no sketch."""
    engine = request.config.getoption("--engine")
    names = [name for name in (*CALLABLE, *WRITTEN_OUT) if name != SKETCH or engine == "spark"]
    lines = "".join(f'a_{name} = "{call(name)}"\n' for name in names)
    (tmp_path / "incoming").mkdir()
    (tmp_path / "nothing.toml").write_text(DEFINITION.format(engine=engine) + lines)
    rows = {
        "user": ["ann"],
        "at_ms": [START_MS],
        "n": pa.array([None], pa.int64()),
        "flag": pa.array([None], pa.bool_()),
    }
    pq.write_table(pa.table(rows), tmp_path / "incoming" / "1.parquet")
    definition = load_definition(tmp_path / "nothing.toml").model_copy(update={"store": Disk(tmp_path / "warehouse")})
    advance(definition, lambda: spark, clock=clock, finish=True)
    [row] = read_table(definition, "results").to_pylist()
    given = {name: row[f"a_{name}"] for name in names}
    assert given.pop(SKETCH, b"") is not None
    expected = {**dict.fromkeys(given), **NOT_NULL, **{name: [0, 0, 0] for name in given if name == "histogram"}}
    assert given == expected
