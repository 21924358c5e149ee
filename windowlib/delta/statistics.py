"""Choice of the files that may hold wanted rows, by their statistics. A file without statistics is always chosen."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import accumulate
from math import isfinite

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windowlib.definition.instants import nearest_utc
from windowlib.delta.data_files import DataFile
from windowlib.model.rerun import TimeRange


def overlapping(files: Iterable[DataFile], first: str, last: str, span: TimeRange) -> list[DataFile]:
    """Files that may hold a row whose interval of TIMESTAMPs `first` to `last` overlaps or touches the span."""
    low, high = nearest_utc(span.from_ms), nearest_utc(span.to_ms)
    return [f for f in files if f.low.get(first, low) <= high and f.high.get(last, high) >= low]


def overlapping_ms(files: Iterable[DataFile], bounds: tuple[str, str], span: TimeRange) -> list[DataFile]:
    """Files that may hold a row whose interval overlaps or touches the span.

    `bounds` names the columns of the interval's start and end, in ms.
    """
    first, last = bounds
    low, high = span.from_ms, span.to_ms
    return [f for f in files if f.low.get(first, low) <= high and f.high.get(last, high) >= low]


def finite_number(value: object) -> int | float | Decimal | None:
    """Finite number in the statistics of a file, unchanged; None for other values."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return value if is_number and isfinite(value) else None  # type: ignore[arg-type,return-value]


def of_sources(files: Iterable[DataFile], paths: Sequence[str]) -> list[DataFile]:
    """Data files that may hold rows from the source files `paths`."""
    if not paths:
        return []
    first, last = min(paths), max(paths)
    # For a long string, the log keeps a prefix as the smallest value, and possibly no largest value.
    return [f for f in files if f.low.get("source_file", first) <= last and first <= f.high.get("source_file", last)]


def holding_texts(files: Iterable[DataFile], column: str, spans: Iterable[tuple[str, str]]) -> list[DataFile]:
    """Files that may hold a string inside one of the spans. Both ends of a span are inclusive.

    >>> files = [DataFile(name, 9, 9, low={"id": name}, high={"id": name}) for name in "abcde"]
    >>> files.append(DataFile("long texts", 9, 9, low={"id": "bbb"}))  # the log has no largest value
    >>> [file.path for file in holding_texts(files, "id", [("d", "d"), ("aa", "b")])]
    ['b', 'd', 'long texts']
    """
    in_order = sorted(spans)
    starts = [low for low, _ in in_order]
    greatest_ends = list(accumulate((high for _, high in in_order), max))

    def may_hold(file: DataFile) -> bool:
        low, high = file.low.get(column, ""), file.high.get(column)
        started = len(starts) if high is None else bisect_right(starts, high)  # spans that start before the file ends
        return started > 0 and greatest_ends[started - 1] >= low

    return [file for file in files if may_hold(file)]


def may_hold_any(files: pa.Table, column: str, times_ms: NDArray[np.int64]) -> pa.Array:
    """Tests for each file if its TIMESTAMP `column` may hold one of these times.

    files:    rows as in `Table.files_where`
    times_ms: ascending
    returns:  a boolean per file

    >>> day = pa.timestamp("s", "UTC")
    >>> files = pa.table({"min.at": pa.array([1, 3, None], day), "max.at": pa.array([2, 5, None], day)})
    >>> may_hold_any(files, "at", np.array([0, 5_000])).to_pylist()
    [False, True, True]
    """
    if not {f"min.{column}", f"max.{column}"} <= {*files.column_names}:
        return pa.array(np.ones(files.num_rows, bool))
    bounds = [pc.cast(files[f"{bound}.{column}"], pa.timestamp("ms", "UTC"), safe=False) for bound in ("min", "max")]
    low, high = (bound.cast(pa.int64()).fill_null(0).to_numpy() for bound in bounds)
    holds = np.searchsorted(times_ms, low, "left") < np.searchsorted(times_ms, high, "right")
    unknown = pc.or_(*map(pc.is_null, bounds)).to_numpy()
    return pa.array(holds | unknown)
