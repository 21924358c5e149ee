"""Conversion of rows to a pandas frame that contains exactly the stored numbers.

Without this module:

* pandas converts integers with nulls to doubles, which changes values beyond 2**53
* pandas treats NaN as null, so no bound is checked against NaN
* Great Expectations reads a bound such as 0.7 as a double, which equals no decimal
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
    """Converts an Arrow table to a frame. The conversion frees `table`: do not use it afterwards.

    64-bit integers with nulls, and floating-point numbers with NaN, get pandas' nullable types. Decimals become doubles
    if every value converts back to the same decimal. Otherwise the column keeps its decimals.

    >>> from decimal import Decimal
    >>> columns = pa.array([2**53 + 1, None]), pa.array([Decimal("0.7"), None]), pa.array([Decimal(2**53 + 1)] * 2)
    >>> frame_of(pa.table(columns, ["whole", "share", "large"])).astype(str).iloc[0].tolist()
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
    """Converts decimals to doubles. Converts to strings first, because Arrow rounds strings to the nearest double.

    Returns the decimals if a value would change.
    """
    doubles = decimals.cast(pa.string()).cast(pa.float64())
    try:
        return doubles if doubles.cast(decimals.type).equals(decimals) else decimals
    except pa.ArrowInvalid:  # a double that does not fit the decimal type
        return decimals


def in_utc(suite: Suite, rows: pd.DataFrame) -> Suite:
    """Adds UTC to time bounds that name no zone, because the times of `rows` are in UTC."""
    return replace(suite, expectations=tuple(_bounds_in_utc(expectation, rows) for expectation in suite.expectations))


def _bounds_in_utc(expectation: Expectation, rows: pd.DataFrame) -> Expectation:
    arguments = expectation.config["kwargs"]
    column = arguments.get("column")
    if column not in rows or not isinstance(rows[column].dtype, pd.DatetimeTZDtype):
        return expectation
    bounds = {
        side: _instant(arguments[side]) for side in ("min_value", "max_value") if isinstance(arguments.get(side), str)
    }
    return replace(expectation, config={**expectation.config, "kwargs": {**arguments, **bounds}})


def _instant(text: str) -> str:
    """Adds UTC to a time that names no zone. Returns other strings unchanged.

    >>> _instant("2026-03-02"), _instant("2026-03-02T12:00+01:00"), _instant("soon")
    ('2026-03-02T00:00:00+00:00', '2026-03-02T12:00+01:00', 'soon')
    """
    try:
        time = pd.Timestamp(text)
    except ValueError:  # Great Expectations reports the invalid bound
        return text
    return text if time.tzinfo else time.tz_localize("UTC").isoformat()
