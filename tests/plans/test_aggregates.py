"""Partial, merge and finish give the same as Spark's own aggregates over all events, for every grouping."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tests.support.event_frames import with_internal
from windowlib.definition.sql.aggregates import read_aggregates
from windowlib.engines.choice import dialect_of, not_proved
from windowlib.engines.sail import is_sail
from windowlib.plans.aggregates.aggregate_set import AggregateSet
from windowlib.plans.aggregates.calls import parsed
from windowlib.plans.aggregates.columns import finishes, merges, partial_names, partials, typed, typed_as_stored
from windowlib.plans.dialect import Dialect

pytestmark = [pytest.mark.spark, pytest.mark.both]

# On Sail the plans use its own aggregates only for these.
PLAIN = {"events", "known", "i_sum", "l_sum", "d_sum", "m_sum", "m_some", "i_avg", "m_min", "d_max", "s_min", "s_max",
         "day_max", "none", "no_events"}  # fmt: skip
SCHEMA = (
    "k int, b int, timestamp_ms long not null, arrival long not null, i int, l long, d double, m decimal(10,2),"
    " wide decimal(38,6), s string, day date"
)
# Expressions that Spark can also evaluate by itself.
NATIVE = {
    "events": "count(*)",
    "known": "count(i)",
    "i_sum": "sum(i)",
    "l_sum": "sum(l) filter (where i > 0)",
    "d_sum": "sum(d)",
    "m_sum": "sum(m)",
    "m_some": "sum(m) filter (where s like 'a%')",
    "wide_sum": "sum(wide)",
    "computed": "sum(m * i)",
    "i_avg": "avg(i)",
    "d_avg": "avg(d) filter (where i % 2 = 0)",
    "m_avg": "avg(m)",
    "fine_avg": "avg(cast(d as decimal(20, 8)))",
    "m_min": "min(m)",
    "d_max": "max(d)",
    "s_min": "min(s)",
    "s_max": "max(s) filter (where i is null)",
    "day_max": "max(day)",
    "none": "sum(i) filter (where false)",
    "no_events": "count(*) filter (where false)",
    "ratio": "try_divide(sum(m), count(*) filter (where i > 90))",
    "braces": "concat('{0}', count(*), '{{', max(s), '}')",
}


def random_events(seed: int, rows: int) -> list[Row]:
    """Events with nulls everywhere, ties in timestamp_ms, and one key (9) without any value."""
    rng = random.Random(seed)
    names = [column.split()[0] for column in SCHEMA.split(", ")]

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.2 else value

    def row(arrival: int) -> Row:
        key = rng.choice([0, 0, 0, 1, 2, 3, 9])
        values = [
            maybe(rng.randint(-99, 99)),
            maybe(rng.randint(-(2**50), 2**50)),
            maybe(rng.uniform(-1, 1)),
            maybe(Decimal(rng.randint(-(10**9), 10**9)).scaleb(-2)),
            maybe(Decimal(rng.randint(-(10**25), 10**25)).scaleb(-6)),
            maybe(rng.choice(["", "a", "ab", "ä", "b{}"])),
            None,
        ]
        if key == 9:
            values = [None] * len(values)
        return Row(*names)(key, rng.randint(0, 11), rng.randint(-20, 20), arrival, *values)

    return [row(arrival) for arrival in rng.sample(range(rows), rows)]


def dialect(rows: DataFrame) -> Dialect:
    return dialect_of(rows.sparkSession)


def finished(aggregates: AggregateSet, dialect: Dialect) -> list[str]:
    return [f"{sql} AS {name}" for name, sql in finishes(aggregates, dialect).items()]


def in_steps(events: DataFrame, expressions: dict[str, str]) -> DataFrame:
    """Slices by (k, b), merged by (k, b % 3), merged by k, finished."""
    aggregates = typed(read_aggregates(expressions), events, dialect(events))
    slices = events.groupBy("k", "b").agg(*partials(aggregates.aggregates, dialect(events)))
    coarse = slices.groupBy("k", (F.col("b") % 3).alias("b")).agg(*merges(aggregates.aggregates, dialect(events)))
    whole = coarse.groupBy("k").agg(*merges(aggregates.aggregates, dialect(events)))
    return whole.selectExpr("k", *finished(aggregates, dialect(events)))


def close(value: Any) -> Any:
    """A value to compare with: doubles up to the last bits of their sums, everything else exactly."""
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value


def by_key(frame: DataFrame) -> dict[int, dict[str, Any]]:
    return {row["k"]: row.asDict() for row in frame.collect()}


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return with_internal(spark.createDataFrame(random_events(seed=5, rows=600), SCHEMA).repartition(3))


def native(events: DataFrame) -> dict[str, str]:
    """Expressions of `NATIVE` that the tested engine computes by itself. `tests.support.matrix.columns` has all."""
    everything = not is_sail(events.sparkSession)
    return {
        name: sql for name, sql in NATIVE.items() if everything or (name in PLAIN and not_proved(parsed(sql)) is None)
    }


@pytest.mark.classic  # comparing Sail with itself shows little; other tests compare it with exact arithmetic
def test_native_aggregates(events: DataFrame) -> None:
    ours = in_steps(events, native(events))
    sparks = events.groupBy("k").agg(*(F.expr(sql).alias(name) for name, sql in native(events).items()))
    assert [(f.name, f.dataType) for f in ours.schema] == [(f.name, f.dataType) for f in sparks.schema]
    found, expected = by_key(ours), by_key(sparks)
    assert found.keys() == expected.keys() == {0, 1, 2, 3, 9}
    for key, row in expected.items():
        assert found[key] == {name: close(value) for name, value in row.items()}


def test_first_and_last_order_by_time_then_arrival(events: DataFrame) -> None:
    expressions = {
        "first": "first(s)",
        "last": "last(m)",
        "first_known": "first(i) ignore nulls",
        "last_of": "last(l) filter (where i > 0)",
    }
    found = by_key(in_steps(events, expressions))
    rows = sorted(events.collect(), key=lambda row: (row["timestamp_ms"], row["arrival"]))
    for key in found:
        mine = [row for row in rows if row["k"] == key]
        known = [row["i"] for row in mine if row["i"] is not None]
        positive = [row["l"] for row in mine if row["i"] is not None and row["i"] > 0]
        assert found[key] == {
            "k": key,
            "first": mine[0]["s"],
            "last": mine[-1]["m"],
            "first_known": known[0] if known else None,
            "last_of": positive[-1] if positive else None,
        }


def test_partials_keep_their_types_when_merged(events: DataFrame) -> None:
    everything = {**native(events), "first": "first(m)", "distinct": "approx_count_distinct(s)"}
    whole = typed(read_aggregates(everything), events, dialect(events))
    aggregates = whole.aggregates
    slices = events.groupBy("k", "b").agg(*partials(aggregates, dialect(events)))
    assert typed_as_stored(read_aggregates(everything), slices, dialect(events)) == whole
    merged = slices.groupBy("k").agg(*merges(aggregates, dialect(events)))
    again = merged.groupBy().agg(*merges(aggregates, dialect(events)))
    names = partial_names(aggregates)
    types = [field.dataType for field in slices.select(names).schema]
    assert [field.dataType for field in merged.select(names).schema] == types
    assert [field.dataType for field in again.select(names).schema] == types


def test_approximate_counts_do_not_depend_on_the_grouping(spark: SparkSession) -> None:
    events = spark.range(30_000).selectExpr(
        "1 k", "id % 20000 v", "id % 12 b", "id % 2 = 0 even", "cast(null as int) n"
    )
    expressions = {
        "values": "approx_count_distinct(v)",
        "even": "approx_count_distinct(v) filter (where even)",
        "few": "approx_count_distinct(b)",
        "none": "approx_count_distinct(n)",
    }
    found = [by_key(in_steps(events.repartition(parts, by), expressions))[1] for parts, by in ((1, "b"), (7, "v"))]
    aggregates = read_aggregates(expressions)
    at_once = (
        events.groupBy("k")
        .agg(*partials(aggregates.aggregates, dialect(events)))
        .selectExpr("k", *finished(aggregates, dialect(events)))
    )
    assert found[0] == found[1] == by_key(at_once)[1]
    assert found[0]["values"] == pytest.approx(20_000, rel=0.05)
    assert found[0]["even"] == pytest.approx(10_000, rel=0.05)
    assert (found[0]["few"], found[0]["none"]) == (12, 0)


def test_too_large_sums_raise_an_error(spark: SparkSession) -> None:
    events = spark.sql(f"select 1 k, id b, {2**62} l, cast(9e17 as decimal(18,0)) m from range(2)")
    with pytest.raises(Exception, match=r"ARITHMETIC_OVERFLOW|overflow|out of range"):
        in_steps(events, {"l": "sum(l)"}).collect()
    assert by_key(in_steps(events, {"m": "sum(m)"}))[1]["m"] == Decimal(18 * 10**17)


@pytest.mark.parametrize(
    ("value", "other", "product"),
    [
        ("8", "0", "0.0"),
        ("8", "double('-0.0')", "-0.0"),
        ("1e-300", "double('-Infinity')", "-inf"),
        ("8", "1e-300", "inf"),
    ],
)
def test_a_product_may_reach_zero_and_infinity(spark: SparkSession, value: str, other: str, product: str) -> None:
    """That holds for every size of the product of the other factors."""
    events = spark.sql(f"select cast(if(id = 0, {other}, {value}) as double) x from range(700)")
    aggregates = typed(read_aggregates({"x": "product(x)"}), events, dialect(events))
    parts = events.groupBy().agg(*partials(aggregates.aggregates, dialect(events)))
    [row] = parts.selectExpr(*finished(aggregates, dialect(events))).collect()
    assert repr(row["x"]) == product


@pytest.mark.classic  # the names of Spark's operators
def test_numbers_are_aggregated_by_hash(events: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    on_text = {"s_min", "s_max", "braces"}
    in_steps(events, {name: sql for name, sql in NATIVE.items() if name not in on_text}).explain()
    plan = capsys.readouterr().out
    assert "HashAggregate" in plan
    assert "SortAggregate" not in plan


def test_no_aggregate_needs_no_types(spark: SparkSession) -> None:
    aggregates = AggregateSet((), ())
    assert typed(aggregates, spark.range(1), dialect_of(spark)) == aggregates
    assert partial_names(aggregates.aggregates) == []


@pytest.mark.classic
def test_combined_values_are_equal_regardless_of_the_bits_of_zero_and_nan(spark: SparkSession) -> None:
    """-0.0 equals 0.0, and all NaNs are equal, also within a batch where nothing is merged."""
    known = "(0.0D, 'a'), (-0.0D, 'a'), (double('NaN'), 'a'), (-double('NaN'), 'a'), (0.0D, 'b')"
    rows = spark.sql(f"SELECT 0L AS timestamp_ms, 0L AS arrival, d, s FROM VALUES {known} AS rows(d, s)")
    sql = {"pairs": "count(distinct d, s)", "lists": "count(distinct array(d))", "most": "mode(struct(d, s)).d"}
    aggregates = typed(read_aggregates(sql), with_internal(rows), dialect(rows))
    found = with_internal(rows).agg(*partials(aggregates.aggregates, dialect(rows)))
    [row] = found.selectExpr(
        *(f"{sql} AS {name}" for name, sql in finishes(aggregates, dialect(rows)).items())
    ).collect()
    assert (row["pairs"], row["lists"], row["most"]) == (3, 2, 0.0)


def test_values_to_order_by_are_stored_with_one_zero_and_one_nan(spark: SparkSession) -> None:
    """So an engine that orders -0.0 before 0.0 can continue the state of another engine."""
    known = "(-0.0D, 5L), (0.0D, 2L), (-double('NaN'), 9L), (double('NaN'), 1L)"
    columns = "cast(timestamp_ms as bigint) AS timestamp_ms, 0L AS arrival, d, isnan(d) AS k"
    rows = with_internal(spark.sql(f"SELECT {columns} FROM VALUES {known} AS rows(d, timestamp_ms)"))
    aggregates = typed(read_aggregates({"at": "max_by(timestamp_ms, d)"}), rows, dialect(rows))
    stored = rows.groupBy("k").agg(*partials(aggregates.aggregates, dialect(rows)))
    held = {row["k"]: row["p0_held"] for row in stored.collect()}
    assert (held[False]["value"], math.copysign(1, held[False]["by"])) == (5, 1)
    assert (held[True]["value"], math.isnan(held[True]["by"])) == (9, True)
