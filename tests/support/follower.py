"""A consumer of `result_changes`, as docs/how-it-works/protocol.md describes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Name = TypeVar("Name")


def apply_changes(
    held: dict[Name, dict[str, Any]], changes: Iterable[dict[str, Any]], name_of: Callable[[dict[str, Any]], Name]
) -> None:
    """Applies changes to the rows that a consumer holds, in the order of batches, removals first.

    Only rows of an erasure may name a result that the consumer does not hold. Raises AssertionError.

    >>> held: dict[str, dict[str, Any]] = {}
    >>> apply_changes(held, [{"batch_id": 1, "change": "added", "cause": "firing"}], lambda row: "a window")
    >>> apply_changes(held, [{"batch_id": 2, "change": "added", "cause": "firing"}], lambda row: "a window")
    Traceback (most recent call last):
        ...
    AssertionError: added of {'batch_id': 2, 'change': 'added', 'cause': 'firing'}
    """
    for row in sorted(changes, key=lambda row: (row["batch_id"], row["change"] != "removed")):
        name = name_of(row)
        assert (name in held) == (row["change"] != "added") or row["cause"] == "forget", f"{row['change']} of {row}"
        held.pop(name, None)
        if row["change"] != "removed":
            held[name] = row
