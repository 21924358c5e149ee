"""Which partition of its table a row goes to, by the time that decides: for columns as SQL, and for numbers.

In flight it is `end_partition`, the end of the window by the hour (or so); a result lies by the day of its last ms.
While a plan writes both, the column `end_partition` holds either.
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
    """The partition of a row in flight, from the end of its window in ms; as SQL."""
    return f"floor({end} / {partition_ms})"


def end_partition_at(end: Column, partition_ms: int) -> Column:
    """The same of a column."""
    return F.floor(end / F.lit(partition_ms))


def end_partition_of(end_ms: int, partition_ms: int) -> int:
    """The same for one row.

    >>> end_partition_of(3_600_000, 3_600_000), end_partition_of(-1, 3_600_000)
    (1, -1)
    """
    return end_ms // partition_ms


def window_day(max_timestamp: str) -> str:
    """The day of a result, counted from 1970-01-01, from its window's last ms; as SQL."""
    return f"floor(({max_timestamp}) / {DAY_MS})"


def window_day_of(max_timestamp_ms: int) -> int:
    """The same for one result.

    >>> window_day_of(86_399_999), window_day_of(86_400_000)
    (0, 1)
    """
    return max_timestamp_ms // DAY_MS


RESULT_DAY = window_day("unix_millis(window_end) - 1")
"""The day of a row of `results`, as SQL."""


def folder_values(path: str) -> dict[str, str | None]:
    """The values that stand in the folders of a file's path, as Hive, Spark and Arrow write them; None for their null.

    >>> folder_values("day=2026-03-02/user=a%20b/of=__HIVE_DEFAULT_PARTITION__/to=/1.parquet")
    {'day': '2026-03-02', 'user': 'a b', 'of': None, 'to': None}
    """
    parts = (part.partition("=") for part in path.split("/")[:-1])
    named = ((name, value) for name, given, value in parts if name and given)
    return {_unescaped(name): None if value in (NOTHING, "") else _unescaped(value) for name, value in named}


def values_of(path: str, recorded: str | None) -> dict[str, str | None]:
    """Returns the texts of a file's partition columns, by column; None for null.

    recorded: the values that a Delta log has for the file, as JSON; without it the folders of the path have them

    >>> values_of("day=1/a.parquet", '{"day": "2"}'), values_of("day=1/a.parquet", None)
    ({'day': '2'}, {'day': '1'})
    """
    return folder_values(path) if recorded is None else dict(json.loads(recorded))


def _unescaped(text: str) -> str:
    """A character for each %XX, as Spark writes those that folders cannot have, or a byte of UTF-8, as Arrow does.

    >>> _unescaped("50%25 %zz"), _unescaped("%C3%A9%e6%97%a5"), _unescaped("%E9")
    ('50% %zz', 'é日', 'é')
    """
    text = re.sub("(?:%[89a-fA-F][0-9a-fA-F])+", _of_utf_8, text)
    return re.sub("%([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text)


def _of_utf_8(found: re.Match[str]) -> str:
    with suppress(UnicodeDecodeError):
        return bytes.fromhex(found[0].replace("%", "")).decode()
    return found[0]


def day(partition: int | str) -> date:
    """The day that a result's partition stands for.

    >>> day("1")
    datetime.date(1970, 1, 2)
    """
    return FIRST_DAY + timedelta(days=int(partition))
