"""Checksums of rows: equal rows have equal checksums, different rows almost never. Valid within one process."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windowlib.delta.data_files import values_of

Sums: TypeAlias = NDArray[np.uint64]

MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, its bits half set
HALF = np.uint64(32)


def checksums(rows: pa.Table, before: Sums | None = None) -> Sums:
    """One checksum per row. `before` has the checksums of the same rows over the columns to the left.

    >>> rows = pa.table({"user": ["ann", "bob", "ann"], "at": [1, 1, 1]})
    >>> whole = checksums(rows)
    >>> bool(whole[0] == whole[2] != whole[1]), bool((checksums(rows.select(["at"]), checksums(rows.select(["user"])))
    ... == whole).all())
    (True, True)
    """
    sums = np.zeros(rows.num_rows, np.uint64) if before is None else before.copy()
    shifted = np.empty_like(sums)
    for column in rows.columns:
        sums ^= _numbers(column.combine_chunks())
        sums *= MIX
        np.right_shift(sums, HALF, out=shifted)
        sums ^= shifted
    return sums


def _numbers(column: pa.Array) -> Any:
    """One number per value. Equal values have equal numbers."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    if pa.types.is_timestamp(column.type) or pa.types.is_integer(column.type):
        return column.cast(pa.int64(), safe=False).fill_null(-1).to_numpy().view(np.uint64)
    if pa.types.is_nested(column.type):
        return np.fromiter((hash(repr(value)) for value in values_of(column)), np.int64).view(np.uint64)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    if not pa.types.is_string(encoded.dictionary.type):
        values = [*map(repr, values)]  # so that all NaN are equal
    numbers = np.fromiter(map(hash, (*values, None)), np.int64)
    return numbers[encoded.indices.fill_null(len(values)).to_numpy()].view(np.uint64)


def with_dictionaries(rows: pa.Table) -> pa.Table:
    """Rows whose strings and binary values have dictionaries, which checksums need and other counts can share."""
    for index, column in enumerate(rows.columns):
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            rows = rows.set_column(index, rows.field(index).name, column.dictionary_encode())
    return rows
