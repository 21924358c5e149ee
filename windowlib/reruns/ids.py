"""Event ids that a rerun adds to and removes from `seen_ids` if files have changed or are missing.

In the covered range, `seen_ids` gets exactly the ids of the events that count now. An event that was deleted from the
source may therefore come again in a later file without counting as a duplicate. An event whose time was repaired does
not count as a duplicate of itself.
"""

from __future__ import annotations

from windowlib.batches.inputs import Inputs
from windowlib.batches.rejects import forgotten_up_to
from windowlib.delta.statistics import overlapping_ms
from windowlib.plans.functions import F
from windowlib.plans.step import Step
from windowlib.publication.publish import StagedChanges
from windowlib.reruns.rejudged_rows import RejudgedRows


def seen_ids(inputs: Inputs, judged: RejudgedRows | None, step: Step) -> StagedChanges:
    """Replaces the ids of the covered range in `seen_ids`. Changes nothing if no row was judged again."""
    if judged is None or not inputs.source.event_id:
        return StagedChanges()
    covered, files = judged.covered, inputs.tables.files("seen_ids")
    remove = overlapping_ms(files, ("timestamp_ms", "timestamp_ms"), covered)
    outside = f"timestamp_ms < {covered.from_ms} OR timestamp_ms >= {covered.to_ms}"
    all_ids, touched = (inputs.tables.rows("seen_ids", some) for some in (files, remove))
    added = stays = None if touched is None else touched.where(outside)
    if judged.ids is not None:
        forgotten_ms = forgotten_up_to(inputs, step, StagedChanges())
        new = judged.ids.groupBy("event_id").agg(F.max("timestamp_ms").alias("timestamp_ms"))
        new = new.where(f"timestamp_ms > {forgotten_ms}")
        if all_ids is not None:
            new = new.join(all_ids.where(outside).select("event_id"), "event_id", "left_anti")
        added = new if stays is None else stays.unionByName(new)
    return StagedChanges([] if added is None else inputs.staged.append(added, "seen_ids"), remove)
