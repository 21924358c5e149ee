"""Rows as a pandas frame in which every number is the one that is stored.

pandas makes doubles of whole numbers that have a null among them, so those beyond 2**53 are others, and takes NaN for a
null, which no bound is held against; and Great Expectations reads a bound such as 0.7 as a double, which no decimal
equals.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from windowlib.quality.suite_files import Expectation, Suite

WHOLE = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}
BROKEN = {pa.float32(): pd.Float32Dtype(), pa.float64(): pd.Float64Dtype()}


def frame_of(table: pa.Table) -> pd.DataFrame:
    """The rows; `table` is used up.

    Whole numbers with nulls, and doubles with NaN, are of pandas' nullable types. Decimals are doubles where each has
    one that is written alike, so that they compare as they are written; else they stay what they are.

    >>> from decimal import Decimal
    >>> one = pa.array([2**53 + 1, None]), pa.array([Decimal("0.7"), None]), pa.array([Decimal(2**53 + 1)] * 2)
    >>> frame_of(pa.table(one, ["whole", "share", "large"])).astype(str).iloc[0].tolist()
    ['9007199254740993', '0.7', '9007199254740993']
    """
    for index, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            table = table.set_column(index, field.name, _as_doubles(table[field.name]))
    nullable = {
        name: table[name].to_pandas(types_mapper={**WHOLE, **BROKEN}.get)
        for name, kind in zip(table.column_names, table.schema.types, strict=True)
        if (kind in WHOLE and table[name].null_count) or (kind in BROKEN and pc.any(pc.is_nan(table[name])).as_py())
    }
    frame: pd.DataFrame = table.to_pandas(split_blocks=True, self_destruct=True)
    return frame.assign(**nullable)


def _as_doubles(decimals: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals as doubles, by way of texts, which Arrow rounds to the nearest; as they are where one would change."""
    doubles = decimals.cast(pa.string()).cast(pa.float64())
    try:
        return doubles if doubles.cast(decimals.type).equals(decimals) else decimals
    except pa.ArrowInvalid:  # a double that has no place in the type
        return decimals


def in_utc(suite: Suite, rows: pd.DataFrame) -> Suite:
    """The same suite; bounds of times, where they name no zone, are in UTC, as the times of `rows` are."""
    return replace(suite, expectations=tuple(_bounds_in_utc(one, rows) for one in suite.expectations))


def _bounds_in_utc(one: Expectation, rows: pd.DataFrame) -> Expectation:
    given = one.config["kwargs"]
    column = given.get("column")
    if column not in rows or not isinstance(rows[column].dtype, pd.DatetimeTZDtype):
        return one
    bounds = {side: _instant(given[side]) for side in ("min_value", "max_value") if isinstance(given.get(side), str)}
    return replace(one, config={**one.config, "kwargs": {**given, **bounds}})


def _instant(text: str) -> str:
    """
    >>> _instant("2026-03-02"), _instant("2026-03-02T12:00+01:00"), _instant("soon")
    ('2026-03-02T00:00:00+00:00', '2026-03-02T12:00+01:00', 'soon')
    """
    try:
        read = pd.Timestamp(text)
    except ValueError:  # which Great Expectations says, too
        return text
    return text if read.tzinfo else read.tz_localize("UTC").isoformat()
