"""Event times of a column are floored as one time is."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from windowlib.model.times import floored_ms
from windowlib.plans.admission import thousandth

TIMES_US = [-(2**63), -1_001, -1_000, -999, -1, 0, 1, 999, 1_000, 1_001, 2**63 - 1]


@pytest.mark.spark
def test_a_column_is_floored_as_one_time_is(spark: SparkSession) -> None:
    times = spark.createDataFrame([(time,) for time in TIMES_US], "us bigint")
    found = times.select("us", thousandth("us").alias("ms")).collect()
    assert {row["us"]: row["ms"] for row in found} == {time: floored_ms(time, "us") for time in TIMES_US}
