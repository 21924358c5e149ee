"""A few of the random migrations that `python -m tests.migrations` plays."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.migrations.cases import CHANGES, play

pytestmark = [pytest.mark.spark, pytest.mark.embedded]


@pytest.mark.fault(
    "a migration, `--undo` or `--finish` is killed at any step while files arrive",
    "readers see the tables before or after; the end equals a fresh pipeline",
)
@pytest.mark.parametrize("seed", [51])  # each of its commands is killed
def test_a_random_migration_ends_as_a_fresh_pipeline(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    assert play(tmp_path, seed, spark).partition(",")[0] in CHANGES


@pytest.mark.long("one of them, in make test")
@pytest.mark.parametrize("seed", [2, 7, 18, *range(100, 112)])
def test_more_random_migrations(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    assert play(tmp_path, seed, spark).partition(",")[0] in CHANGES
