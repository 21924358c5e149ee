"""Times of other units in whole milliseconds, always floored: before 1970, too.

The same for a column, where the division must hold at both ends of 64 bits: `windowlib.plans.admission.thousandth`.
"""

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""How many of a unit make a second."""


def floored_ms(time: int, unit: str) -> int:
    """A time of a unit since the epoch, in ms.

    >>> floored_ms(-1, "us"), floored_ms(1_999, "us"), floored_ms(2, "s")
    (-1, 1, 2000)
    """
    return time * 1_000 // PER_SECOND[unit]
