"""Computation of one batch: source files and windows in flight in, changes to every table out. It commits nothing.

Spark jobs of a batch, with the reason for each:

1. *figures*: rows, reasons, event times per file. The watermark cannot move before the greatest event time is known.
   The job is not needed if the footers of Parquet files suffice (`windowlib.source.footers`).
2. *windows*: slices, islands or windows, and their outcome. The job writes its output once, split into rows that
   fire and rows that stay in flight.
3. *quarantine*, only if rows were refused.
4. *late events*, only if events were late.
5. *replacement*, only if published results are replaced (`windowlib.batches.replacement`).
6. *duplicates* before job 1 and *seen ids* after it, only with an event id.
7. *parsing* before everything, only for JSON and CSV.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from windowlib.batches import added, figures, reading, rejects, replacement, watermarks, windows_job
from windowlib.batches.inputs import ComputedBatch, Inputs
from windowlib.batches.reading import AdmittedRows
from windowlib.batches.steps import typed_step
from windowlib.definition.terms import read_as
from windowlib.publication.publish import StagedChanges, joined
from windowlib.source import event_spans, intake
from windowlib.source.contents import Checksums
from windowlib.source.intake import BatchIntake
from windowlib.storage.at_once import both


def compute(inputs: Inputs) -> ComputedBatch:
    """Runs the jobs and returns the changes to commit.

    Footers may wrongly count no null in a key column. The written files then contain rows without a key, which their
    own statistics show. In that case the batch is computed again from its rows, and rows without a key are refused.
    """
    checksums = Checksums.started(inputs.source, inputs.plan.files)
    file_rows = reading.read(inputs)
    batch_intake = reading.look(inputs, file_rows)
    outcome = _computed(inputs, file_rows, batch_intake, checksums)
    if batch_intake.row_groups is None or not _lacks_keys(inputs, outcome.changes):
        return outcome
    inputs.staged.discard()
    inputs = replace(inputs, shared=None)
    file_rows = reading.read(inputs)
    return _computed(
        inputs, file_rows, reading.look_at_rows(inputs, file_rows) if file_rows else BatchIntake(), checksums
    )


def _lacks_keys(inputs: Inputs, changes: Mapping[str, StagedChanges]) -> bool:
    """Tests if a written row has no key."""
    files = (file for change in changes.values() for file in change.add)
    return any(file.nulls.get(key) for file in files for key in inputs.source.key)


def _computed(
    inputs: Inputs, file_rows: AdmittedRows | None, batch_intake: BatchIntake, checksums: Checksums
) -> ComputedBatch:
    """Changes to commit, computed from the rows of the files and their figures."""
    inputs = added.widened(inputs, file_rows.rows if file_rows else None)
    policy, last = watermarks.policy_of(inputs.definition.watermark), watermarks.last(inputs.opened, inputs.before)
    moved = watermarks.move(policy, inputs.plan, last, batch_intake)
    step = typed_step(inputs, moved.applied_ms, file_rows.rows if file_rows else None)
    events = file_rows.events(batch_intake) if file_rows else None
    step = event_spans.with_events(step, batch_intake.buckets, events)
    windows = windows_job.run(inputs, step, events, batch_intake)
    full_intake = batch_intake.with_holes(windows.counted.get("elements_in_holes", 0))
    written = rejects.write(inputs, step, file_rows, events, full_intake, windows) if file_rows else {}
    touched = replacement.write(inputs, step, windows)
    rejected, replaced = both(
        lambda: rejects.changes(inputs, step, written, windows) if file_rows else {},
        lambda: replacement.changes(inputs, touched, windows),
    )
    records = {
        "watermarks": StagedChanges(rows=[moved.row]),
        "source_files": StagedChanges(
            rows=intake.read_files(inputs.plan, full_intake, checksums, read_as(inputs.source))
        ),
    }
    changes = joined([added.changes(inputs), windows.changes, rejected, replaced, records])
    batch_figures = figures.batch_figures(inputs, step, full_intake, windows, changes, moved.candidate_ms)
    return ComputedBatch(changes, moved.applied_ms, batch_figures)
