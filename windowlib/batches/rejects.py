"""What a batch turns away and what it remembers of event ids: quarantine, late events, seen ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.batches.reading import AdmittedRows
from windowlib.batches.windows_job import Windows
from windowlib.delta.data_files import without
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS
from windowlib.plans import names
from windowlib.plans.duplicates import id_of
from windowlib.plans.functions import F
from windowlib.plans.rejects import in_holes, late_events, quarantined
from windowlib.plans.step import DROPPED, HOLE, Step
from windowlib.publication import publish
from windowlib.publication.publish import StagedChanges
from windowlib.source import rows as source
from windowlib.source.intake import BatchIntake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rejected(
    inputs: Inputs, step: Step, given: AdmittedRows, events: DataFrame | None, seen: BatchIntake, windows: Windows
) -> dict[str, StagedChanges]:
    """The changes to `quarantine`, `late_events` and `seen_ids`."""
    return {
        "quarantine": _quarantine(inputs, step, given, seen, windows),
        "late_events": _late_events(inputs, step, given, events, seen, windows),
        "seen_ids": _seen_ids(inputs, step, events, windows),
    }


def _quarantine(inputs: Inputs, step: Step, given: AdmittedRows, seen: BatchIntake, windows: Windows) -> StagedChanges:
    if not any(seen.reasons.values()):
        return StagedChanges()
    rows, holes = given.rows, windows.rows(inputs.spark, HOLE)
    if holes is not None:
        rows = in_holes(rows, holes)
    refused = quarantined(rows, given.columns, inputs.plan.batch_id, step.dialect)
    return StagedChanges(inputs.staged.append(source.with_path(inputs.spark, refused, given.uris), "quarantine"))


def _late_events(
    inputs: Inputs, step: Step, given: AdmittedRows, events: DataFrame | None, seen: BatchIntake, windows: Windows
) -> StagedChanges:
    if events is None:
        return StagedChanges()
    dropped = windows.rows(inputs.spark, DROPPED)
    late = inputs.kind.late(events, dropped, step, seen.may_be_late)
    if late is None:
        return StagedChanges()
    event_id = inputs.source.event_id
    rows = source.with_path(inputs.spark, late_events(late, step, given.columns, event_id), given.uris)
    files = inputs.staged.append(rows, "late_events")
    return StagedChanges(files, schema=publish.table_schema(rows.schema, rows.columns, {}))


def _seen_ids(inputs: Inputs, step: Step, events: DataFrame | None, windows: Windows) -> StagedChanges:
    """New ids in; files whose every id is past the horizon out."""
    of = inputs.source
    if not of.event_id:
        return StagedChanges()
    new = []
    if events is not None:
        ids = events.select(id_of(of.event_id).alias("event_id"), F.col(names.TIMESTAMP_MS).alias("timestamp_ms"))
        new = inputs.staged.append(ids.where("event_id IS NOT NULL"), "seen_ids")
    forgotten_ms = forgotten_up_to(inputs, step, windows.changes.get("open_windows", StagedChanges()))
    return StagedChanges(new, [f for f in inputs.tables.files("seen_ids") if f.high["timestamp_ms"] <= forgotten_ms])


def forgotten_up_to(inputs: Inputs, step: Step, in_flight: StagedChanges) -> int:
    """The ids of events up to this time are forgotten after a batch that changes windows in flight so."""
    kind, stays = inputs.kind, without(inputs.tables.files("open_windows"), in_flight.remove)
    ending, (start, _) = kind.ending([*stays, *in_flight.add], step), kind.bounds
    first_ms = min((file.low.get(start, MIN_TIME_MS) for file in ending), default=MAX_TIME_MS)
    return inputs.definition.forgets_ids_up_to(step.watermark_out_ms, first_ms)
