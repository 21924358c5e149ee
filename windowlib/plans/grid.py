"""The grid of tumbling and sliding windows: starts of slices, and windows over a slice."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from windowlib.model.assigners import Assigner
from windowlib.model.geometry import geometry_of
from windowlib.model.windows import window_start
from windowlib.plans.geometry import aligned_start_ms

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True, slots=True)
class Grid:
    """Size, slide, offset and slice width of an aligned assigner."""

    size_ms: int
    slide_ms: int
    offset_ms: int

    @classmethod
    def of(cls, assigner: Assigner) -> Grid:
        """The grid of tumbling or sliding windows."""
        geometry = geometry_of(assigner)
        size_ms, slide_ms = geometry.longest_ms, geometry.starts_every_ms
        if geometry.merges or geometry.shifted or size_ms is None or slide_ms is None:
            raise AssertionError(f"not aligned windows: {assigner}")
        return cls(size_ms, slide_ms, geometry.offset_ms)

    @property
    def slice_ms(self) -> int:
        return gcd(self.size_ms, self.slide_ms)

    @property
    def overlap(self) -> bool:
        """Tests if a slice may be in several windows, or a window may have several slices."""
        return self.size_ms != self.slide_ms

    def pays_to_combine(self, fired: int) -> bool:
        """Tests if it is cheaper to merge first the slices that are in the same windows.

        `fired` is the number of consecutive windows that fire. Without this step, each window merges `size / slice`
        slices. With this step, each slice is merged once, and each window merges one row per window bound inside it.

        >>> minute_ms, hour_ms = 60_000, 3_600_000
        >>> [Grid(hours * hour_ms, 5 * minute_ms, 0).pays_to_combine(12) for hours in (1, 24)]
        [False, True]
        """
        slices_per_window = self.size_ms // self.slice_ms
        slices_reached = slices_per_window + (fired - 1) * self.slide_ms // self.slice_ms
        return fired * slices_per_window > 2 * (slices_reached + fired * fired)

    def last_window_end(self, slice_start: Column) -> Column:
        """End of the last window over a slice. It is at or below the slice's start if the slice is in a hole."""
        return aligned_start_ms(slice_start, self.slide_ms, self.offset_ms) + self.size_ms

    def last_window_end_ms(self, slice_start_ms: int) -> int:
        """`last_window_end` for one slice.

        >>> Grid(size_ms=10, slide_ms=5, offset_ms=0).last_window_end_ms(5)
        15
        """
        return self.last_start_ms(slice_start_ms) + self.size_ms

    def last_start_ms(self, bound_ms: int) -> int:
        """Last window start at or below a bound."""
        return window_start(bound_ms, self.slide_ms, self.offset_ms)

    def first_start_ms(self, bound_ms: int) -> int:
        """First window start at or above a bound."""
        return -window_start(-bound_ms, self.slide_ms, -self.offset_ms)
