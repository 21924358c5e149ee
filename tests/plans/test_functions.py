"""Values as columns."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from pyspark.sql import SparkSession

from windowlib.plans.functions import F, literal

TYPES = {
    "TIMESTAMP_NTZ '2026-03-08 02:30:00.5'": datetime(2026, 3, 8, 2, 30, 0, 500_000),
    "TIMESTAMP '2026-11-01 05:30:00Z'": datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
    "TIMESTAMP '0002-03-08 02:30:00Z'": datetime(2, 3, 8, 2, 30, tzinfo=UTC),
    "DATE '1500-02-28'": date(1500, 2, 28),
    "'it''s'": "it's",
}


@pytest.mark.spark
@pytest.mark.both
@pytest.mark.usefixtures("zone")
def test_a_literal_does_not_depend_on_the_machine_s_time_zone(spark: SparkSession) -> None:
    one = spark.range(1)
    found = one.select(*(F.expr(sql).eqNullSafe(literal(value)).alias(sql) for sql, value in TYPES.items()))
    assert found.collect()[0].asDict() == dict.fromkeys(TYPES, True)
