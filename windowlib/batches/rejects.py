"""Refused rows, late events and admitted event ids of a batch: changes to quarantine, late events and seen ids."""

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
from windowlib.source.intake import BatchIntake
from windowlib.source.rows import with_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rejected(
    inputs: Inputs,
    step: Step,
    file_rows: AdmittedRows,
    events: DataFrame | None,
    batch_intake: BatchIntake,
    windows: Windows,
) -> dict[str, StagedChanges]:
    """Changes to `quarantine`, `late_events` and `seen_ids`."""
    return {
        "quarantine": _quarantine(inputs, step, file_rows, batch_intake, windows),
        "late_events": _late_events(inputs, step, file_rows, events, batch_intake, windows),
        "seen_ids": _seen_ids(inputs, step, events, windows),
    }


def _quarantine(
    inputs: Inputs, step: Step, file_rows: AdmittedRows, batch_intake: BatchIntake, windows: Windows
) -> StagedChanges:
    if not any(batch_intake.reasons.values()):
        return StagedChanges()
    rows, holes = file_rows.rows, windows.rows(inputs.staged, HOLE)
    if holes is not None:
        rows = in_holes(rows, holes)
    refused = quarantined(rows, file_rows.columns, inputs.plan.batch_id, step.dialect)
    return StagedChanges(inputs.staged.append(with_path(inputs.spark, refused, file_rows.uris), "quarantine"))


def _late_events(
    inputs: Inputs,
    step: Step,
    file_rows: AdmittedRows,
    events: DataFrame | None,
    batch_intake: BatchIntake,
    windows: Windows,
) -> StagedChanges:
    if events is None:
        return StagedChanges()
    dropped = windows.rows(inputs.staged, DROPPED)
    late = inputs.kind.late(events, dropped, step, batch_intake.may_be_late)
    if late is None:
        return StagedChanges()
    event_id = inputs.source.event_id
    rows = with_path(inputs.spark, late_events(late, step, file_rows.columns, event_id), file_rows.uris)
    files = inputs.staged.append(rows, "late_events")
    return StagedChanges(files, schema=publish.table_schema(rows.schema, rows.columns, {}))


def _seen_ids(inputs: Inputs, step: Step, events: DataFrame | None, windows: Windows) -> StagedChanges:
    """Adds the new ids, and removes files whose ids are all past the horizon."""
    source = inputs.source
    if not source.event_id:
        return StagedChanges()
    new = []
    if events is not None:
        ids = events.select(id_of(source.event_id).alias("event_id"), F.col(names.TIMESTAMP_MS).alias("timestamp_ms"))
        new = inputs.staged.append(ids.where("event_id IS NOT NULL"), "seen_ids")
    forgotten_ms = forgotten_up_to(inputs, step, windows.changes.get("open_windows", StagedChanges()))
    return StagedChanges(new, [f for f in inputs.tables.files("seen_ids") if f.high["timestamp_ms"] <= forgotten_ms])


def forgotten_up_to(inputs: Inputs, step: Step, in_flight: StagedChanges) -> int:
    """Greatest time of events whose ids are forgotten after a batch.

    in_flight: changes of the batch to the windows in flight
    """
    kind, stays = inputs.kind, without(inputs.tables.files("open_windows"), in_flight.remove)
    ending, (start, _) = kind.ending([*stays, *in_flight.add], step), kind.bounds
    first_ms = min((file.low.get(start, MIN_TIME_MS) for file in ending), default=MAX_TIME_MS)
    return inputs.definition.forgets_ids_up_to(step.watermark_out_ms, first_ms)
