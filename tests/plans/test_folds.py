"""Aggregates folded one value at a time give the results of the matrix, for every grouping of merges."""

from __future__ import annotations

import decimal
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
import sqlglot

from tests.support.matrix import columns as matrix
from tests.support.matrix.columns import Column, columns
from tests.support.matrix.values import ROWS, times
from windowlib.definition.sql.aggregates import read_aggregates
from windowlib.plans.aggregates.calls import Call, call
from windowlib.plans.aggregates.functions import CALLABLE, FUNCTIONS
from windowlib.plans.aggregates.mergeable.function import ARRIVAL, TIMESTAMP
from windowlib.plans.general.folds import Folds, argument, finished
from windowlib.plans.sql.kinds import decimal_of

PLAIN = ("Column", "Literal")


def plain() -> Iterator[Column]:
    """Columns of the matrix that are a single call with only columns and literals as arguments."""
    for one in columns():
        found = called(one.sql)
        if found and found.condition is None and all(type(of).__name__ in PLAIN for of in found.arguments):
            yield one


@cache
def called(sql: str) -> Call | None:
    """Call of an expression that is a single call; None for others."""
    return call(sqlglot.parse_one(sql, dialect="spark"))


def elements(one: Column, number: int) -> Iterator[dict[str, Any]]:
    """Elements of a case as the plan passes them to a fold."""
    found = called(one.sql)
    assert found
    element = FUNCTIONS[found.name].element
    for row, value in enumerate(one.type.cases[number].values()):
        given = Decimal(value) if decimal_of(one.type.shown) and value is not None else value
        if isinstance(given, float) and FUNCTIONS[found.name].normal:
            given = float("nan") if math.isnan(given) else given + 0.0
        of_row = {one.type.column: given, "at": times()[row], "nth": float(row)}
        x, *more = (of_row[of.name] for of in found.arguments if type(of).__name__ == "Column")
        timestamp_ms = int(times()[row].timestamp() * 1000)
        yield {TIMESTAMP: timestamp_ms, ARRIVAL: row, argument(0): _element(element, x, *more)}


def _element(template: str, x: Any, y: Any = None) -> Any:
    """Value of the SQL of an element."""
    match template:
        case "{x}":
            return x
        case "named_struct('value', {x})":
            return {"value": x}
        case "cast({x} as double)":
            return None if x is None else float(x)
        case "case when {x} is not null then named_struct('value', {x}) end":
            return None if x is None else {"value": x}
    if y is None or (x is None and "'by'" not in template):
        return None
    return {"by": y, "value": x} if "'by'" in template else {"x": float(x), "y": float(y)}


def test_all_functions_are_folded_here() -> None:
    found = {of.name for one in plain() if (of := called(one.sql))}
    assert found == set(CALLABLE) - {"hll_sketch_agg"}  # of its bytes only an estimate can be compared


def test_only_sketches_are_not_folded() -> None:
    assert {name for name, function in CALLABLE.items() if not function.folds} == {
        "approx_count_distinct",
        "hll_sketch_agg",
    }


def folded() -> Iterator[Column]:
    """Columns of `plain` whose functions can be folded."""
    for one in plain():
        [aggregate] = read_aggregates({"x": one.sql}).aggregates
        if FUNCTIONS[aggregate.function].folds:
            yield one


@pytest.mark.parametrize("one", list(folded()), ids=lambda one: one.name)
def test_folds_give_the_results_of_the_matrix(one: Column) -> None:
    decimal.getcontext().prec = 76
    aggregates = read_aggregates({"x": one.sql}).aggregates
    folds, rng, wrong = Folds(aggregates), random.Random(one.name), []
    for number, case in enumerate(one.type.cases):
        given = list(elements(one, number))
        assert len(given) == 3 * ROWS
        groups = [folds.create_accumulator() for _ in range(4)]
        for element in given:
            at = rng.randrange(4)
            groups[at] = folds.add(groups[at], element)
        rng.shuffle(groups)
        merged = folds.merge(folds.merge(groups[0], groups[1]), folds.merge(groups[2], groups[3]))
        [got] = finished(aggregates, merged)
        expected = one.expected(case, 3)
        if isinstance(got, Decimal) and isinstance(expected, Decimal):
            got = got.quantize(expected, decimal.ROUND_HALF_UP)
        if not matrix.same(got, expected, nearly=one.aggregate.nearly):
            wrong.append((case.name, got, expected))
    assert wrong == []
