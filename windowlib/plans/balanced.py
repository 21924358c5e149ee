"""Balanced combination of many parts.

Combined one after the other, parts nest as deep as their number. Spark Connect and Sail cannot parse the message of an
expression or plan that is a hundred levels deep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def balanced(combine: Callable[[T, T], T], parts: Sequence[T]) -> T:
    """Combines all parts, at least one, in their order. `combine` must be associative.

    >>> balanced(lambda a, b: f"({a} {b})", "abcde")
    '((a b) (c (d e)))'
    """
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return combine(balanced(combine, parts[:middle]), balanced(combine, parts[middle:]))
