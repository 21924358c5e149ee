"""The event ids that a rerun remembers and forgets: those of changed files come in, those of deleted events go.

An event that is deleted from a Delta source, and comes again in a later file, is not a duplicate of the deleted one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.batches.rejects import forgotten_up_to
from windowlib.plans import names
from windowlib.plans.functions import F, quoted
from windowlib.plans.step import Step
from windowlib.reruns.events import Changed
from windowlib.reruns.places import of_files
from windowlib.source import rows as source
from windowlib.tables.ledger_rows import SourceFile
from windowlib.tables.publish import Changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def seen_ids(inputs: Inputs, changed: Changed | None, step: Step) -> Changes:
    """What becomes of `seen_ids`."""
    of = inputs.definition.source
    if not of.event_id:
        return Changes()
    seen, deleted = inputs.tables.rows("seen_ids"), _deleted(inputs, of.event_id)
    stays, remove = seen, []
    if seen is not None and deleted is not None:
        stays, remove = seen.join(deleted, "event_id", "left_anti"), inputs.tables.files("seen_ids")
    new = None if changed is None else _new(inputs, changed, of.event_id, step)
    if new is not None and stays is not None:
        new = new.join(stays.select("event_id"), "event_id", "left_anti")
    added = new
    if stays is not None and remove:
        added = stays if new is None else stays.unionByName(new)
    return Changes([] if added is None else inputs.staged.append(added, "seen_ids"), remove)


def _new(inputs: Inputs, changed: Changed, event_id: str, step: Step) -> DataFrame:
    """The ids that changed files have brought, as far as they may still meet a duplicate."""
    forgotten_ms = forgotten_up_to(inputs, step, Changes())
    ids = changed.events.select(
        F.col(quoted(event_id)).cast("string").alias("event_id"), F.col(names.TIMESTAMP_MS).alias("timestamp_ms")
    )
    return ids.where(f"event_id IS NOT NULL AND timestamp_ms > {forgotten_ms}")


def _deleted(inputs: Inputs, event_id: str) -> DataFrame | None:
    """The ids of the admitted rows of the files that are replaced, of those that still lie there; None without any."""
    folder = inputs.definition.source.path
    there = [path for path in inputs.plan.replaces if (folder / path).is_file()]
    if not there:
        return None
    files = [SourceFile(path, 0, 0, number) for number, path in enumerate(there, 1)]
    folder = inputs.staging / inputs.staged.unused("deleted")
    raw = source.rows(inputs.spark, inputs.definition.source, files, folder, inputs.source_types)
    rows, refused = raw.frame, of_files(inputs, "quarantine", there)
    if refused is not None:
        places = refused.select("source_file", F.col("source_row").alias(names.SOURCE_ROW))
        named = source.with_path(inputs.spark, rows, raw.paths)
        rows = named.join(places, ["source_file", names.SOURCE_ROW], "left_anti")
    return rows.select(F.col(quoted(event_id)).cast("string").alias("event_id")).distinct()
