"""Texts in SQL mean the same on every engine: a doubled quote is a quote."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from windowlib.definition.definition import load_definition
from windowlib.engines.sail import is_sail
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

QUOTED = r"""
name = "quoted"
[source]
format = "parquet"
path = "incoming"
key = ["k"]
timestamp = "at"
timestamp_unit = "ms"
[watermark]
out_of_orderness = "0s"
[window]
type = "tumbling"
size = "1h"
[aggregates]
twice = "count(*) filter (where p = 'it''s')"
escaped = "count(*) filter (where p = 'it\\'s')"
double = 'count(*) filter (where p = "say ""it"" ")'
inside = "count(*) filter (where p like '%it''s%')"
summed = "sum(case when p in ('it''s', 'q') then n * 2 else 0 end)"
formula = "if(count(*) > 99, 'it''s', 'many''s')"
"""


@pytest.mark.spark
@pytest.mark.embedded  # Spark reads such texts in tests/plans/test_sql_parser.py
def test_a_quote_written_twice_is_a_quote(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "incoming").mkdir()
    texts = ["it's", "its", "x it's y", 'say "it" ', "say it "]
    rows = pa.table({"k": ["a"] * 5 + ["b"], "at": [0, 1, 2, 3, 4, 10**9], "p": [*texts, "z"], "n": [1] * 6})
    pq.write_table(rows, tmp_path / "incoming" / "1.parquet")
    (tmp_path / "quoted.toml").write_text(QUOTED)
    definition = load_definition(tmp_path / "quoted.toml")
    engine = "sail" if is_sail(spark) else "spark"
    definition = definition.model_copy(update={"store": Disk(tmp_path / "quoted"), "engine": engine})
    advance(definition, lambda: spark)
    [row] = read_table(definition, "results").to_pylist()
    found = {name: row[name] for name in ("twice", "escaped", "double", "inside", "summed", "formula")}
    assert found == {"twice": 1, "escaped": 1, "double": 1, "inside": 2, "summed": 2, "formula": "many's"}
