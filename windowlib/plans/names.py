"""The columns that windowlib adds to rows of a source, next to the source's own: all begin with one reserved prefix.

So a source may call its columns anything else. What is stored, or published, keeps its plain names: next to those are
only the source's keys, and `windowlib.definition.rules` refuses a key that is called like one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

RESERVED = "_windowlib_"

TIMESTAMP_MS = RESERVED + "timestamp_ms"  # the event time, floored to whole milliseconds
ARRIVAL = RESERVED + "arrival"  # the place in arrival order
REASON = RESERVED + "reason"  # why the row is refused; null: admitted
CORRUPT = RESERVED + "corrupt"  # the text of a row that could not be read
SOURCE_FILE = RESERVED + "source_file"  # a URI or path
SOURCE_ROW = RESERVED + "source_row"  # from 0 in its file
WINDOW_START_MS = RESERVED + "window_start_ms"  # of the window that a late event missed
WINDOW_END_MS = RESERVED + "window_end_ms"
FILE = RESERVED + "file"  # of a table's row: the path or URI of the file that holds it
BEFORE = RESERVED + "before"  # of a result that differs: the values that it had
EVENT_TIME = "timestamp_ms"  # what a definition calls the event time, where the source has no such column


def internal(name: str) -> str:
    """The name of a column that lives inside one plan, next to columns of the source.

    >>> internal("bucket")
    '_windowlib_bucket'
    """
    return RESERVED + name


def is_reserved(name: str) -> bool:
    """Whether a source may not call a column so; without regard to case, as Spark has none."""
    return name.casefold().startswith(RESERVED)


def own(columns: Iterable[str]) -> list[str]:
    """The columns that are the source's own.

    >>> own(["reason", REASON])
    ['reason']
    """
    return [name for name in columns if not is_reserved(name)]


def same_but_for_case(columns: Iterable[str]) -> list[str]:
    """The columns that differ from another one in case only, or not at all; sorted.

    >>> same_but_for_case(["User", "at", "user"])
    ['User', 'user']
    """
    known = list(columns)
    times = Counter(name.casefold() for name in known)
    return sorted(name for name in known if times[name.casefold()] > 1)
