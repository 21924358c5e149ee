"""Statistics of a Parquet file: the smallest and largest value of each column, and the number of nulls.

They are read from the file's footer and written into the table's log. Readers use them to skip files, so they must be
exact. A column without statistics in the footer has none here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

from windowlib.definition.instants import time_of, utc

LONGEST_TEXT = 32  # in the log

Bounds = dict[str, Any]


def bounds_of(footer: pq.FileMetaData) -> tuple[Bounds, Bounds, dict[str, int]]:
    """The smallest values, the largest values and the numbers of nulls by column, if the footer has them."""
    low: Bounds = {}
    high: Bounds = {}
    nulls: dict[str, int] = {}
    unbounded: set[str] = set()
    uncounted: set[str] = set()
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for index in range(row_group.num_columns):
            column = row_group.column(index)
            name, statistics = column.path_in_schema, column.statistics
            if "." in name:
                continue  # inside a struct, a list or a map
            if statistics is None or not statistics.has_null_count:
                uncounted.add(name)
            else:
                nulls[name] = nulls.get(name, 0) + statistics.null_count
            if statistics is None or not statistics.has_min_max:
                if statistics is None or statistics.null_count != column.num_values:
                    unbounded.add(name)
                continue
            try:
                least, greatest = statistics.min, statistics.max
            except (OverflowError, ValueError):  # a time outside Python's calendar
                unbounded.add(name)
                continue
            low[name] = min(low.get(name, least), least)
            high[name] = max(high.get(name, greatest), greatest)
    return (
        {name: value for name, value in low.items() if name not in unbounded},
        {name: value for name, value in high.items() if name not in unbounded},
        {name: count for name, count in nulls.items() if name not in uncounted},
    )


def log_statistics(rows: int, low: Mapping[str, Any], high: Mapping[str, Any], nulls: Mapping[str, int]) -> str:
    """The statistics of a file in the JSON form of the log. delta-rs misreads characters written as two escapes."""
    lowest = {name: value for name, value in ((name, _low(value)) for name, value in low.items()) if value is not None}
    highest = {name: top for name, top in ((name, _high(value)) for name, value in high.items()) if top is not None}
    statistics = {
        "numRecords": str(rows),
        "minValues": _object(lowest),
        "maxValues": _object(highest),
        "nullCount": json.dumps(dict(nulls), ensure_ascii=False),
    }
    return "{" + ", ".join(f'"{name}": {value}' for name, value in statistics.items()) + "}"


def _object(bounds: Mapping[str, Any]) -> str:
    """Bounds as a JSON object. Decimals are numbers with all their digits, which `json` cannot write."""
    texts = (
        (name, f"{value:f}" if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False))
        for name, value in bounds.items()
    )
    return "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {text}" for name, text in texts) + "}"


def _low(value: Any) -> Any:
    match value:
        case bool():
            return None
        case int() | Decimal():
            return value
        case float():
            return None  # footers ignore NaN, but readers sort it as the greatest number
        case str():
            return value[:LONGEST_TEXT]
        case datetime():
            return _timestamp(value)
        case date():
            return value.isoformat()
    return None  # bytes: no statistics


def _high(value: Any) -> Any:
    match value:
        case str():
            return value if len(value) <= LONGEST_TEXT else _above(value[:LONGEST_TEXT])
        case datetime():
            with suppress(OverflowError):  # the last millisecond of Python's calendar
                return _timestamp(value + timedelta(microseconds=999))  # round up: the log keeps milliseconds
            return None
    return _low(value)


def _above(beginning: str) -> str | None:
    """Least string that is greater than all strings with this prefix. None if no such string exists.

    The string uses only characters below the surrogates. Readers order characters above them by bytes or by UTF-16, and
    the two orders differ.

    >>> _above("ab"), _above("a\\U0001f600"), _above("\\U0001f600")
    ('ac', 'b', None)
    """
    for length in range(len(beginning), 0, -1):
        if beginning[length - 1] < "\ud7ff":
            return beginning[: length - 1] + chr(ord(beginning[length - 1]) + 1)
    return None


def _timestamp(value: datetime) -> str:
    return f"{utc(time_of(value)).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
