"""Rows of a DataFrame in this process: their times are the stored times in any time zone of the machine."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from windowlib.engines.collect import collected

QUERY = """
SELECT TIMESTAMP '2026-03-02 10:15:00.123456Z' AS at, TIMESTAMP_NTZ '2026-03-08 02:30:00' AS clock,
       named_struct('n', 1, 'at', TIMESTAMP '1969-12-31 23:59:59.999999Z') AS was,
       array(TIMESTAMP '2026-11-01 05:30:00Z') AS several, unhex('ff') AS bytes,
       timestamp_micros(4611686018427387904) AS far
"""


@pytest.mark.spark
@pytest.mark.both
@pytest.mark.usefixtures("zone")
def test_times_are_those_that_are_stored(spark: SparkSession) -> None:
    assert collected(spark.sql(QUERY)) == [
        {
            "at": datetime(2026, 3, 2, 10, 15, 0, 123_456, UTC),
            "clock": datetime(2026, 3, 8, 2, 30),
            "was": {"n": 1, "at": datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)},
            "several": [datetime(2026, 11, 1, 5, 30, tzinfo=UTC)],
            "bytes": b"\xff",
            "far": "1970-01-01 and 4,611,686,018,427,387,904 us",
        }
    ]
