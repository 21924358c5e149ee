"""Numbers with nouns, and lists of names, for messages."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, what: str) -> str:
    """Formats a number with its noun; the part of `what` before ` of ` or ` in ` gets the plural.

    >>> counted(1, "late event"), counted(2_000, "late event"), counted(1, "row of state"), counted(0, "row of state")
    ('1 late event', '2,000 late events', '1 row of state', '0 rows of state')
    >>> counted(1, "batch"), counted(2, "batch")
    ('1 batch', '2 batches')
    """
    noun, place, rest = what.partition(" of " if " of " in what else " in ")
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}{place}{rest}"


def first_five(names: Sequence[str], separator: str = ", ") -> str:
    """Formats the first five names, and the number of further names.

    >>> first_five(["a", "b"]), first_five(["a", "b", "c", "d", "e", "f", "g"])
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return f"{separator.join(names[:5])}{more}"
