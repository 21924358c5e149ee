"""One check = one number of the batch, the bounds it must keep, one sentence that says so, and a severity.

The numbers are differences, counts and shares in a frame of one row, so that a built-in expectation (the column's
greatest value lies between two bounds, both inclusive) judges every one of them and reports what it saw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from great_expectations.expectations.core.expect_column_max_to_be_between import ExpectColumnMaxToBeBetween
from great_expectations.expectations.metadata_types import FailureSeverity

Figures: TypeAlias = Mapping[str, int | None]  # None where there is no such number, as of a watermark at first
Known: TypeAlias = Mapping[str, int]  # the figures that are not None

CRITICAL, WARNING = FailureSeverity.CRITICAL, FailureSeverity.WARNING


def nought(column: str, sentence: str, of: tuple[str, ...] = ()) -> ExpectColumnMaxToBeBetween:
    """A critical check that a difference or a count is 0. `of` names the figures it was made from."""
    return between(column, sentence, 0, 0, severity=CRITICAL, of=of)


def between(
    column: str, sentence: str, low: Any, high: Any, *, severity: FailureSeverity, of: tuple[str, ...] = ()
) -> ExpectColumnMaxToBeBetween:
    """A check that a number lies in `[low, high]`; a bound may be `parameter(name)`, and is then known per batch."""
    return ExpectColumnMaxToBeBetween(
        column=column, min_value=low, max_value=high, description=sentence, severity=severity, meta={"of": list(of)}
    )


def parameter(name: str) -> dict[str, str]:
    """A bound that each batch brings itself.

    >>> parameter("windows_fired_low")
    {'$PARAMETER': 'windows_fired_low'}
    """
    return {"$PARAMETER": name}


def share(part: int, whole: int) -> float:
    """`part / whole`, 0 of nothing.

    >>> share(1, 4), share(0, 0)
    (0.25, 0.0)
    """
    return part / whole if whole else 0.0
