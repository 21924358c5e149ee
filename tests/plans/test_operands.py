"""An aggregate of an expression equals that of a column with its values, in every place of the SQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import MINUTE_MS, START_MS, arrive
from tests.support.live_pipeline import defined, run
from tests.support.strategies import ALL
from windowlib.engines.choice import MOST_SUMS
from windowlib.engines.sail import is_sail
from windowlib.model.errors import InvalidSpec
from windowlib.plans.aggregates.calls import parsed
from windowlib.plans.aggregates.functions import CALLABLE
from windowlib.plans.aggregates.mergeable.function import CONDITION
from windowlib.plans.sql.kinds import Unproved
from windowlib.plans.sql.types import type_of
from windowlib.publication.readers import read_table

Row = Mapping[str, Any]


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _and(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def _of_v(compute: Callable[[int], Any]) -> Callable[[Row], Any]:
    return lambda row: None if row["v"] is None else compute(row["v"])


CONDITIONS: Mapping[str, Callable[[Row], Any]] = {
    "not f": lambda row: _not(row["f"]),
    "f or not g": lambda row: _not(_and(_not(row["f"]), row["g"])),
    "v in (1, 2)": _of_v(lambda v: v in (1, 2)),
    "f is null": lambda row: row["f"] is None,
}
NUMBERS: Mapping[str, Callable[[Row], Any]] = {
    "v + 1": _of_v(lambda v: v + 1),
}
SKETCHES = ("hll_sketch_agg", "approx_count_distinct")  # the operator has none; bytes of the first are each engine's


def calls(columns: Mapping[str, str], left_out: Collection[str], turn: int) -> Iterator[tuple[str, str]]:
    """Calls of the other functions with an expression as an argument, and the same with the column of its values.

    In `make test` every second, of which `turn` says which, and each function gets one condition, in turn.
    """
    first, step = (0, 1) if ALL else (turn, 2)
    for place, (name, function) in [*enumerate(CALLABLE.items())][first::step]:
        if name in left_out:
            continue
        some = CONDITIONS if ALL else [[*CONDITIONS][place // step % len(CONDITIONS)]]
        conditions = () if function.takes not in ("", CONDITION) else some
        numbers = () if function.takes == CONDITION else NUMBERS
        share = ", 0.5" if function.share else ""
        for expression in (*conditions, *numbers):
            column = columns[expression]
            if function.arguments == 1 or share:
                yield f"{name}({expression}{share})", f"{name}({column}{share})"
            else:
                yield f"{name}(w, {expression})", f"{name}(w, {column})"
                yield f"{name}({expression}, w)", f"{name}({column}, w)"
    conditions = [*CONDITIONS][first::step]
    for name in ("first", "last"):
        for expression in conditions:
            yield f"{name}({expression}) ignore nulls", f"{name}({columns[expression]}) ignore nulls"
    for expression in ("not f", "v in (1, 2)")[first::step]:
        yield f"count(distinct w, {expression})", f"count(distinct w, {columns[expression]})"
    for expression in conditions:
        yield f"count(*) filter (where {expression})", f"count(*) filter (where {columns[expression]})"


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize(("window", "turn"), [("tumbling", 0), ("kept", 1)], ids=["tumbling", "kept"])
def test_an_expression_equals_a_column_of_its_values(
    spark: SparkSession, tmp_path: Path, window: str, turn: int
) -> None:
    """Covers state of an earlier batch, and the operator that folds elements."""
    compute = {**CONDITIONS, **NUMBERS}
    columns = {expression: f"e{number}" for number, expression in enumerate(compute)}
    pairs = list(calls(columns, SKETCHES if window == "kept" else SKETCHES[:1], turn))
    sql = {f"{side}{number}": pair[place] for number, pair in enumerate(pairs) for place, side in enumerate("ab")}
    definition = defined(tmp_path, sql, window)
    kinds = {"f": pa.bool_(), "g": pa.bool_(), "v": pa.int64(), "w": pa.int64()}
    made = {columns[one]: pa.bool_() if one in CONDITIONS else pa.int64() for one in compute}
    schema = pa.schema([("user", pa.string()), ("at_ms", pa.int64()), *kinds.items(), *made.items()])
    for number in (1, 2):
        arrive(tmp_path, number, [*rows(number, compute, columns)], schema)
        run(definition, spark)
    found = [row for row in read_table(definition, "results").to_pylist() if row["user"] != "end"]
    assert len(found) == 2
    wrong = {
        pair[0]: (row[f"a{n}"], row[f"b{n}"])
        for row in found
        for n, pair in enumerate(pairs)
        if repr(row[f"a{n}"]) != repr(row[f"b{n}"])
    }
    assert wrong == {}


@pytest.mark.spark
@pytest.mark.both
def test_a_filter_comes_before_the_argument(spark: SparkSession, tmp_path: Path) -> None:
    """Arguments are not computed for rows that the filter excludes, where they may fail.

    In `make test` every function runs on one engine: every twelfth on Spark, the others on Sail.
    """
    first, second = "v / w", "q"
    names = [name for name, of in CALLABLE.items() if of.takes != CONDITION and not of.takes.startswith("a whole")]
    names = [name for name in names if name not in SKETCHES]
    names = [name for place, name in enumerate(names) if ALL or is_sail(spark) == (place % 12 > 0)]
    pairs = []
    for name in names:
        more = ", 0.5" if CALLABLE[name].share else ", v" if CALLABLE[name].arguments == 2 else ""
        pairs.append(tuple(f"{name}({one}{more}) filter (where w <> 0)" for one in (first, second)))
    pairs.append(tuple(f"max_by(v, {one}) filter (where w <> 0)" for one in (first, second)))
    sql = {f"{side}{number}": pair[place] for number, pair in enumerate(pairs) for place, side in enumerate("ab")}
    definition = defined(tmp_path, sql, "tumbling")
    kinds = {"user": pa.string(), "at_ms": pa.int64(), "v": pa.int64(), "w": pa.int64(), "q": pa.float64()}
    for number in (1, 2):
        numbers = [(7, 2), (5, 0), (9, 4), (number, 0), (3, number)]
        given = [
            {"user": "a", "at_ms": START_MS + (4 * number) * MINUTE_MS + n, "v": v, "w": w, "q": v / w if w else None}
            for n, (v, w) in enumerate(numbers)
        ]
        end = [{"user": "end", "at_ms": START_MS + 500 * MINUTE_MS, "v": 1, "w": 1, "q": 1.0}] if number == 2 else []
        arrive(tmp_path, number, [*given, *end], pa.schema(kinds.items()))
        run(definition, spark)
    [row] = [row for row in read_table(definition, "results").to_pylist() if row["user"] == "a"]
    wrong = {pair[0]: (row[f"a{n}"], row[f"b{n}"]) for n, pair in enumerate(pairs) if row[f"a{n}"] != row[f"b{n}"]}
    assert wrong == {}


@pytest.mark.parametrize(
    "sql",
    [
        "count_if(w <> 0 and v / w > 1)",
        "count_if(w = 0 or v / w > 1)",
        "count_if(if(w = 0, false, v / w > 1))",
        "count_if(case when w <> 0 then v / w > 1 else false end)",
        "bool_or(v / w > 1) filter (where w <> 0)",
        "if(count(w) > 0, sum(v) / count(w) > 1, false)",
    ],
)
def test_a_division_behind_a_condition_is_not_proved(sql: str) -> None:
    """Sail would fail where Spark returns a result. For numbers it computes the same rows as Spark."""
    types = {"v": "bigint", "w": "bigint"}
    with pytest.raises(Unproved, match="divides behind a condition"):
        type_of(parsed(sql), types)
    assert type_of(parsed("sum(case when w <> 0 then v / w end)"), types) == "double"


@pytest.mark.parametrize("sql", ["s like t", "v like 'a%'", "v like s", "s like lower('A%')"])
def test_like_is_proved_only_for_texts_and_literal_patterns(sql: str) -> None:
    types = {"s": "string", "t": "string", "v": "bigint"}
    with pytest.raises(Unproved, match=r"uses .* LIKE "):
        type_of(parsed(f"count(*) filter (where {sql})"), types)
    assert type_of(parsed("count(*) filter (where s like 'a%')"), types) == "bigint"


@pytest.mark.parametrize("least", ["-2147483648", "-9223372036854775808"])
def test_the_least_whole_numbers_are_not_proved(least: str) -> None:
    with pytest.raises(Unproved, match="narrower type"):
        type_of(parsed(f"coalesce(min(v), {least})"), {"v": "int"})


@pytest.mark.spark
@pytest.mark.embedded
def test_a_text_that_looks_like_an_aggregate_mark_stays(spark: SparkSession, tmp_path: Path) -> None:
    definition = defined(tmp_path, {"n": "coalesce(max(s), '_aggregate0_')"}, "tumbling")
    schema = pa.schema([("user", pa.string()), ("at_ms", pa.int64()), ("s", pa.string())])
    arrive(
        tmp_path, 1, [{"user": "a", "at_ms": START_MS}, {"user": "end", "at_ms": START_MS + 500 * MINUTE_MS}], schema
    )
    run(definition, spark)
    assert [row["n"] for row in read_table(definition, "results").to_pylist()] == ["_aggregate0_"]


@pytest.mark.spark
@pytest.mark.both
def test_operations_may_nest_deeply(spark: SparkSession, tmp_path: Path) -> None:
    """Nests them as deep as Sail accepts."""
    sql = {
        "total": f"sum({' + '.join(['v'] * MOST_SUMS)})",
        "some": f"count(*) filter (where {' or '.join(f'v = {number}' for number in range(5, 150))})",
        "rounded": "round(round(round(sum(v) / 3, 2) * 1.5, 2) * 1.1, 1)",
    }
    definition = defined(tmp_path, sql, "tumbling")
    schema = pa.schema([("user", pa.string()), ("at_ms", pa.int64()), ("v", pa.int64())])
    given = [{"user": "a", "at_ms": START_MS, "v": v} for v in (3, 7)]
    arrive(tmp_path, 1, [*given, {"user": "end", "at_ms": START_MS + 500 * MINUTE_MS, "v": 0}], schema)
    run(definition, spark)
    [row] = read_table(definition, "results").to_pylist()
    assert (row["total"], row["some"], row["rounded"]) == (10 * MOST_SUMS, 1, 5.5)


@pytest.mark.spark
@pytest.mark.embedded
def test_two_aggregates_with_one_name_on_sail_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    said = pytest.raises(
        InvalidSpec, match=r'gives two of these aggregates the same name, sum.* or set engine = "spark"'
    )
    definition = defined(tmp_path, {"a": "avg(v)", "b": "sum(cast(v as decimal(12, 2)))"}, "tumbling")
    schema = pa.schema([("user", pa.string()), ("at_ms", pa.int64()), ("v", pa.int64())])
    arrive(tmp_path, 1, [{"user": "a", "at_ms": START_MS, "v": 1}], schema)
    with said if is_sail(spark) else nullcontext():
        run(definition, spark)


def rows(number: int, compute: Mapping[str, Callable[[Row], Any]], columns: Mapping[str, str]) -> Iterator[Row]:
    """Events of two keys: `a` with varying values, `b` with equal ones. A last event lets the windows fire."""
    values = [(True, True, 1), (False, True, 2), (None, True, 3), (False, None, None), (False, False, 2)]
    for place, (f, g, v) in enumerate(values):
        for user in ("a", "b"):
            of_user = {"f": f, "g": g, "v": v} if user == "a" else {"f": False, "g": True, "v": 2}
            at_ms = START_MS + (number * 4) * MINUTE_MS + place
            row = {"user": user, "at_ms": at_ms, **of_user, "w": 7 * place % 5 + number}
            yield {**row, **{columns[one]: of(row) for one, of in compute.items()}}
    if number == 2:
        yield {"user": "end", "at_ms": START_MS + 500 * MINUTE_MS}
