"""Figures of a batch's late events: percentiles of the lateness, and rows written as late although they were not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowlib.batches.inputs import Inputs
from windowlib.batches.result_figures import in_ms, rows_of
from windowlib.plans.admission import MAX_TIMESTAMP_MS
from windowlib.plans.step import Step
from windowlib.publication.publish import StagedChanges

HOW_LATE = {"late_by_p50_ms": 50, "late_by_p95_ms": 95, "late_by_max_ms": 100}  # percentiles


def late_event_figures(inputs: Inputs, step: Step, changes: Mapping[str, StagedChanges]) -> dict[str, int | None]:
    """Figures by name. `late_rows_early` must be 0; the percentiles are None without late events."""
    late_ms = min(step.late_in_ms, MAX_TIMESTAMP_MS) if step.specification.time == "event" else None
    store, files = inputs.tables.store("late_events"), changes.get("late_events", StagedChanges()).add
    early, late_by = 0, list[pa.ChunkedArray]()
    for rows in (rows for file in files for rows in rows_of(store, file, ["window_end", "event_time", "late_by_ms"])):
        late_by.append(rows["late_by_ms"])
        if late_ms is not None:  # without a window, an event is late by its own time
            last = pc.coalesce(pc.subtract(in_ms(rows["window_end"]), 1), in_ms(rows["event_time"]))
            early += pc.sum(pc.greater(last, late_ms)).as_py() or 0
    return {"late_rows_early": early, **how_late(late_by)}


def how_late(late_by_ms: list[pa.ChunkedArray]) -> dict[str, int | None]:
    """Percentiles of the lateness in ms, by figure. Each is the least value that this share of events does not exceed.

    >>> how_late([pa.chunked_array([[5, 1], [None]]), pa.chunked_array([[900]])])
    {'late_by_p50_ms': 5, 'late_by_p95_ms': 900, 'late_by_max_ms': 900}
    >>> how_late([])["late_by_max_ms"]
    """
    chunks = [chunk for column in late_by_ms for chunk in column.drop_null().chunks]
    values = pa.chunked_array(chunks, pa.int64())
    if not len(values):
        return dict.fromkeys(HOW_LATE)
    in_order = np.sort(values.to_numpy())
    return {name: int(in_order[-(-len(in_order) * percent // 100) - 1]) for name, percent in HOW_LATE.items()}
