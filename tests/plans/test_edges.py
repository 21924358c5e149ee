"""Edges as SQL, and their local times, for every kind of calendar and around changes of the clock."""

from __future__ import annotations

import random
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.support.calendar_windows import CalendarCase, calendar_cases
from tests.support.strategies import examples
from tests.support.zones import local_time
from windowlib.model.calendar import Calendar, CalendarLength
from windowlib.model.geometry import geometry_of
from windowlib.model.rerun import TimeRange
from windowlib.plans.functions import F
from windowlib.plans.grids.edges import EdgeColumns
from windowlib.plans.grids.local_times import local_text_sql

DAY_MS = 86_400_000


def assert_edges(spark: SparkSession, calendar: Calendar, times_ms: list[int], spans: list[TimeRange]) -> None:
    edges = EdgeColumns.inside(calendar, spans)
    rows = spark.createDataFrame([(time_ms, calendar.number(time_ms)) for time_ms in times_ms], "t bigint, n bigint")
    sql = {"start": edges.start("t"), "next": edges.next("t"), "number": edges.number("t"), "edge": edges.edge("n")}
    for row in rows.select("t", *(F.expr(text).alias(name) for name, text in sql.items())).collect():
        number, start_ms = calendar.number(row["t"]), calendar.start_ms(row["t"])
        expected = (start_ms, calendar.next_ms(row["t"]), number, start_ms)
        assert (row["start"], row["next"], row["number"], row["edge"]) == expected, row["t"]


@pytest.mark.spark
@pytest.mark.both
@examples(4, 60)
@given(st.lists(calendar_cases(), min_size=4, max_size=4), st.randoms(use_true_random=False))
def test_sql_gives_the_edges(spark: SparkSession, cases: list[CalendarCase], drawn: random.Random) -> None:
    for case in cases:
        times_ms = [case.time_ms(drawn.randrange(-60, 60), drawn.choice([-1, 0, 1])) for _ in range(40)]
        spans = [TimeRange(time_ms, time_ms + 1) for time_ms in set(times_ms)]
        whole = [TimeRange(min(times_ms), max(times_ms) + 1)]
        calendar = geometry_of(case.assigner).calendar
        assert calendar is not None
        assert_edges(spark, calendar, times_ms, drawn.choice([spans, whole]))


@pytest.mark.spark
@pytest.mark.both
@pytest.mark.parametrize(("unit", "zone"), [("month", "UTC"), ("day", "Africa/Casablanca")])
def test_many_runs_give_the_edges_too(spark: SparkSession, unit: str, zone: str) -> None:
    calendar = Calendar(CalendarLength(1, unit), zone)
    times_ms = [day * DAY_MS + beside_ms for day in range(0, 50 * 365, 13) for beside_ms in (-1, 0, 1)]
    assert_edges(spark, calendar, times_ms, [TimeRange(times_ms[0], times_ms[-1] + 1)])


@pytest.mark.spark
@pytest.mark.both
@examples(4, 60)
@given(st.lists(calendar_cases(), min_size=4, max_size=4), st.randoms(use_true_random=False))
def test_sql_gives_the_local_times_of_edges(
    spark: SparkSession, cases: list[CalendarCase], drawn: random.Random
) -> None:
    for case in cases:
        calendar = geometry_of(case.assigner).calendar
        assert calendar is not None
        reach = drawn.choice([2, 60])  # intervals: few edges have literals
        times_ms = [case.time_ms(drawn.randrange(-reach, reach), drawn.choice([-1, 0, 1])) for _ in range(40)]
        assert_local_times(spark, calendar, [calendar.start_ms(time_ms) for time_ms in times_ms])


@pytest.mark.spark
@pytest.mark.both
@pytest.mark.parametrize(
    ("zone", "unit", "first", "days"),
    [
        ("Africa/Monrovia", "day", date(1971, 12, 30), 12),  # until 1972-01-07 the offset has seconds
        ("Africa/Monrovia", "hour", date(1971, 12, 30), 12),
        ("Europe/Berlin", "month", date(2, 3, 1), 800_000),
        ("Pacific/Apia", "hour", date(2011, 12, 29), 4),
        ("Pacific/Apia", "day", date(2011, 12, 29), 4),
        ("Africa/Casablanca", "day", date(1970, 1, 1), 20_000),
    ],
)
def test_edges_far_apart_and_offsets_with_seconds_have_local_times(
    spark: SparkSession, zone: str, unit: str, first: date, days: int
) -> None:
    calendar = Calendar(CalendarLength(1, unit), zone)
    first_ms = (first - date(1970, 1, 1)).days * DAY_MS
    numbers = range(calendar.number(first_ms), calendar.number(first_ms + days * DAY_MS) + 1)
    assert_local_times(spark, calendar, [calendar.edge_ms(number) for number in numbers[:: 1 + len(numbers) // 500]])


def assert_local_times(spark: SparkSession, calendar: Calendar, edges_ms: list[int]) -> None:
    span = TimeRange(min(edges_ms), max(edges_ms) + 1)
    rows = spark.createDataFrame([(edge_ms,) for edge_ms in edges_ms], "t bigint")
    for row in rows.select("t", F.expr(local_text_sql(calendar, [span], "t")).alias("local")).collect():
        assert row["local"] == local_time(row["t"], calendar.time_zone).isoformat()


def test_a_single_event_far_away_adds_only_the_edges_around_it() -> None:
    calendar = Calendar(CalendarLength(1, "day"), "Europe/Berlin")
    far, near = -62_000_000_000_000, 1_774_600_000_000
    edges = EdgeColumns.inside(calendar, [TimeRange(near, near + 1), TimeRange(far, far + 1)])
    assert len(edges.pieces) == 2
    assert len(EdgeColumns.inside(calendar, [TimeRange(near, near + 300 * DAY_MS)]).pieces) == 4
    assert all(a.run.first_ms < b.run.first_ms for a, b in pairwise(edges.pieces))
