"""Values of a wrong type in an expression are reported without an engine; uncertain cases are left to it."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support.strategies import ALL
from windowlib.definition.sql.expression_types import misfits, type_of
from windowlib.definition.sql.functions import SCALAR
from windowlib.engines.choice import not_proved
from windowlib.plans.aggregates.calls import parsed

TYPES = {
    "v": "int",
    "d": "decimal(10,2)",
    "x": "double",
    "s": "string",
    "b": "boolean",
    "t": "timestamp",
    "day": "date",
    "y": "binary",
    "a": "array<int>",
    "m": "map<string,int>",
    "st": "struct<a:int,b:string>",
}
LITERALS = ("'a'", "1", "2.5", "null")
COMPARED = 1_200 if ALL else 150
FAMILIES = {
    "number": ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    "string": ("string", "varchar", "char", "text"),
    **{name: (name,) for name in ("boolean", "date", "timestamp", "binary", "array", "map", "struct", "interval")},
}


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("sum(s)", "uses s of type string in SUM(s); need a number, such as try_cast(s as decimal(18,2)) with"),
        ("avg(lower(trim(s)))", "uses LOWER(TRIM(s)) of type string"),
        ("sum(case when b then s end)", "uses CASE WHEN b THEN s END of type string"),
        ("1 + sum(s || 'x') / count(*)", "uses s || 'x' of type string"),
        ("covar_samp(v, s)", "uses s of type string in COVAR_SAMP(v, s)"),
        ("median(day)", "uses day of type date in MEDIAN(day); need a number"),
        ("sum(v > 1)", "uses v > 1 of type boolean"),
        ("sum(a)", "uses a of type array<int>"),
        ("bool_and(v)", "uses v of type int in BOOL_AND(v)"),
        ("bit_or(x)", "uses x of type double in BIT_OR(x); need a whole number"),
        ("count(*) filter (where s)", "uses s of type string as a condition; need a boolean, such as s = 'a'"),
        ("count_if(v)", "uses v of type int as a condition; need a boolean, such as v = 0"),
        ("sum(if(v, 1, 0))", "uses v of type int as a condition"),
        ("sum(case when s then 1 end)", "uses s of type string as a condition"),
    ],
)
def test_a_value_of_the_wrong_type_is_reported(sql: str, said: str) -> None:
    [found] = misfits(sql, TYPES)
    assert found.startswith(said)


@pytest.mark.parametrize("sql", ["sum(s)", "covar_samp(upper(s), v)", "bit_or(s)", "bool_and(s)"])
def test_the_advice_on_types_works(sql: str) -> None:
    for declared in (False, True):
        [said] = misfits(sql, TYPES, declared=declared)
        [(text, kind)] = re.findall(r"try_cast\((.*) as ([a-z]+(?:\(18,2\))?)\)", said)
        followed = re.sub(rf"(?<=\(){re.escape(text)}(?=[,)])", f"try_cast({text} as {kind})", sql, flags=re.IGNORECASE)
        assert not misfits(followed, TYPES)
        assert ('engine = "spark"' in said) == (not declared)
        assert ("in source.schema" in said) == (declared and text == "s")
        assert not misfits(sql, {**TYPES, "s": kind}) or text != "s"
        assert not_proved(parsed(followed))  # on Sail


@pytest.mark.parametrize(
    "sql",
    [
        "sum(v * 2)",
        "sum(length(s))",
        "sum(cast(s as int))",
        "sum(datediff(day, day))",
        "sum(t - t)",
        "sum(a[0])",
        "sum(st.a)",
        "max(s)",
        "first(s)",
        "count(distinct s)",
        "bool_or(v > 1)",
        "bit_and(v)",
        "count(*) filter (where b and s like 'a%')",
        "sum(case s when 'a' then 1 end)",
        "histogram(v, array(1, 2))",
        "sum(null)",
        "sum(coalesce(s, 1))",  # a number, to Spark
        "sum(abs(s))",
        "sum(substring(y, 1, 2))",
        "sum(unknown_function(s))",
        "sum(not_a_column)",
        "sum(",
    ],
)
def test_fitting_and_unknown_types_are_not_reported(sql: str) -> None:
    assert misfits(sql, TYPES) == []


@pytest.mark.spark
@pytest.mark.classic
def test_each_certain_type_equals_sparks(spark: SparkSession) -> None:
    """Calls of every function, drawn from a seed: a type that is certain here is of Spark's family of types."""
    columns = ", ".join(f"cast(null as {kind}) as {name}" for name, kind in TYPES.items())
    spark.sql(f"select {columns}").createOrReplaceTempView("typed")
    certain, wrong, drawn = 0, list[str](), _calls(random.Random(20261124))
    for sql in drawn[:COMPARED]:
        if (kind := type_of(sql, TYPES)) is None:
            continue
        try:
            spark_says = spark.sql(f"select {sql} as it from typed").schema["it"].dataType.simpleString()
        except (PySparkException, Py4JJavaError):
            continue  # it takes no such arguments
        certain += 1
        if _family(kind) != _family(spark_says):
            wrong.append(f"{sql} is {spark_says}, not {kind}")
    assert wrong == []
    assert certain > COMPARED / 12


def _calls(chance: random.Random) -> list[str]:
    values = [*TYPES, *LITERALS]
    every = [
        f"{name}({', '.join(given)})"
        for name in sorted(SCALAR)
        for given in [*((one,) for one in values), *chance.sample([*itertools.product(values, repeat=2)], 20)]
    ]
    return chance.sample(every, len(every))


def _family(kind: str) -> str:
    return next((name for name, types in FAMILIES.items() if kind.startswith(types)), kind)
