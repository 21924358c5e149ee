"""Rows that Spark's dialect puts into one task."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from windowlib.engines.spark_dialect import SPARK

pytestmark = pytest.mark.spark
ROWS = StructType([StructField("rows", LongType())])


def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Number of rows of each task that has rows."""
    if rows := sum(batch.num_rows for batch in batches):
        yield pa.record_batch({"rows": pa.array([rows], pa.int64())})


def test_without_a_key_all_rows_lie_in_one_task(spark: SparkSession) -> None:
    many = spark.range(0, 60, 1, 6).withColumnRenamed("id", "at")
    assert [row["rows"] for row in SPARK.map_sorted(many, [], ["at"], counted, ROWS).collect()] == [60]
    assert SPARK.together([many], []).rdd.getNumPartitions() == 1


def test_a_key_lies_in_one_task(spark: SparkSession) -> None:
    many = spark.range(0, 60, 1, 6).selectExpr("id AS at", "id % 2 AS key")
    rows = [row["rows"] for row in SPARK.map_sorted(many, ["key"], ["at"], counted, ROWS).collect()]
    assert sorted(rows) in ([60], [30, 30])
