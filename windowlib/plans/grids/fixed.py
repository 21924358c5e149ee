"""Grid of windows of fixed lengths. Starts and ends lie at equal distances, so a tick is the time itself, in ms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from windowlib.model.assigners import Assigner
from windowlib.model.geometry import geometry_of
from windowlib.model.windows import window_start
from windowlib.plans import names
from windowlib.plans.functions import F
from windowlib.plans.geometry import aligned_start_ms
from windowlib.plans.grids.grid import END, END_MS, LAST_END, START_MS, limited

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, slots=True)
class FixedGrid:
    """Implementation of `Grid` for fixed lengths.

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
    slice_tick: ClassVar[str] = names.internal("slice_tick")
    last_tick: ClassVar[str] = LAST_END

    @classmethod
    def of(cls, assigner: Assigner) -> FixedGrid:
        """The grid of windows that do not merge and that all keys share."""
        geometry = geometry_of(assigner)
        size_ms, starts_ms = geometry.longest_ms, geometry.starts_every_ms
        ends_ms, slice_ms = geometry.ends_every_ms, geometry.slice_ms
        if geometry.merges or size_ms is None or starts_ms is None or ends_ms is None or slice_ms is None:
            raise AssertionError(f"not aligned windows: {assigner}")
        return cls(size_ms, starts_ms, ends_ms, geometry.offset_ms, slice_ms)

    @property
    def ends_every(self) -> int:
        return self.ends_every_ms

    @property
    def an_end(self) -> int:
        return self.offset_ms + self.size_ms

    @property
    def slice_ticks(self) -> int:
        return self.slice_ms

    @property
    def overlap(self) -> bool:
        return not (self.slice_ms == self.size_ms == self.starts_every_ms)

    @property
    def slices_per_window(self) -> int:
        return self.size_ms // self.slice_ms

    @property
    def _has_one_length(self) -> bool:
        return self.ends_every_ms == self.starts_every_ms

    def tick_up_to(self, time_ms: int) -> int:
        """See `Grid`."""
        return limited(time_ms)

    def tick_from(self, time_ms: int) -> int:
        """See `Grid`."""
        return self.tick_up_to(time_ms)

    # -- columns --------------------------------------------------------------------------------------------------

    def slice_start(self, time: str) -> Column:
        """See `Grid`."""
        return aligned_start_ms(F.col(time), self.slice_ms, self.offset_ms)

    def slice_end(self, start: str) -> str:
        """See `Grid`."""
        return f"{start} + {self.slice_ms}"

    def first_window_end(self, start: str) -> Column:
        """See `Grid`."""
        return self.first_end(F.col(start) + self.slice_ms)

    def placed(self, slices: DataFrame, start: str) -> DataFrame:
        """See `Grid`."""
        tick = F.col(start)
        last_start = aligned_start_ms(tick, self.starts_every_ms, self.offset_ms)
        return slices.withColumns({self.slice_tick: tick, LAST_END: last_start + self.size_ms})

    def first_end(self, tick: Column) -> Column:
        """See `Grid`."""
        return -aligned_start_ms(-tick, self.ends_every_ms, -self.an_end)

    def last_end(self, tick: Column) -> Column:
        """See `Grid`."""
        return aligned_start_ms(tick, self.ends_every_ms, self.an_end)

    def with_bounds(self, windows: DataFrame) -> DataFrame:
        """See `Grid`."""
        end = F.col(END)
        start = aligned_start_ms(end - 1, self.starts_every_ms, self.offset_ms)
        return windows.withColumns({START_MS: end - self.size_ms if self._has_one_length else start, END_MS: end})

    def with_last_window(self, events: DataFrame) -> DataFrame:
        """See `Grid`."""
        time = F.col(names.TIMESTAMP_MS)
        end = aligned_start_ms(time, self.starts_every_ms, self.offset_ms) + self.size_ms
        bounds = {names.WINDOW_START_MS: end - self.size_ms, names.WINDOW_END_MS: end}
        return events.withColumns({name: F.when(end > time, bound) for name, bound in bounds.items()})

    # -- in Python ------------------------------------------------------------------------------------------------

    def slice_end_ms(self, slice_start_ms: int) -> int:
        """See `Grid`."""
        return slice_start_ms + self.slice_ms

    def last_window_end_ms(self, slice_start_ms: int) -> int:
        """See `Grid`.

        >>> from windowlib import Sliding
        >>> FixedGrid.of(Sliding(size_ms=10, slide_ms=5)).last_window_end_ms(5)
        15
        """
        return window_start(slice_start_ms, self.starts_every_ms, self.offset_ms) + self.size_ms

    def last_end_ms(self, bound_ms: int) -> int:
        """See `Grid`."""
        return window_start(bound_ms, self.ends_every_ms, self.an_end)

    def first_end_ms(self, bound_ms: int) -> int:
        """See `Grid`."""
        return -window_start(-bound_ms, self.ends_every_ms, -self.an_end)

    def window_start_ms(self, end_ms: int) -> int:
        """See `Grid`.

        >>> from windowlib import Cumulating, Sliding
        >>> FixedGrid.of(Sliding(size_ms=10, slide_ms=5)).window_start_ms(15)
        5
        >>> grid = FixedGrid.of(Cumulating(max_size_ms=10, step_ms=5))
        >>> [grid.window_start_ms(end_ms) for end_ms in (10, 15, 20)]
        [0, 10, 10]
        """
        if self._has_one_length:
            return end_ms - self.size_ms
        return window_start(end_ms - 1, self.starts_every_ms, self.offset_ms)
