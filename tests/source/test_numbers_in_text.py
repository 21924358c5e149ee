"""Event times as texts of numbers, with a unit: read as numbers in every format, or malformed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.source.text_pipeline import DEFINITION
from tests.support.clicks import CLICKS, START_MS, clicks, clock
from windowlib.definition.definition import load_definition
from windowlib.engines.sail import is_sail
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

TEXTS = [f" {START_MS}", f"+{START_MS + 1} ", "1.5", "soon", "", "9" * 30, None]
REASONS = ["malformed", "malformed", "malformed", "malformed", "null_timestamp"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded  # Spark has those of JSON, below
def test_texts_of_numbers_in_parquet(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, CLICKS.replace('event_id = "id"\n', ""))
    definition = definition.model_copy(update={"engine": "sail" if is_sail(spark) else "spark"})
    path = tmp_path / "incoming" / "1.parquet"
    pq.write_table(pa.table({"user": ["u"] * len(TEXTS), "at_ms": TEXTS, "value": [1] * len(TEXTS)}), path)
    os.utime(path, ns=(1, 1))
    advance(definition, lambda: spark, clock=clock, finish=True)
    [row] = read_table(definition, "results").to_pylist()
    assert row["clicks"] == 2
    assert round(row["window_start"].timestamp() * 1000) == START_MS
    refused = read_table(definition, "quarantine").to_pylist()
    assert sorted(one["reason"] for one in refused) == REASONS
    assert any('"soon"' in one["raw"] for one in refused)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
def test_texts_of_numbers_in_json(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "incoming").mkdir()
    lines = [json.dumps({"user": "u", "at_ms": text, "value": 1}) for text in TEXTS]
    (tmp_path / "incoming" / "1.json").write_text("\n".join(lines))
    file = tmp_path / "texts.toml"
    file.write_text(DEFINITION.format(format="json", dialect="").replace('at_ms = "bigint"', 'at_ms = "string"'))
    definition = load_definition(file)
    advance(definition, lambda: spark, clock=clock, finish=True)
    assert [row["n"] for row in read_table(definition, "results").to_pylist()] == [2]
    assert sorted(row["reason"] for row in read_table(definition, "quarantine").to_pylist()) == REASONS
