"""Many parts made one, in a tree of few levels.

One after the other they nest as deep as they are many: behind Spark Connect, as on Sail, an expression or a plan a
hundred deep is a message that no receiver can parse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def balanced(combine: Callable[[T, T], T], parts: Sequence[T]) -> T:
    """All parts, at least one, combined in their order; `combine` is associative.

    >>> balanced(lambda a, b: f"({a} {b})", "abcde")
    '((a b) (c (d e)))'
    """
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return combine(balanced(combine, parts[:middle]), balanced(combine, parts[middle:]))
