"""Check of the reason that an operator gives for a decision: a line of text for the ledger, logs and pages."""

from __future__ import annotations

from unicodedata import category

LONGEST = 2_000  # characters
_NOT_OF_A_LINE = ("Cc", "Cs", "Zl", "Zp")  # control characters, surrogates, line and paragraph separators


def wrong_with(reason: str) -> str | None:
    """Problem of a reason; None for a valid reason. Empty reasons are checked elsewhere.

    >>> wrong_with("euros, not cents 👩‍💻"), wrong_with(""), wrong_with("r" * 2_000)
    (None, None, None)
    >>> wrong_with("r" * 2_001)
    'it has 2,001 characters: need at most 2,000'
    >>> wrong_with("one\\ntwo")
    "it has the control character '\\\\n': need one line of text"
    """
    if len(reason) > LONGEST:
        return f"it has {len(reason):,} characters: need at most {LONGEST:,}"
    control = next((character for character in reason if category(character) in _NOT_OF_A_LINE), None)
    return None if control is None else f"it has the control character {control!a}: need one line of text"
