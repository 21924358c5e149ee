"""Rows as a pandas frame in which every number is the one that is stored.

pandas makes doubles of whole numbers that have a null among them, so those beyond 2**53 are others; and Great
Expectations reads a bound such as 0.7 as a double, which no decimal equals.
"""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

WHOLE = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}


def frame_of(table: pa.Table) -> pd.DataFrame:
    """The rows; `table` is used up.

    Whole numbers with nulls are of pandas' nullable types. Decimals are doubles where each has one that is written
    alike, so that they compare as they are written; else they stay what they are.

    >>> from decimal import Decimal
    >>> one = pa.array([2**53 + 1, None]), pa.array([Decimal("0.7"), None]), pa.array([Decimal(2**53 + 1)] * 2)
    >>> frame_of(pa.table(one, ["whole", "share", "large"])).astype(str).iloc[0].tolist()
    ['9007199254740993', '0.7', '9007199254740993']
    """
    for index, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            table = table.set_column(index, field.name, _as_doubles(table[field.name]))
    whole = {
        name: table[name].to_pandas(types_mapper=WHOLE.get)
        for name, kind in zip(table.column_names, table.schema.types, strict=True)
        if kind in WHOLE and table[name].null_count
    }
    frame: pd.DataFrame = table.to_pandas(split_blocks=True, self_destruct=True)
    return frame.assign(**whole)


def _as_doubles(decimals: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals as doubles, by way of texts, which Arrow rounds to the nearest; as they are where one would change."""
    doubles = decimals.cast(pa.string()).cast(pa.float64())
    try:
        return doubles if doubles.cast(decimals.type).equals(decimals) else decimals
    except pa.ArrowInvalid:  # a double that has no place in the type
        return decimals
