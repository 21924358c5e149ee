"""What several tests share: one Spark session, started by the first test that asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session as runs have it."""
    from jobs.spark import session

    spark = session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    yield spark
    spark.stop()
