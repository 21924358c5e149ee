"""Columns with the answers of `windowlib.model.geometry`, for the event time TIMESTAMP_MS of each row.

A law compares each column with the answer of the model. As there, None means *unknown*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.model.assigners import Assigner
from windowlib.model.geometry import geometry_of
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS
from windowlib.plans import names
from windowlib.plans.functions import F, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column


def aligned_start_ms(timestamp: Column, step_ms: int, offset_ms: int = 0) -> Column:
    """Last aligned start at or before a time. Equals `windowlib.model.windows.window_start`."""
    return timestamp - F.pmod(timestamp - F.lit(offset_ms), F.lit(step_ms))


def latest_end(assigner: Assigner) -> Column | None:
    """End of the last window of an event (`Geometry.latest_end_ms`), or of the window that its gap column gives.

    None for windows without end, too: no column can hold a time after all others. None for windows of a calendar: a
    plan gives columns only inside the times of a batch (`windowlib.plans.grids.edges`).
    """
    geometry, timestamp = geometry_of(assigner), F.col(names.TIMESTAMP_MS)
    if geometry.gap_column is not None:
        return timestamp + F.col(quoted(geometry.gap_column)).cast("long")
    if geometry.starts_every_ms is None or geometry.longest_ms is None:
        return None
    if geometry.shifted or geometry.starts_every_ms == 1:
        return timestamp + geometry.longest_ms
    end = aligned_start_ms(timestamp, geometry.starts_every_ms, geometry.offset_ms) + geometry.longest_ms
    return F.greatest(end, timestamp + 1) if geometry.has_holes else end


def own_window_end_ms(assigner: Assigner) -> Column:
    """`latest_end` for plans that judge events by the end of their own window, and so know it."""
    end = latest_end(assigner)
    assert end is not None, f"the end of a window of {assigner} is unknown"
    return end


def is_late(assigner: Assigner, late_up_to_ms: int) -> Column:
    """Tests if the last window of an event is late: its max_timestamp_ms is at most `late_up_to_ms`.

    Without a column for the end, an event is late if it is before every window that is not.
    """
    if (end := latest_end(assigner)) is not None:
        return end - 1 <= late_up_to_ms
    first_ms = min(max(late_up_to_ms, MIN_TIME_MS // 4), MAX_TIME_MS // 4) + 1
    living = geometry_of(assigner).meeting(first_ms, first_ms + 1)
    assert living is not None, f"the end of a window of {assigner} is unknown"
    return F.col(names.TIMESTAMP_MS) < living[0]


def longest_own_window(assigner: Assigner) -> Column:
    """Length of the longest window of a group's events, for windows that merge."""
    geometry = geometry_of(assigner)
    if geometry.gap_column is not None:
        return F.max(F.col(quoted(geometry.gap_column)).cast("long"))
    assert geometry.longest_ms is not None, f"the length of the windows of {assigner} is unknown"
    return F.lit(geometry.longest_ms)


def in_hole(assigner: Assigner) -> Column:
    """Tests if an event lies in no window. False for windows that are not known to have holes."""
    geometry = geometry_of(assigner)
    if not geometry.has_holes or geometry.starts_every_ms is None:
        return F.lit(False)
    into = F.pmod(F.col(names.TIMESTAMP_MS) - geometry.offset_ms, F.lit(geometry.starts_every_ms))
    return into >= F.lit(geometry.longest_ms)


def slice_start(assigner: Assigner) -> Column:
    """Start of the slice of an event (`Geometry.slice_ms`), for plans that make slices."""
    geometry, timestamp = geometry_of(assigner), F.col(names.TIMESTAMP_MS)
    assert geometry.slice_ms is not None, f"no slices can be made for {assigner}"
    return timestamp if geometry.slice_ms == 1 else aligned_start_ms(timestamp, geometry.slice_ms, geometry.offset_ms)
