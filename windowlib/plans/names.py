"""The columns that windowlib adds to rows of a source, next to the source's own: all begin with one reserved prefix.

So a source may call its columns anything else. What is stored, or published, keeps its plain names: next to those are
only the source's keys, and `windowlib.definition.rules` refuses a key that is called like one of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

RESERVED = "_windowlib_"

TIMESTAMP_MS = RESERVED + "timestamp_ms"  # the event time, floored to whole milliseconds
ARRIVAL = RESERVED + "arrival"  # the place in arrival order
REASON = RESERVED + "reason"  # why the row is refused; null: admitted
CORRUPT = RESERVED + "corrupt"  # the text of a row that could not be read
MISFIT = RESERVED + "misfit"  # why a folder's value does not fit its type; only where one does not
SOURCE_FILE = RESERVED + "source_file"  # a URI or path
SOURCE_ROW = RESERVED + "source_row"  # from 0 in its file
WINDOW_START_MS = RESERVED + "window_start_ms"  # of the window that a late event missed
WINDOW_END_MS = RESERVED + "window_end_ms"
FILE = RESERVED + "file"  # of a table's row: the path or URI of the file that holds it
BEFORE = RESERVED + "before"  # of a result that differs: the values that it had
_ANOTHER_TYPE = re.compile(rf"{RESERVED}type_[0-9]+_of_")
EVENT_TIME = "timestamp_ms"  # what a definition calls the event time, where the source has no such column
# Columns of a plan without the prefix, which no table has: next to results and state, and to the key alone.
BESIDE_RESULTS = ("replaced", "part", "end_partition")
BESIDE_KEYS = (EVENT_TIME, "arrival", "before")


def internal(name: str) -> str:
    """The name of a column that lives inside one plan, next to columns of the source.

    >>> internal("bucket")
    '_windowlib_bucket'
    """
    return RESERVED + name


def is_reserved(name: str) -> bool:
    """Whether a source may not call a column so; without regard to case, as Spark has none."""
    return name.casefold().startswith(RESERVED)


def of_another_type(name: str, number: int) -> str:
    """The name of a source's column where it has values of a type that the column of its own name does not hold.

    >>> of_another_type("price", 1), plain(of_another_type("price", 1)), plain("price")
    ('_windowlib_type_1_of_price', 'price', 'price')
    """
    return f"{RESERVED}type_{number}_of_{name}"


def plain(name: str) -> str:
    """What the source calls a column, of whichever type."""
    return _ANOTHER_TYPE.sub("", name, count=1)


def renamed(name: str, to: Callable[[str], str]) -> str:
    """The name of a column by another name for what the source calls it.

    >>> renamed(of_another_type("price", 1), str.upper), renamed("price", str.upper)
    ('_windowlib_type_1_of_PRICE', 'PRICE')
    """
    column = plain(name)
    return name.removesuffix(column) + to(column)


def own(columns: Iterable[str]) -> list[str]:
    """The columns that are the source's own, those of another type among them.

    >>> own(["reason", REASON, of_another_type("reason", 1)])
    ['reason', '_windowlib_type_1_of_reason']
    """
    return [name for name in columns if not is_reserved(plain(name))]


def same_but_for_case(columns: Iterable[str]) -> list[str]:
    """The columns that differ from another one in case only, or not at all; sorted.

    >>> same_but_for_case(["User", "at", "user"])
    ['User', 'user']
    """
    known = list(columns)
    if len({name.casefold() for name in known}) == len(known):
        return []
    times = Counter(name.casefold() for name in known)
    return sorted(name for name in known if times[name.casefold()] > 1)
