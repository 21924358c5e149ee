"""Refused rows, late events and admitted event ids of a batch: changes to quarantine, late events and seen ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deltalake import Schema

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
from windowlib.publication.publish import StagedChanges, joined
from windowlib.source.intake import BatchIntake
from windowlib.source.rows import with_path
from windowlib.storage.at_once import at_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write(
    inputs: Inputs,
    step: Step,
    file_rows: AdmittedRows,
    events: DataFrame | None,
    batch_intake: BatchIntake,
    windows: Windows,
) -> dict[str, Schema | None]:
    """Writes rows for `quarantine`, `late_events` and `seen_ids` to staging folders with these names.

    Returns the schema of each such table, None if its columns are fixed.
    """
    written = dict[str, Schema | None]()
    if any(batch_intake.reasons.values()):
        refused = _refused(inputs, step, file_rows, windows)
        inputs.staged.write(with_path(inputs.spark, refused, file_rows.uris), "quarantine")
        written["quarantine"] = None
    late = None if events is None else _late(inputs, step, file_rows, events, batch_intake, windows)
    if late is not None:
        inputs.staged.write(late, "late_events")
        written["late_events"] = publish.table_schema(late.schema, late.columns, {})
    if events is not None and (event_id := inputs.source.event_id):
        ids = events.select(id_of(event_id).alias("event_id"), F.col(names.TIMESTAMP_MS).alias("timestamp_ms"))
        inputs.staged.write(ids.where("event_id IS NOT NULL"), "seen_ids")
        written["seen_ids"] = None
    return written


def changes(
    inputs: Inputs, step: Step, written: Mapping[str, Schema | None], windows: Windows
) -> dict[str, StagedChanges]:
    """Changes to the tables whose rows `write` has written. Removes files of `seen_ids` that are past the horizon."""
    files = at_once(inputs.staged.appended, written)
    added = {
        table: StagedChanges(add, schema=schema) for (table, schema), add in zip(written.items(), files, strict=True)
    }
    if not inputs.source.event_id:
        return added
    forgotten_ms = forgotten_up_to(inputs, step, windows.changes.get("open_windows", StagedChanges()))
    past = [file for file in inputs.tables.files("seen_ids") if file.high["timestamp_ms"] <= forgotten_ms]
    return joined([added, {"seen_ids": StagedChanges(remove=past)}])


def _refused(inputs: Inputs, step: Step, file_rows: AdmittedRows, windows: Windows) -> DataFrame:
    rows, holes = file_rows.rows, windows.rows(inputs.staged, HOLE)
    if holes is not None:
        rows = in_holes(rows, holes)
    return quarantined(rows, file_rows.columns, inputs.plan.batch_id, step.dialect)


def _late(
    inputs: Inputs,
    step: Step,
    file_rows: AdmittedRows,
    events: DataFrame,
    batch_intake: BatchIntake,
    windows: Windows,
) -> DataFrame | None:
    dropped = windows.rows(inputs.staged, DROPPED)
    late = inputs.kind.late(events, dropped, step, batch_intake.may_be_late)
    if late is None:
        return None
    rows = late_events(late, step, file_rows.columns, inputs.source.event_id)
    return with_path(inputs.spark, rows, file_rows.uris)


def forgotten_up_to(inputs: Inputs, step: Step, in_flight: StagedChanges) -> int:
    """Greatest time of events whose ids are forgotten after a batch.

    in_flight: changes of the batch to the windows in flight
    """
    kind, stays = inputs.kind, without(inputs.tables.files("open_windows"), in_flight.remove)
    ending, (start, _) = kind.ending([*stays, *in_flight.add], step), kind.bounds
    first_ms = min((file.low.get(start, MIN_TIME_MS) for file in ending), default=MAX_TIME_MS)
    return inputs.definition.forgets_ids_up_to(step.watermark_out_ms, first_ms)
