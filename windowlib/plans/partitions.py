"""Partition of a row in its table, computed from its time: as SQL over columns, and in Python for one value.

State is partitioned by `end_partition`: the end of the window divided by the partition width, about an hour. Results
are partitioned by the day of their window's last ms. A plan returns rows of state and rows of results: its column
`end_partition` holds the state partition of a row of state, and the day of a result.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import date, timedelta
from typing import TYPE_CHECKING

from windowlib.plans.functions import F

if TYPE_CHECKING:
    from pyspark.sql import Column

DAY_MS = 86_400_000
PARTITION = "end_partition"
NOTHING = "__HIVE_DEFAULT_PARTITION__"
FIRST_DAY = date(1970, 1, 1)


def end_partition(end: str, partition_ms: int) -> str:
    """SQL of the state partition of a row. `end` is SQL of the window's end in ms."""
    return f"floor({end} / {partition_ms})"


def end_partition_at(end: Column, partition_ms: int) -> Column:
    """`end_partition` as a column."""
    return F.floor(end / F.lit(partition_ms))


def end_partition_of(end_ms: int, partition_ms: int) -> int:
    """`end_partition` in Python, for one row.

    >>> end_partition_of(3_600_000, 3_600_000), end_partition_of(-1, 3_600_000)
    (1, -1)
    """
    return end_ms // partition_ms


def window_day(max_timestamp: str) -> str:
    """SQL of a result's day, in days since 1970-01-01. `max_timestamp` is SQL of the window's last ms."""
    return f"floor(({max_timestamp}) / {DAY_MS})"


def window_day_of(max_timestamp_ms: int) -> int:
    """`window_day` in Python, for one result.

    >>> window_day_of(86_399_999), window_day_of(86_400_000)
    (0, 1)
    """
    return max_timestamp_ms // DAY_MS


RESULT_DAY = window_day("unix_millis(window_end) - 1")
"""Day of a row of `results`, as SQL."""


def folder_values(path: str) -> dict[str, str | None]:
    """Partition values from the folder names of a file's path, as Hive, Spark and Arrow write them; None for null.

    >>> folder_values("day=2026-03-02/user=a%20b/of=__HIVE_DEFAULT_PARTITION__/to=/1.parquet")
    {'day': '2026-03-02', 'user': 'a b', 'of': None, 'to': None}
    """
    parts = (part.partition("=") for part in path.split("/")[:-1])
    named = ((name, value) for name, separator, value in parts if name and separator)
    return {_unescaped(name): None if value in (NOTHING, "") else _unescaped(value) for name, value in named}


def values_of(path: str, recorded: str | None) -> dict[str, str | None]:
    """Partition values of a file as strings, by column; None for null.

    recorded: the values in the Delta log, as JSON, or None to read the values from the folders of the path

    >>> values_of("day=1/a.parquet", '{"day": "2"}'), values_of("day=1/a.parquet", None)
    ({'day': '2'}, {'day': '1'})
    """
    return folder_values(path) if recorded is None else dict(json.loads(recorded))


def _unescaped(text: str) -> str:
    """Decodes each %XX as a byte of UTF-8, as Arrow writes it, otherwise as a character, as Spark writes it.

    >>> _unescaped("50%25 %zz"), _unescaped("%C3%A9%e6%97%a5"), _unescaped("%E9")
    ('50% %zz', 'é日', 'é')
    """
    text = re.sub("(?:%[89a-fA-F][0-9a-fA-F])+", _decoded_utf_8, text)
    return re.sub("%([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), text)


def _decoded_utf_8(match: re.Match[str]) -> str:
    with suppress(UnicodeDecodeError):
        return bytes.fromhex(match[0].replace("%", "")).decode()
    return match[0]


def day(partition: int | str) -> date:
    """Date of a result partition, which is a number of days since 1970-01-01.

    >>> day("1")
    datetime.date(1970, 1, 2)
    """
    return FIRST_DAY + timedelta(days=int(partition))
