"""Numbers of checks in words."""

from __future__ import annotations

from typing import Any

SHARE = "_share"  # end of the names of figures and parameters that are shares


def number_in_words(value: Any, name: str = "") -> str:
    """Formats a number without needless digits, and other values with `str`.

    A share, by the `name` of its figure or parameter, is in percent.

    >>> number_in_words(3.0), number_in_words(0.123456789), number_in_words(None)
    ('3', '0.123457', 'None')
    >>> number_in_words(0.05, "max_late_share"), number_in_words(0.342105, "late_share"), number_in_words(1, "x_share")
    ('5 %', '34.21 %', '100 %')
    """
    if name.endswith(SHARE) and isinstance(value, int | float):
        return f"{100 * value:.4g} %"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else f"{value:.6g}"
    return str(value)
