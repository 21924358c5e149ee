"""What several tests share: one Spark session, started by the first test that asks for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session as runs have it; with `WINDOWLIB_TEST_REMOTE`, one on the Spark Connect server there."""
    from jobs import connect
    from jobs.spark import of_a_session, session

    conf = {"spark.sql.shuffle.partitions": "2"}
    address = os.environ.get("WINDOWLIB_TEST_REMOTE")
    if address:
        spark = connect.session(address, of_a_session(), conf, "")
        yield spark
        connect.close(spark)
        return
    spark = session("local[2]", conf)
    yield spark
    spark.stop()
