"""Time ranges whose windows a rerun has recomputed.

A rerun of late events recomputes aligned windows of every key. It recomputes the windows that overlap the time range of
these events. The range comes from the figures of the rerun, because a later rerun or erasure removes the events from
`late_events`.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.compute as pc

from windowlib.contract.tables import RUN_METRICS
from windowlib.inspection.lineage.batch_runs import BatchRun
from windowlib.inspection.lineage.cuts import Cut
from windowlib.model.rerun import TimeRange, readmitted

FROM_MS, TO_MS = "recomputed_from_ms", "recomputed_to_ms"  # figures


def recomputed(cut: Cut) -> dict[int, TimeRange]:
    """Time range of each rerun, by batch. The rerun recomputed all aligned windows that overlap the range.

    For sessions, the range is the requested range: reruns recompute whole chains of sessions.
    """
    reruns = [batch for batch in cut.batches.values() if batch.rerun]
    if cut.definition.spec.assigner.merges:
        return {batch.batch_id: batch.rerun.range for batch in reruns if batch.rerun}
    figures = _figures(cut) if any(batch.rerun and batch.rerun.late_only for batch in reruns) else {}
    spans = ((batch.batch_id, _span(cut, batch, figures)) for batch in reruns)
    return {batch_id: span for batch_id, span in spans if span}


def _figures(cut: Cut) -> dict[int, TimeRange]:
    values: dict[int, dict[str, int]] = {}
    of_times = pc.field("figure").isin([FROM_MS, TO_MS]) & pc.field("value").is_valid()
    for row in cut.rows(RUN_METRICS.name, columns=["batch_id", "figure", "value"], where=of_times):
        values.setdefault(row["batch_id"], {})[row["figure"]] = row["value"]
    return {batch_id: TimeRange(bounds[FROM_MS], bounds[TO_MS]) for batch_id, bounds in values.items()}


def _span(cut: Cut, batch: BatchRun, figures: Mapping[int, TimeRange]) -> TimeRange | None:
    """Time range of a rerun of aligned windows; None if it found no late events to readmit."""
    assigner = cut.definition.spec.assigner
    assert batch.rerun, "only reruns have a range"
    return figures.get(batch.batch_id) if batch.rerun.late_only else readmitted(assigner, batch.rerun.range)
