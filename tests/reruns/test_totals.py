"""Totals of a rerun's windows before and after, and by day."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from windowlib.contract.change import ADDED, CHANGED, REMOVED
from windowlib.plans import names
from windowlib.reruns.totals import RangeTotals, Total, range_totals, with_totals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 3, 2, tzinfo=UTC)
VALUES = "n bigint, price double, cost decimal(10,2)"


def totals(spark: SparkSession, old: Sequence[tuple[Any, ...]], differing: Sequence[tuple[Any, ...]]) -> RangeTotals:
    """Totals of windows (day, values) and their changes (part, day, values before, values after)."""
    bounds = "window_start timestamp, window_end timestamp"
    published = spark.createDataFrame([(*_day(day), *values) for day, *values in old], f"{bounds}, {VALUES}")
    rows = [(part, *_day(day), *(after or before), before) for part, day, before, after in differing]
    frame = spark.createDataFrame(rows, f"part string, {bounds}, {VALUES}, {names.BEFORE} struct<{VALUES}>")
    return range_totals(published, frame, with_totals(frame.schema, ["n", "price", "cost"]))


def _day(day: int) -> tuple[datetime, datetime]:
    return START + timedelta(days=day), START + timedelta(days=day + 1)


def test_totals_are_of_all_windows_of_the_range_and_days_of_those_that_differ(spark: SparkSession) -> None:
    old = [(0, 10, 1.5, Decimal("1.10")), (0, 20, 2.5, Decimal("2.20")), (1, 70, 6.0, Decimal("6.70"))]
    differing = [
        (CHANGED, 0, old[0][1:], (15, 1.5, Decimal("1.35"))),
        (ADDED, 2, None, (1, 0.5, None)),
        (REMOVED, 0, old[1][1:], None),
    ]
    found = totals(spark, old, differing)
    assert found.results == Total(3, 3, 0, 0.0)
    assert found.totals == {
        "n": Total(100, 86, -14, -14.0),
        "price": Total(10.0, 8.0, -2.0, -20.0),
        "cost": Total("10.00", "8.05", "-1.95", -19.5),
    }
    assert [(day.day, day.differing, day.results, day.totals["n"]) for day in found.days] == [
        ("2026-03-02", 2, Total(2, 1, -1, -50.0), Total(30, 15, -15, -50.0)),
        ("2026-03-04", 1, Total(0, 1, 1, None), Total(0, 1, 1, None)),
    ]


def test_infinite_and_nan_values_have_no_total(spark: SparkSession) -> None:
    huge = 2**63 - 1
    old = [(0, huge, math.nan, Decimal("1.00")), (0, huge, 2.0, Decimal("1.00"))]
    repaired = totals(spark, old, [(CHANGED, 0, old[0][1:], (huge, 1.0, None))])
    assert repaired.totals["n"] == Total(2 * huge, 2 * huge, 0, 0.0)
    assert repaired.totals["price"] == Total(None, 3.0, None, None)
    assert repaired.totals["cost"] == Total("2.00", "1.00", "-1.00", -50.0)
    broken = totals(spark, old[1:], [(CHANGED, 0, old[1][1:], (0, math.inf, None))])
    assert broken.totals["price"] == Total(2.0, None, None, None)


def test_doubles_that_are_equal_leave_no_difference(spark: SparkSession) -> None:
    old = [(0, 1, 0.1 * number, None) for number in range(50)]
    found = totals(spark, old, [(CHANGED, 0, row[1:], (2, *row[2:])) for row in old])
    assert found.totals["price"].difference == 0.0
    assert found.totals["n"] == Total(50, 100, 50, 100.0)


def test_a_decimal_that_is_too_large_has_no_total(spark: SparkSession) -> None:
    most = Decimal(9 * 10**37)
    bounds = "window_start timestamp, window_end timestamp, cost decimal(38,0)"
    old = spark.createDataFrame([(*_day(0), most), (*_day(0), most)], bounds)
    change = (CHANGED, *_day(0), Decimal(1), (most,))
    frame = spark.createDataFrame([change], f"part string, {bounds}, {names.BEFORE} struct<cost: decimal(38,0)>")
    found = range_totals(old, frame, with_totals(frame.schema, ["cost"]))
    assert found.totals == {"cost": Total(None, None, None, None)}


def test_only_numbers_that_add_up_have_a_total(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1L AS n, 1.5D AS mean, interval 1 day AS lasted, cast(2 AS decimal(5,1)) AS cost")
    assert with_totals(frame.schema, ["n", "lasted", "cost"]) == {"n": "bigint", "cost": "decimal(5,1)"}
