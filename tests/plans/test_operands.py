"""An aggregate of an expression is that of a column that holds its values, whatever its SQL is a part of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.batches.live import run
from tests.batches.test_added import defined
from tests.clicks import MINUTE_MS, START_MS, arrive
from windowlib.plans.aggregate_functions import CALLABLE
from windowlib.plans.mergeable.function import CONDITION
from windowlib.tables.read import read_table

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


def calls(columns: Mapping[str, str], left_out: Collection[str]) -> Iterator[tuple[str, str]]:
    """Calls of the other functions with each expression as an argument, and the same with the column of its values."""
    for name, function in CALLABLE.items():
        if name in left_out:
            continue
        conditions = () if function.takes not in ("", CONDITION) else CONDITIONS
        numbers = () if function.takes == CONDITION else NUMBERS
        share = ", 0.5" if function.share else ""
        for expression in (*conditions, *numbers):
            column = columns[expression]
            if function.arguments == 1 or share:
                yield f"{name}({expression}{share})", f"{name}({column}{share})"
            else:
                yield f"{name}(w, {expression})", f"{name}(w, {column})"
                yield f"{name}({expression}, w)", f"{name}({column}, w)"
    for name in ("first", "last"):
        for expression in CONDITIONS:
            yield f"{name}({expression}) ignore nulls", f"{name}({columns[expression]}) ignore nulls"
    for expression in ("not f", "v in (1, 2)"):
        yield f"count(distinct w, {expression})", f"count(distinct w, {columns[expression]})"
    for expression in CONDITIONS:
        yield f"count(*) filter (where {expression})", f"count(*) filter (where {columns[expression]})"


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize("window", ["tumbling", "kept"])
def test_an_expression_is_what_a_column_of_its_values_is(spark: SparkSession, tmp_path: Path, window: str) -> None:
    """With state from an earlier batch, and where the operator folds elements."""
    compute = {**CONDITIONS, **NUMBERS}
    columns = {expression: f"e{number}" for number, expression in enumerate(compute)}
    pairs = list(calls(columns, SKETCHES if window == "kept" else SKETCHES[:1]))
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


def rows(number: int, compute: Mapping[str, Callable[[Row], Any]], columns: Mapping[str, str]) -> Iterator[Row]:
    """Of two keys: values that differ, and conditions that are always true; then one that lets windows fire."""
    values = [(True, True, 1), (False, True, 2), (None, True, 3), (False, None, None), (False, False, 2)]
    for place, (f, g, v) in enumerate(values):
        for user in ("a", "b"):
            of_user = {"f": f, "g": g, "v": v} if user == "a" else {"f": False, "g": True, "v": 2}
            at_ms = START_MS + (number * 4) * MINUTE_MS + place
            row = {"user": user, "at_ms": at_ms, **of_user, "w": 7 * place % 5 + number}
            yield {**row, **{columns[one]: of(row) for one, of in compute.items()}}
    if number == 2:
        yield {"user": "end", "at_ms": START_MS + 500 * MINUTE_MS}
