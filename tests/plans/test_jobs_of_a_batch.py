"""Number of Spark jobs that a batch starts. Every job has a known reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, arrive, clicks
from tests.support.spark_jobs import jobs_so_far, visits
from windowlib.definition.definition import Definition
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

CLEAN = CLICKS.replace('event_id = "id"\n', "")
ALIGNED = CLEAN.replace('type = "session"\ngap = "10m"', 'type = "sliding"\nsize = "1h"\nslide = "20m"')
INSTANT = 1  # the one row of watermarks, broadcast to whatever part of a plan needs some of it
FIGURES, WINDOWS = 1, 1

pytestmark = pytest.mark.spark


def jobs_of_the_next_batch(definition: Definition, spark: SparkSession) -> int:
    before = jobs_so_far(spark)
    assert len(advance(definition, lambda: spark)) == 1
    return jobs_so_far(spark) - before


def clean_batches(folder: Path, spark: SparkSession, text: str, jobs: int) -> Definition:
    """A pipeline after two clean batches, each of so many jobs."""
    definition = clicks(folder, 0, text)
    for number in (1, 2):
        arrive(folder, number, visits(100 * number))
        assert jobs_of_the_next_batch(definition, spark) == jobs
    return definition


def test_a_clean_batch_of_sliding_windows_is_one_job(tmp_path: Path, spark: SparkSession) -> None:
    clean_batches(tmp_path, spark, ALIGNED, WINDOWS + 2 * INSTANT)


def test_a_clean_batch_is_one_job_and_a_late_event_replaces_in_one(tmp_path: Path, spark: SparkSession) -> None:
    definition = clean_batches(tmp_path, spark, CLEAN, WINDOWS + INSTANT)
    before = jobs_so_far(spark)
    assert advance(definition, lambda: spark) == []
    assert jobs_so_far(spark) == before
    arrive(tmp_path, 3, [*visits(210), *visits(100)])
    named, replacement = 1, 1  # what is replaced, broadcast to the files that hold it; then those files, written again
    assert jobs_of_the_next_batch(definition, spark) == WINDOWS + INSTANT + named + replacement
    assert read_table(definition, "result_changes").column("change").to_pylist().count("changed") == 1


def test_a_row_that_may_be_refused_costs_a_job(tmp_path: Path, spark: SparkSession) -> None:
    definition = clicks(tmp_path, 0, CLEAN)
    arrive(tmp_path, 1, [*visits(0), *visits(50, user=None)])
    path_names = quarantine = 1
    assert jobs_of_the_next_batch(definition, spark) == FIGURES + WINDOWS + INSTANT + path_names + quarantine
