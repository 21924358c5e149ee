"""Tables of results: the current results, and the feed of their changes.

Plans, reruns, migrations, `verify`, explanations and lineage iterate over the columns that are declared here.
"""

from __future__ import annotations

from dataclasses import dataclass

from windowlib.contract.table import Column, TableSpec
from windowlib.contract.types import date, integer, long, text, timestamp

FILLED = "filled_columns"
"""Column of `results`: names of the added columns that the row has; null: none."""

LOCAL_BOUNDS = {"window_start_local": "window_start", "window_end_local": "window_end"}
"""Columns of `results` with local times of a calendar's windows: column → the same time in UTC."""


@dataclass(frozen=True, slots=True)
class ResultColumn(Column):
    """Column of `results`.

    sql:       SQL over the merged partial aggregates of a window, or None if the plan or the definition decides
    compared:  reruns, migrations and `verify` compare the column
    """

    sql: str | None = None
    compared: bool = True


RESULT_COLUMNS = (
    ResultColumn("<key>", None, "the key: a column for each name in source.key"),
    ResultColumn("window_start", timestamp, "inclusive; null for the global window"),
    ResultColumn("window_end", timestamp, "exclusive; null for the global window"),
    *(
        ResultColumn(
            name,
            text,
            f"only with window.time_zone: {bound} in that zone, with the offset, such as `2026-10-25T00:00:00+02:00`",
        )
        for name, bound in LOCAL_BOUNDS.items()
    ),
    ResultColumn(
        "last_event_time", timestamp, "the newest event time in the window", "timestamp_millis(last_event_ms)"
    ),
    ResultColumn(
        "<aggregates>", None, "a column for each aggregate, or with window.function for each name in window.output"
    ),
    ResultColumn(
        FILLED,
        text,
        "after columns were added: the added columns that the row has, such as `p95, slowest`; null: none",
    ),
    ResultColumn("firing", integer, "number of the firing of this result, from 1", compared=False),
    ResultColumn(
        "result_number", integer, "only with window.function: number of the row in its firing", compared=False
    ),
    ResultColumn("timing", text, "early, on_time or late", compared=False),
    ResultColumn("batch_id", long, "the batch that wrote the row", compared=False),
    ResultColumn(
        "window_day",
        date,
        "day of the window's last millisecond; for the global window: day of the firing",
        compared=False,
    ),
)
COMPUTED = {column.name: column.sql for column in RESULT_COLUMNS if column.sql}
"""Columns that follow from the partial aggregates, with their SQL."""
UNCOMPARED = frozenset(column.name for column in RESULT_COLUMNS if not column.compared)

RESULTS = TableSpec(
    "results",
    "the current row per key and window",
    (
        "a key has one result per window, or per firing where each is a result of its own: one row per key,"
        " window_start and window_end. Repeated triggers and count windows add firing, a function with several"
        " results adds result_number",
        "every result has the bounds of a window that holds its newest event: it ends after it starts",
        "no window fired before the watermark reached its last millisecond: where windows fire at their end only",
        "no window fired past its cleanup time",
        "a result is late where the watermark had passed its window before the batch, else on time: a rerun"
        " writes late",
        "every window that must fire has fired, with all its events",
        "no window fires again without a new event",
        "`results` has grown by the results that were added less those removed: by each batch",
        "firing counts the firings of a result from 1, including replaced ones; results added by a rerun start at 1",
        "timing is on_time (the watermark passed the end), late (a late event changed it) or early",
        "window_start and window_end are null for the global window",
        "window_day is the day of the window's last millisecond; for the global window, the day of its newest"
        " event or of the run",
    ),
    partition_by=("window_day",),
    described=RESULT_COLUMNS,
)

FORGET = "forget"
"""Cause of a removal: its key was erased."""

RESULT_CHANGES = TableSpec(
    "result_changes",
    "the change feed of `results`: every row that a batch added, changed or removed",
    (
        "`result_changes` has one row for each firing and for each result removed",
        "of a rerun, `result_changes` has one row for each result that was added, changed or removed",
        "change is added, changed (same window, new values) or removed (the row as it was)",
        "cause is firing, late, merge, rerun, migrate or forget",
        "applied in the order of batch_id to an empty table, the changes give `results`, except: rows that adopt kept,"
        " and after migrate or migrate_undo the columns batch_id, firing and timing",
        "a removal by forget may name a row that is not there: forget erases the earlier changes of the row, and later"
        " the removal itself, once no batch before it is kept",
        "a rollback removes the changes of the undone batches: consumers that have read any of them must resync",
    ),
    partition_by=("change", "cause", "window_day"),
    described=(
        *RESULT_COLUMNS,
        Column("change", text, "added, changed (new values) or removed (the row as it was)"),
        Column("cause", text, "firing, late, merge, rerun, migrate or forget"),
    ),
)
