"""Expressions of `[aggregates]`: which aggregates are found in them, and what is refused, with the reason."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowlib.definition.aggregate_sql import check_expression, columns_used, read_aggregates
from windowlib.plans.aggregate_functions import FUNCTIONS
from windowlib.plans.aggregate_set import Aggregate


@pytest.mark.parametrize(
    ("sql", "output", "aggregates"),
    [
        ("count(*)", "{0}", ["count(*)"]),
        ("COUNT(1)", "{0}", ["count(1)"]),
        ("sum(value) / count(*)", "{0} / {1}", ["sum(`value`)", "count(*)"]),
        ("round(avg(v), 2)", "ROUND({0}, 2)", ["avg(`v`)"]),
        ("count(*) filter (where status >= 500)", "{0}", ["count(*) filter (where `status` >= 500)"]),
        ("sum(Value) - sum(Value)", "{0} - {0}", ["sum(`Value`)"]),
        ("sum(`my col`)", "{0}", ["sum(`my col`)"]),
        ("max(payload.amount)", "{0}", ["max(`payload`.`amount`)"]),
        ("first(x) ignore nulls", "{0}", ["first(`x`) filter (where NOT `x` IS NULL)"]),
        ("last(x, true) filter (where y > 1)", "{0}", ["last(`x`) filter (where NOT `x` IS NULL AND `y` > 1)"]),
        ("concat('{', count(*), '}')", "CONCAT('{{', {0}, '}}')", ["count(*)"]),
        ("if(count(*) > 0, sum(x), 0)", "IF({0} > 0, {1}, 0)", ["count(*)", "sum(`x`)"]),
        ("sum(case when x > 0 then 1 end)", "{0}", ["sum(CASE WHEN `x` > 0 THEN 1 END)"]),
        ("approx_count_distinct(user)", "{0}", ["approx_count_distinct(`user`)"]),
    ],
)
def test_aggregates_are_found(sql: str, output: str, aggregates: list[str]) -> None:
    found = read_aggregates({"n": sql})
    assert [column.sql for column in found.columns] == [output]
    assert [str(aggregate) for aggregate in found.aggregates] == aggregates


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("", "is not a SQL expression"),
        ("sum(x", r"is not a SQL expression: Expecting \) at character 5"),
        ("value", "uses the column value outside an aggregate"),
        ("sum(x) + value", "uses the column value outside an aggregate"),
        ("1", "uses no aggregate"),
        ("*", "uses no aggregate"),
        ("drop table x", "is not a SQL expression"),
        ("count(distinct x)", r"use approx_count_distinct\(`x`\)"),
        ("count(distinct x, y)", r"use approx_count_distinct\(struct\(`x`, `y`\)\)"),
        ("sum(distinct x)", r"uses sum\(distinct …\)"),
        ("mean(x)", "did you mean avg"),
        ("summ(x)", "did you mean sum"),
        ("stddev(x)", r"uses stddev\(\), which is not one of count, sum"),
        ("collect_list(x)", "which is not one of"),
        ("sum(max(x))", "an aggregate inside an aggregate"),
        ("min(x, y)", "more or fewer arguments than one"),
        ("count()", "more or fewer arguments than one"),
        ("approx_count_distinct(x, 0.1)", "more or fewer arguments than one"),
        ("sum(*)", r"only count\(\*\) has a meaning"),
        ("count(t.*)", r"only count\(\*\) has a meaning"),
        ("sum(x) over (partition by y)", "a query or a window function"),
        ("(select sum(x) from t)", "a query or a window function"),
        ("select count(*)", "is not a SQL expression"),
        ("count(*); count(*)", "a query or a window function"),
        ("sum(x) as total", "leave out 'as total'"),
        ("sum(x * rand())", r"uses rand\(\)"),
        ("max(now())", r"uses now\(\)"),
        ("count(*) filter (where ts < current_timestamp)", r"uses current_timestamp\(\)"),
        ("map (0", "is not a SQL expression"),
        ("sum(x) \x01", "control character"),
    ],
)
def test_what_cannot_be_merged_is_refused(sql: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_expression(sql)


def test_equal_aggregates_are_kept_once() -> None:
    found = read_aggregates(
        {"mean": "sum(v) / count(*)", "n": "COUNT( * )", "total": "sum(v)", "twice": "2 * sum(`v`)"}
    )
    assert found.aggregates == (Aggregate("sum", "`v`"), Aggregate("count", None))
    assert [column.sql for column in found.columns] == ["{0} / {1}", "{1}", "{0}", "2 * {0}"]


def test_columns_used() -> None:
    found = read_aggregates({"a": "sum(x.y) filter (where Kind = 'b')", "b": "max(x) + count(*)", "c": "min(`a b`)"})
    assert found.columns_used == ("x", "Kind", "a b")
    assert columns_used("sum(aggregate(items, 0, (total, item) -> total + item))") == ["items"]


def test_only_first_and_last_need_the_order_of_arrival() -> None:
    assert read_aggregates({"a": "first(x)"}).needs_arrival
    assert not read_aggregates({"a": "max(x)"}).needs_arrival


CALLS = st.builds(
    lambda function, column, limit: f"{function}({column}) filter (where {column} > {limit})",
    st.sampled_from(sorted(FUNCTIONS)),
    st.sampled_from(["a", "`b c`", "Payload.x"]),
    st.integers(-3, 3),
)


@settings(deadline=None)
@given(st.lists(CALLS, min_size=1, max_size=6))
def test_putting_the_aggregates_back_gives_the_expression(calls: list[str]) -> None:
    found = read_aggregates({"sum": " + ".join(calls), **{f"c{i}": call for i, call in enumerate(calls)}})
    assert len(found.aggregates) == len(set(calls))
    again = found.columns[0].sql_over([str(aggregate) for aggregate in found.aggregates])
    assert read_aggregates({"sum": again}).aggregates == found.aggregates


@settings(deadline=None)
@given(st.text(alphabet="sum(x)*,.'`{} 1/-distinct", max_size=30))
def test_any_text_is_read_or_refused(sql: str) -> None:
    try:
        found = read_aggregates({"n": sql})
    except ValueError as error:
        refusal = str(error)
        found = None
    assert found.aggregates if found else refusal
