r"""Regular expressions that Java, Rust and RE2 read alike, so that Spark, Sail and Arrow agree about each text.

Left out are expressions whose meaning differs: `\d`, `\w` and `\s` (ASCII or Unicode), `^` and `$` (line ends), flags,
lazy and possessive repetition, look-around, back-references, and operators inside of classes.
"""

from __future__ import annotations

import re

LONGEST = 200
ALLOWED = (
    "characters, ., classes such as [A-Z0-9_], groups (a|b), the repetitions * + ? {n} {n,m} up to 99, and \\ before"
    " punctuation; the whole value must match"
)
_ESCAPED = r"\\[.+*?()|\[\]{}^$\\/&~#-]"
_IN_CLASS = rf"(?:[^\\\[\]^&~\x00-\x1f-]|{_ESCAPED})"
_RANGE = rf"{_IN_CLASS}(?:-{_IN_CLASS})?"
_TOKEN = re.compile(rf"{_ESCAPED}|\[\^?(?:{_RANGE})+\]|.", re.DOTALL)
# The structure is read with the letter x in place of each class and each escaped character.
_COUNT = r"\{\d{1,2}(?:,\d{0,2})?\}"
_GROUP, _WITH_COUNT = "\x00", "\x01"  # stand for groups that were read
_ATOM = r"[^\\\[\](){}*+?|^$\x01-\x1f]"
_PIECE = rf"(?:{_ATOM}(?:[*+?]|{_COUNT})?|{_WITH_COUNT}[*+?]?)"
_BRANCHES = rf"{_PIECE}+(?:\|{_PIECE}+)*"


def portable(pattern: str) -> str:
    r"""Returns the pattern as it is evaluated: against the whole text, with a `.` that matches every character.

    Raises ValueError for a pattern outside of the allowed syntax.

    >>> portable("[A-Z]{3}(-[0-9]+)?")
    '\\A(?s:[A-Z]{3}(-[0-9]+)?)\\z'
    >>> portable("id=.*$")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: must be a pattern of characters, ., classes such as [A-Z0-9_], groups (a|b), ...
    """
    if not _is_allowed(pattern):
        raise ValueError(f"must be a pattern of {ALLOWED}")
    return rf"\A(?s:{pattern})\z"


def _is_allowed(pattern: str) -> bool:
    tokens = [token[0] for token in _TOKEN.finditer(pattern)]
    if len(pattern) > LONGEST or re.search(r"[\x00-\x1f]", pattern) or not all(map(_is_ordered, tokens)):
        return False
    structure, before = "".join("x" if len(token) > 1 else token for token in tokens), None
    if not all(map(_is_ascending, re.findall(_COUNT, structure))):
        return False
    while structure != before:
        before, structure = structure, re.sub(rf"\(({_BRANCHES})\)", _read, structure)
    return bool(re.fullmatch(_BRANCHES, structure))


def _read(group: re.Match[str]) -> str:
    """Mark of a group. Counted repetitions are not repeated a counted number of times, which would multiply them."""
    return _WITH_COUNT if _WITH_COUNT in group[1] or re.search(_COUNT, group[1]) else _GROUP


def _is_ordered(token: str) -> bool:
    """Tests if each range of a class begins with its lower end."""
    ranges = re.findall(_RANGE, token[1:-1]) if token.startswith("[") else []
    ends = [re.findall(_IN_CLASS, range_) for range_ in ranges if len(range_) > 2]
    return all(len(pair) < 2 or pair[0][-1] <= pair[-1][-1] for pair in ends)


def _is_ascending(count: str) -> bool:
    """Tests if the bounds of a repetition are in order: {2,4}, not {4,2}."""
    low, _, high = count[1:-1].partition(",")
    return not high or int(low) <= int(high)
