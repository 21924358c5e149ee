"""Combination of many expressions or plans as a balanced tree.

Combining n parts one after the other nests them n levels deep. Spark Connect and Sail cannot parse the message of an
expression or plan that is a hundred levels deep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def balanced(combine: Callable[[T, T], T], parts: Sequence[T]) -> T:
    """Combines one or more parts in their order, as a balanced tree. `combine` must be associative.

    >>> balanced(lambda a, b: f"({a} {b})", "abcde")
    '((a b) (c (d e)))'
    """
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return combine(balanced(combine, parts[:middle]), balanced(combine, parts[middle:]))
