"""Kinds of changes of a row of `results`."""

from enum import StrEnum


class Change(StrEnum):
    """Kind of a change of a row of `results`, as named in `result_changes`, previews and figures.

    >>> [str(change) for change in Change]
    ['added', 'changed', 'removed']
    """

    ADDED = "added"
    CHANGED = "changed"  # the same window, with new values
    REMOVED = "removed"


ADDED, CHANGED, REMOVED = (change.value for change in Change)
