"""A window function that needs all elements of its window at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any


class Median:
    """The median of `value`.

    >>> list(Median().process([{"value": 1}, {"value": 5}, {"value": 3}], None))
    [{'median': 3.0}]
    """

    def process(self, values: Sequence[Mapping[str, Any]], context: Any) -> Iterator[dict[str, float]]:
        yield {"median": float(median(value["value"] for value in values))}

    def clear(self, context: Any) -> None:
        """It keeps nothing."""
