"""Column names that differ only in case are one column between files. In one file they are refused if used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import MINUTE_MS, START_MS, clicks, clock
from windowlib.batches.planning import plan
from windowlib.definition.definition import Definition
from windowlib.inspection.lineage.explain_window import explain_window
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.source.listed import SourceError

PIPELINE = """
name = "clicks"
[source]
format = "parquet"
path = "incoming"
key = ["userId"]
timestamp = "Time"
timestamp_unit = "ms"
max_files_per_run = {files}
{more}
[watermark]
out_of_orderness = "0s"
[window]
type = "tumbling"
size = "1h"
[aggregates]
total = "sum(v)"
most = "max(V)"
"""


def pipeline(folder: Path, files: int, more: str = "") -> Definition:
    return clicks(folder, 0, PIPELINE.format(files=files, more=more))


def arrive(folder: Path, number: int, user: str, time: str, value: str, **other: Any) -> None:
    at_ms = START_MS + number * MINUTE_MS
    columns = {value: pa.array([2**number] * 2), user: ["ann", None], **other, time: [at_ms, at_ms]}
    path = folder / "incoming" / f"{number}.parquet"
    pq.write_table(pa.table(columns), path)
    os.utime(path, ns=(number, number))


@pytest.mark.spark
@pytest.mark.both
@pytest.mark.parametrize("files", [0, 1])
def test_names_that_differ_in_case_between_files_are_one_column(
    spark: SparkSession, tmp_path: Path, files: int
) -> None:
    definition = pipeline(tmp_path, files)
    arrive(tmp_path, 1, "userId", "Time", "v")
    arrive(tmp_path, 2, "userid", "time", "V")
    arrive(tmp_path, 3, "USERID", "TIME", "v", extra=["x", "y"])
    advance(definition, lambda: spark, clock=clock, finish=True)
    [row] = read_table(definition, "results").to_pylist()
    assert (row["userId"], row["total"], row["most"]) == ("ann", 14, 8)
    assert {one["reason"] for one in read_table(definition, "quarantine").to_pylist()} == {"null_key"}
    assert not [*verify(definition, VerifyRequest(), spark, clock).differences]


@pytest.mark.spark
@pytest.mark.both
def test_renamed_and_declared_columns_have_any_case(spark: SparkSession, tmp_path: Path) -> None:
    more = 'rename = { "UserID" = "userId", "TS" = "Time" }\nschema = { "V" = "double" }'
    definition = pipeline(tmp_path, 0, more)
    arrive(tmp_path, 1, "userid", "ts", "v")
    arrive(tmp_path, 2, "USERID", "Ts", "V")
    advance(definition, lambda: spark, clock=clock, finish=True)
    [row] = read_table(definition, "results").to_pylist()
    assert (row["userId"], row["total"]) == ("ann", 6.0)
    assert isinstance(row["total"], float)


@pytest.mark.spark
@pytest.mark.embedded
def test_explain_finds_the_events_whatever_the_case(spark: SparkSession, tmp_path: Path) -> None:
    definition = pipeline(tmp_path, 0)
    arrive(tmp_path, 1, "userId", "Time", "v")
    arrive(tmp_path, 2, "userid", "time", "V")
    advance(definition, lambda: spark, clock=clock, finish=True)
    [window] = explain_window(definition, ["ann"], START_MS).windows
    assert [(event.file, event.values["v"]) for event in window.events] == [("1.parquet", 2), ("2.parquet", 4)]


@pytest.mark.parametrize("more", ["", 'rename = { "uid" = "userId" }'])
def test_two_spellings_of_a_used_column_in_one_file_are_refused_with_both(tmp_path: Path, more: str) -> None:
    definition = pipeline(tmp_path, 0, more)
    arrive(tmp_path, 1, "uid" if more else "userId", "Time", "v", USERID=["x", "y"])
    with pytest.raises(SourceError, match="the columns 'USERID', 'userId' differ only in case"):
        plan(definition, clock)
