"""Names of the columns that windowlib adds to the rows of a source. All begin with one reserved prefix.

A source may use every name without this prefix. Stored and published tables use plain names, because keys are their
only source columns. `windowlib.definition.rules` refuses a key with the name of a table's column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

RESERVED = "_windowlib_"

TIMESTAMP_MS = RESERVED + "timestamp_ms"  # the event time, floored to whole milliseconds
ARRIVAL = RESERVED + "arrival"  # position in arrival order
REASON = RESERVED + "reason"  # the reason for refusing the row; null: admitted
CORRUPT = RESERVED + "corrupt"  # the text of an unreadable row
MISFIT = RESERVED + "misfit"  # reason why a folder's value does not fit its type; absent if all fit
SOURCE_FILE = RESERVED + "source_file"  # a URI or path
SOURCE_ROW = RESERVED + "source_row"  # row number in its file, from 0
WINDOW_START_MS = RESERVED + "window_start_ms"  # bounds of the window that a late event missed
WINDOW_END_MS = RESERVED + "window_end_ms"
FILE = RESERVED + "file"  # the path or URI of the file that holds a table's row
BEFORE = RESERVED + "before"  # the earlier values of a changed result
_ANOTHER_TYPE = re.compile(rf"{RESERVED}type_[0-9]+_of_")
EVENT_TIME = "timestamp_ms"  # the event time's name in a definition, unless the source has a column of this name
# Columns of a plan that lack the prefix and are in no table: next to results and state, and next to keys.
BESIDE_RESULTS = ("replaced", "part", "end_partition")
BESIDE_KEYS = (EVENT_TIME, "arrival", "before")


def internal(name: str) -> str:
    """Name of a column that exists only inside one plan, next to columns of the source.

    >>> internal("bucket")
    '_windowlib_bucket'
    """
    return RESERVED + name


def is_reserved(name: str) -> bool:
    """Tests if a column name is reserved, so that no source may use it. Ignores case, as Spark does."""
    return name.casefold().startswith(RESERVED)


def of_another_type(name: str, number: int) -> str:
    """Name of the extra column for a source column's values of a different type.

    >>> of_another_type("price", 1), plain(of_another_type("price", 1)), plain("price")
    ('_windowlib_type_1_of_price', 'price', 'price')
    """
    return f"{RESERVED}type_{number}_of_{name}"


def plain(name: str) -> str:
    """Name of a column in the source, without the prefix of an extra type."""
    return _ANOTHER_TYPE.sub("", name, count=1)


def renamed(name: str, to: Callable[[str], str]) -> str:
    """Applies `to` to the name of a column in the source, and keeps the prefix of an extra type.

    >>> renamed(of_another_type("price", 1), str.upper), renamed("price", str.upper)
    ('_windowlib_type_1_of_PRICE', 'PRICE')
    """
    column = plain(name)
    return name.removesuffix(column) + to(column)


def own(columns: Iterable[str]) -> list[str]:
    """Columns of the source, including the extra columns for other types.

    >>> own(["reason", REASON, of_another_type("reason", 1)])
    ['reason', '_windowlib_type_1_of_reason']
    """
    return [name for name in columns if not is_reserved(plain(name))]


def same_but_for_case(columns: Iterable[str]) -> list[str]:
    """Sorted column names that equal the name of another column if case is ignored.

    >>> same_but_for_case(["User", "at", "user"])
    ['User', 'user']
    """
    all_names = list(columns)
    if len({name.casefold() for name in all_names}) == len(all_names):
        return []
    times = Counter(name.casefold() for name in all_names)
    return sorted(name for name in all_names if times[name.casefold()] > 1)
