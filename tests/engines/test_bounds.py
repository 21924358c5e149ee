"""Bound of an aggregate's content for one window: a batch that exceeds it names the window and stops."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from windowlib.decisions.verdicts import abandon
from windowlib.definition.definition import Definition, load_definition
from windowlib.engines.sail import is_sail
from windowlib.ledger.ledger import wall_clock_ms
from windowlib.ledger.rerun_request import Rerun
from windowlib.model.errors import InvalidSpec
from windowlib.publication.readers import read_table
from windowlib.reruns.dry_run import dry_run
from windowlib.runs.advance import advance
from windowlib.runs.start import with_spark

DEFINITION = """
name = "pages"
[source]
format = "parquet"
path = "incoming"
key = ["client"]
timestamp = "at"
timestamp_unit = "ms"
max_files_per_run = 1
[watermark]
out_of_orderness = "1m"
[window]
type = "session"
gap = "30m"
[aggregates]
pages = "count(distinct page)"
[storage]
max_kept_values = {most}
"""
SCHEMA = pa.schema([("client", pa.string()), ("at", pa.int64()), ("page", pa.string())])


def definition(folder: Path, spark: SparkSession, most: int) -> Definition:
    (folder / "pages.toml").write_text(DEFINITION.replace("{most}", str(most)))
    engine = "sail" if is_sail(spark) else "spark"
    return load_definition(folder / "pages.toml").model_copy(update={"engine": engine})


def arrive(folder: Path, number: int, rows: list[tuple[str, int, str]]) -> None:
    path = folder / "incoming" / f"{number}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA), path)
    os.utime(path, ns=(number + 1, number + 1))


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Sail's own, when a task of it fails
def test_a_window_in_flight_that_keeps_too_much_is_named(spark: SparkSession, tmp_path: Path) -> None:
    files = [
        [("o'neil", 0, "/"), ("b", 0, "/"), ("o'neil", 1, "/a"), ("o'neil", 2, "/")],
        [("o'neil", 60_000, "/b"), ("b", 60_000, "/")],
        [("clock", 36_000_000, "/")],
    ]
    for number, rows in enumerate(files):
        arrive(tmp_path, number, rows)
    said = "a window of key o'neil from 1970-01-01 00:00:00.* keeps more than 2 values for count_distinct"
    with pytest.raises(InvalidSpec, match=said) as refused:
        advance(definition(tmp_path, spark, most=2), lambda: spark)
    assert "Increase storage.max_kept_values" in str(refused.value)
    assert "pages.toml" in str(refused.value)
    raised = definition(tmp_path, spark, most=3)
    abandon(raised, "ann", "too many")
    advance(raised, lambda: spark)
    found = {row["client"]: row["pages"] for row in read_table(raised, "results").to_pylist()}
    assert found == {"o'neil": 3, "b": 1}


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Sail's own, when a task of it fails
@pytest.mark.fault("a dry run meets a window that keeps too many values", "it names the window and changes nothing")
def test_a_dry_run_names_the_window_that_keeps_too_much(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path, 0, [("b", 0, "/"), ("b", 1, "/a"), ("b", 36_000_000, "/")])
    advance(definition(tmp_path, spark, most=3), lambda: spark)
    tight, rerun = definition(tmp_path, spark, most=1), Rerun(0, 1_000, "again", "ann")
    said = r"pages\.toml: a window of key b .* more than 1 values .*Increase storage.max_kept_values.*; nothing"
    with pytest.raises(InvalidSpec, match=said):
        with_spark(tight, "the preview", dry_run(tight, rerun, wall_clock_ms).preview, lambda what: None)
