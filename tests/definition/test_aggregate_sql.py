"""Expressions of `[aggregates]`: the aggregates in them, and refusals with a reason."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.matrix import columns as matrix
from tests.support.strategies import ALL, examples
from windowlib.definition.sql.aggregates import check_expression, columns_used, read_aggregates
from windowlib.definition.sql.functions import SCALAR
from windowlib.plans.aggregates.aggregate_set import SqlAggregate
from windowlib.plans.aggregates.functions import CALLABLE, FUNCTIONS


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
        ("count(distinct x)", "{0}", ["count_distinct(`x`)"]),
        ("count(distinct x) filter (where y)", "{0}", ["count_distinct(`x`) filter (where `y`)"]),
        (
            "count(distinct x, not y)",
            "{0}",
            [
                "count_distinct(STRUCT(`x` AS `f0_8cdc1683`, NOT `y` AS `f1_357e3208`)) filter (where NOT `x` IS NULL"
                " AND NOT (NOT `y`) IS NULL)"
            ],
        ),
        ("first(x) filter (where y) ignore nulls", "{0}", ["first(`x`) filter (where `y` AND NOT `x` IS NULL)"]),
        ("first(x ignore nulls) filter (where y)", "{0}", ["first(`x`) filter (where NOT `x` IS NULL AND `y`)"]),
        ("first(x) respect nulls", "{0}", ["first(`x`)"]),
        (
            "transform(collect_list(x), y -> upper(y) || 'a')",
            "TRANSFORM({0}, `y` -> UPPER(`y`) || 'a')",
            ["collect_list(`x`)"],
        ),
        ("max(regexp_extract(x, '(a)', 1))", "{0}", ["max(REGEXP_EXTRACT(`x`, '(a)'))"]),
        ("max(at + interval '15 minutes')", "{0}", ["max(`at` + INTERVAL '15' MINUTES)"]),
        ("max(at + interval -1 day) + .5", "{0} + 0.5", ["max(`at` + INTERVAL '-1' DAY)"]),
        ("max(unix_timestamp(x, 'yyyy-MM-dd HH:mm:ss'))", "{0}", ["max(UNIX_TIMESTAMP(`x`))"]),
        ("max(-32768S)", "{0}", ["max(CAST(-32768 AS SMALLINT))"]),
        ("size(collect_set(x))", "SIZE({0})", ["collect_set(`x`)"]),
        ("array_agg(x)[0]", "{0}[0]", ["collect_list(`x`)"]),
        ("median(x) - percentile(x, 0.5)", "{0} - {1}", ["median(`x`)", "percentile(`x`, 0.5)"]),
        ("count_if(x > 1)", "{0}", ["count(*) filter (where `x` > 1)"]),
        ("count_if(x) filter (where y)", "{0}", ["count(*) filter (where `x` AND `y`)"]),
        ("any_value(x) ignore nulls", "{0}", ["first(`x`) filter (where NOT `x` IS NULL)"]),
        ("every(a) and not some(b)", "{0} AND NOT {1}", ["bool_and(`a`)", "bool_or(`b`)"]),
        ("max_by(page, price) filter (where price > 0)", "{0}", ["max_by(`page`, `price`) filter (where `price` > 0)"]),
        ("stddev(x) / std(x)", "{0} / {0}", ["stddev_samp(`x`)"]),
        ("variance(x) + corr(x, y)", "{0} + {1}", ["var_samp(`x`)", "corr(`x`, `y`)"]),
        ("bit_xor(x) | bit_and(x)", "{0} | {1}", ["bit_xor(`x`)", "bit_and(`x`)"]),
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
        (
            "sum(distinct x)",
            r"uses sum\(distinct `x`\); only count\(distinct …\) and collect_set work on distinct values",
        ),
        ("percentile(x)", "gives percentile more or fewer arguments than two"),
        ("percentile(x, 95)", r"has 95 in PERCENTILE\(`x`, 95\); need a number from 0 to 1, such as 0.95"),
        ("percentile(x, y)", "need a number from 0 to 1"),
        ("approx_percentile(x, 0.5)", r"percentile\(x, 0.95\) is exact"),
        ("max(median(x))", "an aggregate inside an aggregate"),
        ("mean(x)", "did you mean avg"),
        ("summ(x)", "did you mean sum"),
        ("skewness(x)", r"uses the unknown function skewness\(\) \(known: count, sum"),
        ("max_by(x)", "gives max_by more or fewer arguments than two"),
        ("count_if(distinct x)", r"uses count\(distinct `x`\); only count"),
        ("first(x, y)", "has the surplus argument y, which would be ignored; remove it"),
        ("collect_list(x, y + 1)", "has the surplus argument y"),
        ("array_agg(x order by y)", "has the surplus argument y"),
        ("max(map_from_arrays(x))", "has the surplus argument x"),
        ("max(log10(x, 2))", "gives log10 more or fewer arguments than one"),
        ("max(date_format(x))", "gives date_format more or fewer arguments than two"),
        ("max(log2(x, 2))", "gives log2 more or fewer arguments than one"),
        ("max(to_char(x))", "gives to_char more or fewer arguments than two"),
        ("max(to_char(x, y, 3))", "gives to_char more or fewer arguments than two"),
        ("max(to_varchar(x))", "gives to_varchar more or fewer arguments than two"),
        ("max(to_varchar(x, y, 3))", "gives to_varchar more or fewer arguments than two"),
        ("max(date_format(x, y, 3))", "gives date_format more or fewer arguments than two"),
        ("max(get_json_object(x))", "gives get_json_object more or fewer arguments than two"),
        ("max(get_json_object(x, y, 3))", "gives get_json_object more or fewer arguments than two"),
        ("max(to_date())", "gives to_date more or fewer arguments than one or two"),
        ("max(to_date(x, y, 3))", "gives to_date more or fewer arguments than one or two"),
        ("max_by(x, y, 3)", "gives max_by more or fewer arguments than two"),
        ("corr(x, *)", r"only count\(\*\) has a meaning"),
        ("argmax(x, y)", "did you mean max_by"),
        ("stdev(x)", "did you mean stddev"),
        ("max(count_if(x))", "an aggregate inside an aggregate"),
        ("skewness(x)", r"the unknown function skewness\(\)"),
        ("histogram(x, array(2, 1))", "1 to 100 numbers that ascend"),
        ("histogram(x, 2)", "1 to 100 numbers that ascend"),
        ("histogram(x, array())", "1 to 100 numbers that ascend"),
        ("histogram(x, array(y))", "1 to 100 numbers that ascend"),
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
        ("count(*) + uniform(1, 1000)", r"uses uniform\(\), but its value differs at each retry"),
        ("max(current_user)", r"uses current_user\(\)"),
        ("sum(x) + unix_timestamp()", r"uses unix_timestamp\(\) without an argument"),
        ("max(reflect('java.lang.System', 'getenv', 'SECRET'))", r"uses the unsupported function reflect\(\)"),
        ("max(java_method('java.lang.System', 'getenv', 'SECRET'))", r"function java_method\(\)"),
        ("max(`reflect`('java.lang.System', 'getenv', 'SECRET'))", r"function reflect\(\)"),
        ("max(some_schema.upper(x))", r"calls upper\(\) of a schema"),
        ("max(own_udf(x))", r"uses the unsupported function own_udf\(\)"),
        ("sum(rond(x))", r"rond\(\); did you mean round\?"),
        ("countif(x > 1)", r"did you mean count_if\?"),
        ("cont_if(x > 1)", r"did you mean count_if\?"),
        ("kurtosis(x)", "write it in Python: window.function$"),
        ("string_agg(x)", r"write array_join\(collect_list\(…\), ','\)$"),
        ("max(any(x))", r"did you mean bool_or\?"),
        ("max(regexp_replace(x))", "is not a SQL expression"),
        ("sum(x) \x01", "control character"),
        ("count(*) filter (where at > 'now')", "has the string 'now', but as a time it means the time of the run"),
        ("max(timestamp 'Now UTC')", "has the string 'Now UTC'"),
        ("count(*) filter (where at between '2026-03-02' and ' TODAY ')", "has the string ' TODAY '"),
        ("max(date 'today')", "has the string 'today'"),
        ("max(cast('now' as timestamp))", "has the string 'now'"),
        ("max(to_date('tomorrow'))", "has the string 'tomorrow'"),
        ("max(hour(('yesterday')))", "has the string 'yesterday'"),
        ("max(coalesce(at, 'now'))", "has the string 'now'"),
        ("max(array('now', at)[0])", "has the string 'now'"),
        ("count(*) filter (where at > '10:30')", "has the string '10:30'"),
        ("count(*) filter (where at > concat('no', 'w'))", r"builds a string from constants: CONCAT\('no', 'w'\)"),
        ("count(*) filter (where at > lower('NOW'))", "builds a string from constants"),
        ("count(*) filter (where at > 'no' || 'w')", "builds a string from constants"),
        (f"sum({' + '.join(['x'] * 400)})", "nests too many operations"),
        (f"sum({'(' * 400}x{')' * 400})", "nests too many operations"),
        (f"sum({'abs(' * 150}x{')' * 150})", "nests too many operations"),
    ],
)
def test_aggregates_that_cannot_be_merged_are_refused(sql: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_expression(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "sum(x) filter (where (a) in (1, 2) and not (b))",
        "max(t + interval 1 day)",
        "max(extract(year from t))",
        "max(cast(x as decimal(10, 2)))",
        "min(transform(a, v -> v * 2)[0])",
        "max(x like any ('a', 'b'))",
        "max(trim(both 'a' from x)) || coalesce(min(y), '')",
        "max(timestampdiff(minute, a, b))",
        "max(date '2026-03-02')",
        "max(`current_user`)",
        "bool_or(lower(page) = 'now' or page like 'today')",
        "count(*) filter (where ('now') = trim(page) or contains(page, 'today') or page = 'nowhere')",
        "max(timestamp 'epoch') filter (where at > '2026-03-02 10:30')",
        "'n=' || count(*)",
    ],
)
def test_deterministic_expressions_are_allowed(sql: str) -> None:
    assert check_expression(sql) == sql


@pytest.mark.parametrize("name", sorted(SCALAR))
def test_every_listed_function_can_be_written(name: str) -> None:
    """Each function in one of these calls; the calls that sqlglot writes instead are listed too."""
    calls = ("", "x", "x, y", "x, y, z", "'a', x, y, z", "x as int", "year from x", "x, 'a'", "'year', x", "year, x, y")
    lambdas = ("array(x), v -> v", "array(x), 0, (a, v) -> a", "x, y, (k, v) -> v")
    longer = ("x placing y from 2", "x, y, z, 1, 2, 3", "x, 2")
    assert any(_is_taken(f"max({name}({call}))") for call in (*calls, *lambdas, *longer))


def _is_taken(sql: str) -> bool:
    try:
        return bool(check_expression(sql))
    except ValueError:
        return False


def test_equal_aggregates_are_kept_once() -> None:
    found = read_aggregates(
        {"mean": "sum(v) / count(*)", "n": "COUNT( * )", "total": "sum(v)", "twice": "2 * sum(`v`)"}
    )
    assert found.aggregates == (SqlAggregate("sum", "`v`"), SqlAggregate("count", None))
    assert [column.sql for column in found.columns] == ["{0} / {1}", "{1}", "{0}", "2 * {0}"]


@pytest.mark.parametrize(
    "sql",
    [
        "count(distinct x, not y)",
        "first(x in (1, 2)) ignore nulls",
        "max(struct(x, y + 1))",
        "max(named_struct('a.b', x))",
        "max(~mod(x, 3))",
        "max(rlike(x, 'a') = y)",
        "max(date_sub(x, y + 1))",
        "max(date_format(x, \"'FY'yyyy\"))",
        "max(to_char(sum_of, '$99.9'))",
        "max(date_trunc(x, y))",
        "max(floor(log10(x)))",
        "max(cast(x as varchar(5)))",
        "max(y::char(3))",
        "max(cast(x as decimal(4,2)))",
        "count(*) filter (where not x between 1 and 2 or x like 'a''b%')",
        *(one.sql.replace("{c}", "x") for one in matrix.AGGREGATES),
    ],
)
def test_a_stored_aggregate_is_read_as_the_same(sql: str) -> None:
    """A batch continues with the aggregates that the last batch stored as text."""
    found = read_aggregates({"n": sql})
    assert read_aggregates({"n": sql}, [str(one) for one in found.aggregates]) == found


def test_columns_used() -> None:
    found = read_aggregates({"a": "sum(x.y) filter (where Kind = 'b')", "b": "max(x) + count(*)", "c": "min(`a b`)"})
    assert found.columns_used == ("x", "Kind", "a b")
    assert columns_used("sum(aggregate(items, 0, (total, item) -> total + item))") == ("items",)


def test_only_first_and_last_need_the_order_of_arrival() -> None:
    assert read_aggregates({"a": "first(x)"}).needs_arrival
    assert not read_aggregates({"a": "max(x)"}).needs_arrival


CALLS = st.builds(
    lambda function, column, limit: (
        f"{function}({', '.join([column, '0.5'][: FUNCTIONS[function].arguments])}) filter (where {column} > {limit})"
    ),
    st.sampled_from(sorted(CALLABLE)),
    st.sampled_from(["a", "`b c`", "Payload.x"]),
    st.integers(-3, 3),
)


@examples(15, 100)
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


def test_aggregates_are_numbered_by_their_stored_text() -> None:
    """Text and parsed aggregate are equal; otherwise state would have columns twice."""
    written = [one.sql for one in matrix.columns()][:: 1 if ALL else 5]
    for sql in written:
        found = read_aggregates({"x": sql}).aggregates
        texts = [*map(str, found)]
        assert read_aggregates({"x": sql}, texts).aggregates == found
        assert read_aggregates({"x": sql, "n": "count(*)"}, ["count(*)", *texts]).aggregates == tuple(
            dict.fromkeys([*read_aggregates({"n": "count(*)"}).aggregates, *found])
        )


def test_every_function_is_listed() -> None:
    with pytest.raises(ValueError, match=r"uses the unknown function summ\(\)") as error:
        check_expression("summ(x)")
    listed = str(error.value).partition("(known: ")[2].partition(")")[0].split(", ")
    others = ("histogram(x, array(1))", "count_if(x > 1)", "any_value(x)", "every(x > 1)", "some(x > 1)", "std(x)")
    for sql in ("sum(x)", *others, "array_agg(x)", "variance(x)", "stddev(x)"):
        check_expression(sql)
        assert sql.partition("(")[0] in listed
