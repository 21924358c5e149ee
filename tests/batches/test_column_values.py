"""Distinct and repeated values equal a count in plain Python, for every type, over all parts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib.batches.result_columns.column_values import ColumnValues

LONGS = st.integers(-(2**63), 2**63 - 1)
UNSCALED = st.sampled_from([0, 1, -1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**38 - 1]) | LONGS
TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-3, 3) | LONGS,
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf]) | st.floats(),
    pa.float32(): st.sampled_from([0.0, -0.0, math.nan]) | st.floats(width=32),
    pa.decimal128(38, 2): UNSCALED.map(lambda number: Decimal(f"{number}e-2")),
    pa.decimal128(9, 0): st.integers(-9, 9).map(Decimal),
    pa.string(): st.sampled_from(["", "a", "é"]) | st.text(max_size=3),
    pa.binary(): st.binary(max_size=2),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(UTC)),
    pa.timestamp("us"): st.datetimes(),
}
PARTS = st.sampled_from([*TYPES]).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(st.lists(st.none() | TYPES[kind], max_size=6), max_size=4))
)


def plainly(parts: Sequence[Sequence[Any]]) -> tuple[int, int]:
    """Distinct values, and rows with a value that occurs more than once."""
    values = [value for part in parts for value in part if value is not None]
    rows = Counter("NaN" if isinstance(value, float) and math.isnan(value) else value for value in values)
    return len(rows), sum(number for number in rows.values() if number > 1)


@given(PARTS, st.booleans(), st.integers(0, 2))
def test_values_are_counted_as_in_plain_python(
    parts: tuple[pa.DataType, list[list[Any]]], has_dictionary: bool, skipped: int
) -> None:
    kind, lists = parts
    values = ColumnValues()
    for rows in lists:
        column = pa.chunked_array([pa.array(rows, kind)])
        coded = column.dictionary_encode() if has_dictionary and kind in (pa.string(), pa.binary()) else column
        values.add(coded.slice(skipped))
    assert (values.distinct, values.repeating) == plainly([rows[skipped:] for rows in lists])


def test_decimals_are_distinct_whatever_their_size() -> None:
    values = ColumnValues()
    for numbers in ([Decimal(1), Decimal(2**70)], [Decimal(1), Decimal(2**70 + 1)], [None]):
        values.add(pa.chunked_array([pa.array(numbers, pa.decimal128(38, 0))]))
    assert (values.distinct, values.repeating) == (3, 2)


@pytest.mark.parametrize("rows", [[[1, 2], [1, 2]], [None], []], ids=str)
def test_nested_values_have_no_count(rows: list[Any]) -> None:
    values = ColumnValues()
    assert values.distinct == 0
    values = ColumnValues()
    values.add(pa.chunked_array([pa.array(rows, pa.list_(pa.int64()))]))
    assert values.distinct is None


def test_times_outside_the_calendar_of_python_are_counted() -> None:
    values = ColumnValues()
    values.add(pa.chunked_array([pa.array([2**62, 2**62, 0, None], pa.timestamp("us", "UTC"))]))
    assert (values.distinct, values.repeating) == (2, 2)
