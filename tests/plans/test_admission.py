"""Event times of a column are floored in the same way as a single time."""

from __future__ import annotations

from decimal import Decimal
from math import floor, inf, isfinite, nan

import pytest
from pyspark.sql import SparkSession

from windowlib.model.assigners import Tumbling
from windowlib.model.times import PER_SECOND, floored_ms
from windowlib.plans.admission import Admission, thousandth, timestamp_ms

TIMES_US = [-(2**63), -1_001, -1_000, -999, -1, 0, 1, 999, 1_000, 1_001, 2**63 - 1]


@pytest.mark.spark
def test_a_column_is_floored_like_a_single_time(spark: SparkSession) -> None:
    times = spark.createDataFrame([(time,) for time in TIMES_US], "us bigint")
    found = times.select("us", thousandth("us").alias("ms")).collect()
    assert {row["us"]: row["ms"] for row in found} == {time: floored_ms(time, "us") for time in TIMES_US}


FRACTIONS = [0.0, -0.0, -0.5, 0.3, 30.9, 0.001, 0.0009999999999999998, -0.0010000000000000002, -1e-300, 5e-324]
FRACTIONS += [1_772_409_600.123, -1_772_409_600.123, 2.53e11, -6.2e10, 1e12 - 0.5, nan, inf, -inf, 1e300]


@pytest.mark.spark
@pytest.mark.classic
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_a_double_or_decimal_is_floored_by_its_digits(spark: SparkSession, unit: str) -> None:
    def exact(time: float) -> int | None:
        return floor(Decimal(repr(time)) * 1_000 / PER_SECOND[unit]) if isfinite(time) and abs(time) < 1e12 else None

    judged = Admission((), "t", unit, Tumbling(10), 0)
    doubles = spark.createDataFrame([(repr(time), time) for time in FRACTIONS], "text string, t double")
    found = doubles.select("text", timestamp_ms(judged, doubles).alias("ms")).collect()
    assert {row["text"]: row["ms"] for row in found} == {repr(time): exact(time) for time in FRACTIONS}
    decimals = spark.sql("SELECT * FROM VALUES (-0.5), (0.3), (1772409600.1) AS times(t)")
    found = decimals.select("t", timestamp_ms(judged, decimals).alias("ms")).collect()
    assert [row["ms"] for row in found] == [exact(float(row["t"])) for row in found]
