"""Rows that fail the tests of `[checks.columns]`, except `unique`, which needs the values of all parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowlib.definition.toml.column_tests import ColumnTest, misfit
from windowlib.definition.toml.patterns import portable
from windowlib.model.errors import InvalidSpec
from windowlib.source.columns.column_types import kind_of

WIDEST = 76  # digits of Arrow's widest decimal


def failing(test: ColumnTest, column: pa.ChunkedArray) -> int:
    """Number of values that fail a test.

    >>> at_least = ColumnTest("n", "min", 0.5, "critical")
    >>> failing(at_least, pa.chunked_array([[0, 1, None]])), failing(at_least, pa.chunked_array([[float("nan"), 0.5]]))
    (1, 1)
    >>> failing(ColumnTest("n", "not_null", True, "critical"), pa.chunked_array([[0, None]]))
    1
    """
    if test.test == "not_null":
        return int(column.null_count)
    match test.test:
        case "min" | "max":
            passes = _within(column, test.bound, is_lowest=test.test == "min")
        case "in":
            passes = pc.is_in(column, value_set=_allowed(test.bound, column.type))
        case _:
            passes = pc.match_substring_regex(column, portable(test.bound))
    passed = pc.sum(pc.and_(passes, column.is_valid())).as_py() or 0
    return len(column) - int(column.null_count) - int(passed)


def _within(column: pa.ChunkedArray, bound: float, *, is_lowest: bool) -> pa.ChunkedArray:
    """Flags the values on the right side of a bound. A NaN is on neither side."""
    compare = pc.greater_equal if is_lowest else pc.less_equal
    if pa.types.is_integer(column.type):
        whole = math.ceil(bound) if is_lowest else math.floor(bound)
        if not -(2**63) <= whole < 2**63:
            return pa.chunked_array([pa.array([(whole < 0) == is_lowest] * len(column))])
        return compare(column.cast(pa.int64()), pa.scalar(whole, pa.int64()))
    if pa.types.is_decimal(column.type):
        return compare(column.cast(pa.decimal256(WIDEST, column.type.scale)), _decimal(bound, column.type, is_lowest))
    return compare(column, pa.scalar(float(bound), column.type if pa.types.is_float64(column.type) else pa.float64()))


def _decimal(bound: float, kind: pa.DataType, is_lowest: bool) -> pa.Scalar:
    """Bound rounded to the scale of a decimal column: up if it is the lowest value, else down."""
    with localcontext(prec=400):  # a double has at most 309 digits before the point
        largest = Decimal(10) ** (kind.precision + 1)  # in units of the last digit: beyond every value of the column
        steps = max(-largest, min(largest, Decimal(repr(bound)).scaleb(kind.scale)))
        whole = steps.to_integral_value("ROUND_CEILING" if is_lowest else "ROUND_FLOOR")
        return pa.scalar(whole.scaleb(-kind.scale), pa.decimal256(WIDEST, kind.scale))


def _allowed(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Allowed values in the type of a column. A number that the type does not hold equals no value, and is left out."""
    held = list[Any]()
    for value in values:
        exact = Decimal(repr(value)) if pa.types.is_decimal(kind) else value
        try:
            scalar = pa.scalar(exact, kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            continue
        if pa.types.is_string(kind) or pa.types.is_boolean(kind) or scalar.as_py() == exact:
            held.append(exact)
    return pa.array(held, kind)


def must_fit(test: ColumnTest, kind: pa.DataType) -> None:
    if need := misfit(test.test, test.bound, kind_of(kind)):
        raise InvalidSpec(
            f"checks.columns.{test.column}.{test.test}: given {test.bound!r}, but the column is {kind_of(kind)};"
            f" need {need}"
        )
