"""Distinct values of a result column, counted exactly over all parts that a batch writes.

Nulls are left out. All NaN are one value, and so are 0.0 and -0.0, as in SQL. Nested values are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]

DENSE = 4  # up to so many possible numbers per row, an array with a place per number is faster than a sort


@dataclass
class ColumnValues:
    """Values of a column in all parts added so far. Add no part after a count.

    >>> values = ColumnValues()
    >>> values.add(pa.chunked_array([["ann", "bob", None]]))
    >>> values.add(pa.chunked_array([["ann"]]))
    >>> values.distinct, values.repeating
    (2, 2)
    """

    _chunks: list[pa.Array] = field(default_factory=list)

    def add(self, column: pa.ChunkedArray) -> None:
        """Adds the values of a part, as plain values or with a dictionary."""
        self._chunks += column.chunks

    @property
    def distinct(self) -> int | None:
        """Number of distinct values; None if the values are nested."""
        return None if self._chunks and pa.types.is_nested(self._chunks[0].type) else self._counts[0]

    @property
    def repeating(self) -> int:
        """Number of rows whose value occurs more than once. Raises `ArrowNotImplementedError` for nested values."""
        return self._counts[1]

    @cached_property
    def _counts(self) -> tuple[int, int]:
        return distinct_and_repeating(_numbers(pa.chunked_array(self._chunks))) if self._chunks else (0, 0)


def distinct_and_repeating(numbers: Ints) -> tuple[int, int]:
    """Number of distinct numbers, and of places with a number that occurs more than once.

    >>> distinct_and_repeating(np.array([7, 5, 7])), distinct_and_repeating(np.array([2**62, -(2**62), 2**62]))
    ((2, 2), (2, 2))
    """
    if not len(numbers):
        return 0, 0
    low = numbers.min()
    if int(numbers.max()) - int(low) < DENSE * len(numbers):
        places = np.bincount(numbers - low)
        return int(np.count_nonzero(places)), len(numbers) - int(np.count_nonzero(places == 1))
    ordered = np.sort(numbers)
    differs = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return int(np.count_nonzero(differs)) - 1, len(numbers) - int(np.count_nonzero(differs[1:] & differs[:-1]))


def _numbers(column: pa.ChunkedArray) -> Ints:
    """One whole number per value that is not null. Numbers are equal if and only if the values are."""
    kind = column.type
    values = column.drop_null() if column.null_count else column
    if not len(values):
        return np.zeros(0, np.int64)
    if pa.types.is_floating(kind):
        fractions = values.cast(pa.float64()).to_numpy() + 0.0  # so that -0.0 is 0.0
        fractions[np.isnan(fractions)] = np.nan
        bits: Ints = fractions.view(np.int64)
        return bits
    if pa.types.is_decimal128(kind) and (short := _unscaled(values.combine_chunks())) is not None:
        return short
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    if pa.types.is_integer(values.type) or pa.types.is_timestamp(kind):
        return _ints(values.cast(pa.int64(), safe=False))
    coded = values.unify_dictionaries() if pa.types.is_dictionary(kind) else values.dictionary_encode()
    return _ints(pa.chunked_array([chunk.indices for chunk in coded.chunks], pa.int32()))


def _ints(column: pa.ChunkedArray) -> Ints:
    numbers: Ints = column.to_numpy()
    return numbers


def _unscaled(decimals: pa.Array) -> Ints | None:
    """Decimals without their scale, as Arrow stores them; None if one has more than 64 bits."""
    buffer = decimals.buffers()[1]
    words = np.frombuffer(buffer, np.int64).reshape(-1, 2)[decimals.offset :][: len(decimals)]
    low, high = words[:, 0], words[:, 1]
    return low if bool((high == low >> 63).all()) else None
