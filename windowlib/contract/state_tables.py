"""Tables of the state: windows or slices in flight, and the elements that windows keep.

`PARTIALS` declares the partial aggregates that every row of state has in addition to the definition's aggregates.
All plans compute, merge and store these partial aggregates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import add
from typing import Any

from windowlib.contract.table import Column, TableSpec
from windowlib.contract.types import long, text


@dataclass(frozen=True, slots=True)
class EventTimePartial(Column):
    """Partial aggregate over the event times of the events in a row of state, in ms.

    over_events: SQL over events; ``{time}`` stands for the event time
    over_rows:   SQL that merges rows of state, of the same type
    empty:       value without events, in Python
    add:         value after one more event time, in Python; the time is None if the event has no time
    merge:       merge of two values, in Python
    """

    over_events: str
    over_rows: str
    empty: Any
    add: Callable[[Any, int | None], Any]
    merge: Callable[[Any, Any], Any]


def _later(first: int | None, second: int | None) -> int | None:
    """The later of two times. Either time may be None.

    >>> _later(3, 5), _later(None, 5), _later(3, None)
    (5, 5, 3)
    """
    return second if first is None or (second is not None and second > first) else first


ELEMENTS = EventTimePartial(
    "elements",
    long,
    "number of events in the row",
    "count(1)",
    "sum(elements)",
    0,
    lambda number, _: number + 1,
    add,
)
PARTIALS = (
    ELEMENTS,
    EventTimePartial(
        "last_event_ms",
        long,
        "newest event time of these events",
        "max({time})",
        "max(last_event_ms)",
        None,
        _later,
        _later,
    ),
)
PARTIAL_NAMES = [partial.name for partial in PARTIALS]

OPEN_WINDOWS = TableSpec(
    "open_windows",
    "the windows in flight. Sessions: one row per key and window, with state window, partial aggregates, and the"
    " published windows to replace. Aligned windows and count windows: one row per key and slice, shared by its"
    " windows. General plan: one row per key and window, with timers, and the state of trigger and function as"
    " JSON",
    (
        "every event that was in state or was admitted is in state, was late, or left with its window",
        "every event of the state that the batch reached was read",
        "every event that stays in state was written",
        "every window that stays in flight was written",
        "the count of a window is the number of its events: where an aggregate is count(*)",
        "no window that was due, or that an event may touch, was left as it is",
        "windows of a key never touch: windows in flight, and sessions that the same batch fired",
        "no window in flight is past its cleanup time: max_timestamp_ms > late_out_ms of the batch, in the ledger",
        "the state windows of a key are distinct and lie inside their windows",
        "end_partition = floor(end / state_partition), with the end of the window or of the last window over the slice",
    ),
    partition_by=("end_partition",),
    may_be_added=("published",),  # when sessions get an allowed lateness
    described=(
        Column("<key>", None, "the key: one column for each of source.key, under its name"),
        Column("window_start_ms", long, "sessions and general plan: inclusive"),
        Column("window_end_ms", long, "sessions and general plan: exclusive"),
        Column("state_window_start_ms", long, "start of the state window, or of the slice"),
        Column("state_window_end_ms", long, "end of the state window, or of the slice; exclusive"),
        Column("slice_index", long, "count windows: number of the slice within its key, from 0"),
        *PARTIALS,
        Column(
            "p<i>_<part>",
            None,
            "partial aggregates: part of aggregate number i, from 0; null in rows older than the aggregate",
        ),
        Column(
            "published",
            None,
            "sessions with an allowed lateness, now or earlier: published windows that the session will replace",
        ),
        Column("contents_from", long, "general plan: rows of state_windows count if their batch_id is at least this"),
        Column("state", text, "general plan: JSON of the timers and of the state of trigger and function"),
        Column("fired", None, "general plan: the firings so far, by window"),
        Column("next_event_ms", long, "general plan: watermark at which the row is needed next"),
        Column("next_processing_ms", long, "general plan: plan time at which the row is needed next"),
        Column("end_partition", long, "floor(end / state_partition), end in ms"),
    ),
)

STATE_WINDOWS = TableSpec(
    "state_windows",
    "the elements of windows in flight, by state window. A batch appends its elements in rows of up to some thousand."
    " The table is used only if an evictor, or a function over all elements, needs them",
    (
        "a row counts if open_windows has its key and state window with contents_from <= batch_id",
        "end_partition is the same as in the row of open_windows with the same key and state window",
    ),
    partition_by=("end_partition",),
    described=(
        Column("<key>", None, "the key: a column for each name in source.key"),
        Column("state_window_start_ms", long, "start of the state window, or of the slice"),
        Column("state_window_end_ms", long, "end of the state window, or of the slice; exclusive"),
        Column("batch_id", long, "the batch that wrote the row"),
        Column("contents", None, "list of elements: event time, arrival, the columns in use"),
        Column("end_partition", long, "floor(end / state_partition), end in ms"),
    ),
)
