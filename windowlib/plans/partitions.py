"""Which partition of its table a row goes to, by the time that decides: for columns as SQL, and for numbers.

In flight it is `end_partition`, the end of the window by the hour (or so); a result lies by the day of its last ms.
While a plan writes both, the column `end_partition` holds either.
"""

from __future__ import annotations

from datetime import date, timedelta
from urllib.parse import unquote

DAY_MS = 86_400_000
PARTITION = "end_partition"
FIRST_DAY = date(1970, 1, 1)


def end_partition(end: str, partition_ms: int) -> str:
    """The partition of a row in flight, from the end of its window in ms; as SQL."""
    return f"floor({end} / {partition_ms})"


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


def folder_values(path: str) -> dict[str, str]:
    """The values that stand in the folders of a file's path.

    >>> folder_values("day=2026-03-02/user=a%20b/1.parquet")
    {'day': '2026-03-02', 'user': 'a b'}
    """
    return {
        name: unquote(value) for name, is_given, value in (p.partition("=") for p in path.split("/")[:-1]) if is_given
    }


def day(partition: int | str) -> date:
    """The day that a result's partition stands for.

    >>> day("1")
    datetime.date(1970, 1, 2)
    """
    return FIRST_DAY + timedelta(days=int(partition))
