"""Kinds of changes of a row of `results`."""

from enum import StrEnum


class Change(StrEnum):
    """Change of a row of `results`: what `result_changes`, previews and the names of figures call it.

    >>> [str(change) for change in Change]
    ['added', 'changed', 'removed']
    """

    ADDED = "added"
    CHANGED = "changed"  # the same window, with new values
    REMOVED = "removed"


ADDED, CHANGED, REMOVED = (change.value for change in Change)
