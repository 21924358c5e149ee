"""What is usual of a number, by what it was before: the median, and deviations from it to each side.

The deviation is the median absolute one, so a few values that were out of line do not make such values usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

ENOUGH = 8  # values: fewer do not show what is usual
WIDTH = 3  # deviations to each side of the median
AS_OF_NORMAL = 1.4826  # a normal distribution's standard deviation, in median absolute deviations
LEAST = 0.05  # of the median: a figure that hardly ever changes may change by this much
MOST = 0.9  # of the values


def usual(values: Sequence[float], *, least: float = LEAST, enough: int = ENOUGH) -> tuple[float, float] | None:
    """The band of usual values, of figures that are not negative; None where these are fewer than `enough`.

    A deviation is at least `least` of the median. Where most values are 0, usual is up to what nine of ten do not
    exceed.

    >>> [round(bound, 2) for bound in usual([10, 11, 9, 10, 12, 10, 9, 500])]
    [5.55, 14.45]
    >>> usual([1, 2, 3]), usual([0, 0, 0, 0, 0, 1, 0, 0, 1, 70])
    (None, (0, 1))
    """
    if len(values) < enough:
        return None
    middle = median(values)
    deviation = max(AS_OF_NORMAL * median(abs(value - middle) for value in values), least * middle)
    if deviation == 0:
        return min(values), sorted(values)[int(MOST * (len(values) - 1))]
    return max(0.0, middle - WIDTH * deviation), middle + WIDTH * deviation
