"""Grid of windows of calendar intervals. A tick is the number of the interval that starts at the time.

Windows are tumbling (one interval), sliding (`intervals` consecutive ones), or cumulating: they start with an interval
of the coarser calendar `within`, and end with each interval up to the end of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from windowlib.model.calendar import Calendar
from windowlib.model.rerun import TimeRange
from windowlib.plans import names
from windowlib.plans.functions import F
from windowlib.plans.grids.edges import EdgeColumns
from windowlib.plans.grids.grid import END, END_MS, LAST_END, START_MS, limited

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, slots=True)
class CalendarGrid:
    """Implementation of `Grid` for a calendar. Columns are exact for times in `spans`, and undefined elsewhere."""

    calendar: Calendar
    intervals: int
    within: Calendar | None
    spans: Sequence[TimeRange]
    ends_every: ClassVar[int] = 1
    an_end: ClassVar[int] = 0
    slice_ticks: ClassVar[int] = 1
    slice_tick: ClassVar[str] = names.internal("slice_tick")
    last_tick: ClassVar[str] = names.internal("last_tick")

    @property
    def overlap(self) -> bool:
        return self.intervals > 1 or self.within is not None

    @property
    def slices_per_window(self) -> int:
        if self.within is None:
            return self.intervals
        return self.within.most_steps(self.calendar)

    def tick_up_to(self, time_ms: int) -> int:
        """See `Grid`."""
        return self.calendar.number(limited(time_ms))

    def tick_from(self, time_ms: int) -> int:
        """See `Grid`."""
        return self.calendar.number(limited(time_ms) - 1) + 1

    # -- columns --------------------------------------------------------------------------------------------------

    def slice_start(self, time: str) -> Column:
        """See `Grid`."""
        return F.expr(EdgeColumns.inside(self.calendar, self.spans).start(time))

    def slice_end(self, start: str) -> str:
        """See `Grid`."""
        return EdgeColumns.inside(self.calendar, self.spans).next(start)

    def first_window_end(self, start: str) -> Column:
        """See `Grid`. Each edge is the end of a window."""
        return F.expr(self.slice_end(start))

    def placed(self, slices: DataFrame, start: str) -> DataFrame:
        """See `Grid`."""
        edges = EdgeColumns.inside(self.calendar, self.reached)
        numbered = slices.selectExpr("*", f"{edges.number(start)} AS {self.slice_tick}")
        if self.within is None:
            ticked = numbered.selectExpr("*", f"{self.slice_tick} + {self.intervals}L AS {self.last_tick}")
            return ticked.selectExpr("*", f"{edges.edge(self.last_tick)} AS {LAST_END}")
        whole = EdgeColumns.inside(self.within, self.spans)
        ended = numbered.selectExpr("*", f"{whole.next(start)} AS {LAST_END}")
        return ended.selectExpr("*", f"{edges.number(LAST_END)} AS {self.last_tick}")

    def first_end(self, tick: Column) -> Column:
        """See `Grid`. Each tick is an end."""
        return tick

    def last_end(self, tick: Column) -> Column:
        """See `Grid`."""
        return tick

    def with_bounds(self, windows: DataFrame) -> DataFrame:
        """See `Grid`."""
        edges = EdgeColumns.inside(self.calendar, self.reached)
        ended = windows.selectExpr("*", f"{edges.edge(END)} AS {END_MS}")
        if self.within is None:
            first, start = f"{END} - {self.intervals}L", edges.edge("_first_tick")
        else:
            first, start = f"{END_MS} - 1L", EdgeColumns.inside(self.within, self.reached).start("_first_tick")
        return ended.selectExpr("*", f"{first} AS _first_tick").selectExpr("*", f"{start} AS {START_MS}")

    def with_last_window(self, events: DataFrame) -> DataFrame:
        """See `Grid`. The last window of a sliding one starts with the event's own interval."""
        edges = EdgeColumns.inside(self.calendar, self.reached)
        time, tick = names.TIMESTAMP_MS, names.internal("tick")
        if self.within is not None:
            whole = EdgeColumns.inside(self.within, self.spans)
            bounds = {names.WINDOW_START_MS: whole.start(time), names.WINDOW_END_MS: whole.next(time)}
            return events.withColumns({name: F.expr(sql) for name, sql in bounds.items()})
        ticked = events.withColumn(tick, F.expr(f"{edges.number(time)} + {self.intervals}L"))
        bounds = {names.WINDOW_START_MS: edges.start(time), names.WINDOW_END_MS: edges.edge(tick)}
        return ticked.withColumns({name: F.expr(sql) for name, sql in bounds.items()}).drop(tick)

    @property
    def reached(self) -> list[TimeRange]:
        """The spans together with all windows that meet them."""
        return [
            TimeRange(self._first_start_ms(span.from_ms), self.last_window_end_ms(span.to_ms - 1) + 1)
            for span in self.spans
        ]

    def _first_start_ms(self, time_ms: int) -> int:
        if self.within is not None:
            return self.within.start_ms(time_ms)
        return self.calendar.edge_ms(self.calendar.number(time_ms) + 1 - self.intervals)

    # -- in Python ------------------------------------------------------------------------------------------------

    def slice_end_ms(self, slice_start_ms: int) -> int:
        """See `Grid`."""
        return self.calendar.next_ms(slice_start_ms)

    def last_window_end_ms(self, slice_start_ms: int) -> int:
        """See `Grid`."""
        if self.within is not None:
            return self.within.next_ms(slice_start_ms)
        return self.calendar.edge_ms(self.calendar.number(slice_start_ms) + self.intervals)

    def last_end_ms(self, bound_ms: int) -> int:
        """See `Grid`."""
        return self.calendar.edge_ms(self.tick_up_to(bound_ms))

    def first_end_ms(self, bound_ms: int) -> int:
        """See `Grid`."""
        return self.calendar.edge_ms(self.tick_from(bound_ms))

    def window_start_ms(self, end_ms: int) -> int:
        """See `Grid`."""
        return self._first_start_ms(end_ms - 1)
