"""Expected range of a figure, derived from its history: the median plus or minus `WIDTH` deviations.

The deviation is the median absolute deviation, so a few outliers do not widen the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

ENOUGH = 8  # least number of values that give a range
WIDTH = 3  # deviations to each side of the median
AS_OF_NORMAL = 1.4826  # standard deviation of a normal distribution, in median absolute deviations
LEAST = 0.05  # lower limit of a deviation, as a share of the median, for figures that hardly ever change
MOST = 0.9  # quantile at which the range ends if the deviation is 0


def usual(values: Sequence[float], *, least: float = LEAST, enough: int = ENOUGH) -> tuple[float, float] | None:
    """Range (lowest, highest) of the usual values of a figure; None if there are fewer than `enough` values.

    Values must not be negative. A deviation is at least `least` times the median. If the deviation is 0, because most
    values are 0, the range ends at the 90th percentile.

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
