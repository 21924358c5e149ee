"""Averages of decimals as SQL for Spark, to four digits more than the decimals have, halves away from zero.

Spark divides decimals to as many digits as their types leave room for. Of wide sums that is too few: then the whole
part of the sum and what is left of it are divided apart.
"""

from __future__ import annotations

WIDEST = 38  # digits of a decimal
COUNT_DIGITS = 10  # of the events of one window
MOST_DIGITS = 22  # after the point, up to which what is left can be divided to enough digits


def average_of_wide_decimals(total: str, count: str, precision: int, scale: int) -> str:
    """The quotient of a sum of decimals of that type and a count (null: no values), to be cast to its type.

    >>> average_of_wide_decimals("t", "n", 20, 2)
    't / n'
    """
    digits = max(WIDEST - (precision - scale), 6)  # that Spark divides to
    if digits >= scale + 4 or scale > MOST_DIGITS:
        return f"{total} / {count}"
    whole = f"if({total} < 0, ceil({total}), floor({total}))"
    left = f"cast({whole} % {count} as decimal({COUNT_DIGITS}, 0)) + {total} % 1"
    quotient = f"cast(({whole} - {whole} % {count}) / {count} as decimal({WIDEST - scale - 5}, 0))"
    rest = f"({left}) / cast({count} as decimal({COUNT_DIGITS}, 0))"
    return f"{quotient} + cast({rest} as decimal({scale + 5}, {scale + 4}))"
