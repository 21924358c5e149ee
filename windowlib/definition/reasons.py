"""The reason that an operator gives for a decision: one line, which the ledger keeps and logs and pages show."""

from __future__ import annotations

from unicodedata import category

LONGEST = 2_000  # characters
_NOT_OF_A_LINE = ("Cc", "Cs", "Zl", "Zp")  # control characters, halves of characters, and what ends a line


def wrong_with(reason: str) -> str | None:
    """Why a text cannot be a reason, or None. Whether one must be given is not said here.

    >>> wrong_with("euros, not cents 👩‍💻"), wrong_with(""), wrong_with("r" * 2_000)
    (None, None, None)
    >>> wrong_with("r" * 2_001)
    'it has 2,001 characters: need at most 2,000'
    >>> wrong_with("one\\ntwo")
    "it has the control character '\\\\n': need one line of text"
    """
    if len(reason) > LONGEST:
        return f"it has {len(reason):,} characters: need at most {LONGEST:,}"
    found = next((one for one in reason if category(one) in _NOT_OF_A_LINE), None)
    return None if found is None else f"it has the control character {found!a}: need one line of text"
