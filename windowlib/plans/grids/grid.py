"""Grids of aligned windows: slices, and the ends of the windows over a slice.

Each window has an end of its own, so windows are counted and named by their ends, and their starts follow. Ends are
named by *ticks*, so that the ends over a slice are a sequence of integers:

- fixed lengths (`windowlib.plans.grids.fixed`): a tick is the time itself, in ms.
- calendar intervals (`windowlib.plans.grids.by_calendar`): a tick is the number of the interval that starts then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from windowlib.plans import names
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SLICE_START = "state_window_start_ms"
LAST_END = names.internal("last_end_ms")  # end of the last window over a slice
END, START_MS, END_MS = "_end", "window_start_ms", "window_end_ms"  # of a window: its end as a tick, and its bounds


class Grid(Protocol):
    """Slices and window ends of an assigner, as columns and in Python.

    - `overlap`: a slice may be in several windows, or a window may have several slices.
    - `ends_every`: distance between two ends, in ticks.
    - `an_end`: the tick of one of the ends.
    - `slice_ticks`: width of a slice, in ticks.
    - `slice_tick`, `last_tick`: columns with the ticks of a slice's start, and of the end of its last window.
    """

    @property
    def ends_every(self) -> int: ...

    @property
    def an_end(self) -> int: ...

    @property
    def slice_ticks(self) -> int: ...

    @property
    def slice_tick(self) -> str: ...

    @property
    def last_tick(self) -> str: ...

    @property
    def overlap(self) -> bool: ...

    @property
    def slices_per_window(self) -> int:
        """Number of slices of the longest window."""
        ...

    def tick_up_to(self, time_ms: int) -> int:
        """Greatest tick at or before a time."""
        ...

    def tick_from(self, time_ms: int) -> int:
        """Least tick at or after a time."""
        ...

    # -- columns --------------------------------------------------------------------------------------------------

    def slice_start(self, time: str) -> Column:
        """Start of the slice of a time, in ms. `time` is the name of a column."""
        ...

    def slice_end(self, start: str) -> str:
        """SQL for the end of a slice. `start` is the column of its start, in ms."""
        ...

    def first_window_end(self, start: str) -> Column:
        """End of the first window over a slice, in ms."""
        ...

    def placed(self, slices: DataFrame, start: str) -> DataFrame:
        """Adds LAST_END, in ms, and the columns `slice_tick` and `last_tick`.

        In a hole between windows, LAST_END is at or below the slice's start.
        """
        ...

    def first_end(self, tick: Column) -> Column:
        """First window end at or after a tick."""
        ...

    def last_end(self, tick: Column) -> Column:
        """Last window end at or before a tick."""
        ...

    def with_bounds(self, windows: DataFrame) -> DataFrame:
        """Adds START_MS and END_MS, null for rows without END."""
        ...

    def with_last_window(self, events: DataFrame) -> DataFrame:
        """Adds WINDOW_START_MS and WINDOW_END_MS: bounds of the last window of each event, null in a hole."""
        ...

    # -- in Python, in ms -----------------------------------------------------------------------------------------

    def slice_end_ms(self, slice_start_ms: int) -> int:
        """End of a slice."""
        ...

    def last_window_end_ms(self, slice_start_ms: int) -> int:
        """End of the last window over a slice."""
        ...

    def last_end_ms(self, bound_ms: int) -> int:
        """Last window end at or before a bound."""
        ...

    def first_end_ms(self, bound_ms: int) -> int:
        """First window end at or after a bound."""
        ...

    def window_start_ms(self, end_ms: int) -> int:
        """Start of the window with an end."""
        ...


def limited(bound_ms: int) -> int:
    """Limits a bound to about the range of event times, so that its ticks cannot overflow."""
    return min(max(bound_ms, 2 * MIN_TIMESTAMP_MS), 2 * MAX_TIMESTAMP_MS)


def pays_to_combine(grid: Grid, fired: int) -> bool:
    """Tests if it is cheaper to merge first the slices that are in the same windows.

    `fired` is the number of consecutive windows that fire. Without this step, each window merges all its slices. With
    this step, each slice is merged once, and each window merges one row per window bound inside it.

    >>> from windowlib import Sliding
    >>> from windowlib.plans.grids.fixed import FixedGrid
    >>> minute_ms, hour_ms = 60_000, 3_600_000
    >>> grids = [FixedGrid.of(Sliding(hours * hour_ms, 5 * minute_ms)) for hours in (1, 24)]
    >>> [pays_to_combine(grid, fired=12) for grid in grids]
    [False, True]
    """
    slices_reached = grid.slices_per_window + (fired - 1) * grid.ends_every // grid.slice_ticks
    return fired * grid.slices_per_window > 2 * (slices_reached + fired * fired)
