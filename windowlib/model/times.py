"""Conversion of times in other units to whole milliseconds, always floored, also before 1970.

`windowlib.plans.admission.thousandth` converts a column in the same way, exactly over the whole 64-bit range.
"""

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Number of units in a second."""


def floored_ms(time: int, unit: str) -> int:
    """Milliseconds since the epoch of a time in ``unit`` since the epoch.

    >>> floored_ms(-1, "us"), floored_ms(1_999, "us"), floored_ms(2, "s")
    (-1, 1, 2000)
    """
    return time * 1_000 // PER_SECOND[unit]
