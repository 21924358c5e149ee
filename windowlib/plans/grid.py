"""The grid of aligned windows: slices, and the ends of the windows over a slice.

Each window has an end of its own, so windows are counted and named by their ends, and their starts follow. The ends lie
on a grid, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowlib.model.assigners import Assigner
from windowlib.model.geometry import geometry_of
from windowlib.model.windows import window_start
from windowlib.plans.geometry import aligned_start_ms

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True, slots=True)
class Grid:
    """Slices and window ends of an aligned assigner.

    - `size_ms`: length of the longest window.
    - `starts_every_ms`, `ends_every_ms`: distance between two starts, and between two ends.
    - `offset_ms`: a start.
    - `slice_ms`: width of a slice.
    """

    size_ms: int
    starts_every_ms: int
    ends_every_ms: int
    offset_ms: int
    slice_ms: int

    @classmethod
    def of(cls, assigner: Assigner) -> Grid:
        """The grid of windows that do not merge and that all keys share."""
        geometry = geometry_of(assigner)
        size_ms, starts_ms = geometry.longest_ms, geometry.starts_every_ms
        ends_ms, slice_ms = geometry.ends_every_ms, geometry.slice_ms
        if geometry.merges or size_ms is None or starts_ms is None or ends_ms is None or slice_ms is None:
            raise AssertionError(f"not aligned windows: {assigner}")
        return cls(size_ms, starts_ms, ends_ms, geometry.offset_ms, slice_ms)

    @property
    def overlap(self) -> bool:
        """Tests if a slice may be in several windows, or a window may have several slices."""
        return not (self.slice_ms == self.size_ms == self.starts_every_ms)

    @property
    def _has_one_length(self) -> bool:
        return self.ends_every_ms == self.starts_every_ms

    @property
    def an_end_ms(self) -> int:
        """One of the ends."""
        return self.offset_ms + self.size_ms

    def pays_to_combine(self, fired: int) -> bool:
        """Tests if it is cheaper to merge first the slices that are in the same windows.

        `fired` is the number of consecutive windows that fire. Without this step, each window merges `size / slice`
        slices. With this step, each slice is merged once, and each window merges one row per window bound inside it.

        >>> from windowlib import Sliding
        >>> minute_ms, hour_ms = 60_000, 3_600_000
        >>> [Grid.of(Sliding(hours * hour_ms, 5 * minute_ms)).pays_to_combine(12) for hours in (1, 24)]
        [False, True]
        """
        slices_per_window = self.size_ms // self.slice_ms
        slices_reached = slices_per_window + (fired - 1) * self.ends_every_ms // self.slice_ms
        return fired * slices_per_window > 2 * (slices_reached + fired * fired)

    # -- columns --------------------------------------------------------------------------------------------------

    def last_window_end(self, slice_start: Column) -> Column:
        """End of the last window over a slice. It is at or below the slice's start if the slice is in a hole."""
        return aligned_start_ms(slice_start, self.starts_every_ms, self.offset_ms) + self.size_ms

    def last_end(self, bound: Column) -> Column:
        """Last window end at or before a bound."""
        return aligned_start_ms(bound, self.ends_every_ms, self.an_end_ms)

    def first_end(self, bound: Column) -> Column:
        """First window end at or after a bound."""
        return -aligned_start_ms(-bound, self.ends_every_ms, -self.an_end_ms)

    def window_start(self, end: Column) -> Column:
        """Start of the window with an end."""
        if self._has_one_length:
            return end - self.size_ms
        return aligned_start_ms(end - 1, self.starts_every_ms, self.offset_ms)

    # -- in Python ------------------------------------------------------------------------------------------------

    def last_window_end_ms(self, slice_start_ms: int) -> int:
        """`last_window_end` for one slice.

        >>> from windowlib import Sliding
        >>> Grid.of(Sliding(size_ms=10, slide_ms=5)).last_window_end_ms(5)
        15
        """
        return window_start(slice_start_ms, self.starts_every_ms, self.offset_ms) + self.size_ms

    def last_end_ms(self, bound_ms: int) -> int:
        """`last_end` for one bound."""
        return window_start(bound_ms, self.ends_every_ms, self.an_end_ms)

    def first_end_ms(self, bound_ms: int) -> int:
        """`first_end` for one bound."""
        return -window_start(-bound_ms, self.ends_every_ms, -self.an_end_ms)

    def window_start_ms(self, end_ms: int) -> int:
        """`window_start` for one window.

        >>> from windowlib import Cumulating, Sliding
        >>> Grid.of(Sliding(size_ms=10, slide_ms=5)).window_start_ms(15)
        5
        >>> [Grid.of(Cumulating(max_size_ms=10, step_ms=5)).window_start_ms(end_ms) for end_ms in (10, 15, 20)]
        [0, 10, 10]
        """
        if self._has_one_length:
            return end_ms - self.size_ms
        return window_start(end_ms - 1, self.starts_every_ms, self.offset_ms)
