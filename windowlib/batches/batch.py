"""One batch, computed: source files and windows in flight in, changes to every table out. Nothing is committed here.

The Spark jobs of a batch, and why each is there:

1. *figures*: rows, reasons, event times per file. Time cannot move before the greatest event time is known. Not needed
   where the footers of Parquet files suffice (`windowlib.source.footers`).
2. *windows*: slices, islands or windows, outcome, written once, split into what fires and what stays in flight.
3. only if rows were refused: *quarantine*; only if events were late: *late events*; only if published results are
   replaced: *replacement* (`windowlib.batches.replacement`); only with an event id: *duplicates* before 1, *seen ids*
   after it; only for json and csv: *parsing* before everything.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace

from windowlib.batches import added, figures, reading, rejects, replacement, watermarks, windows_job
from windowlib.batches.inputs import ComputedBatch, Inputs
from windowlib.batches.reading import AdmittedRows
from windowlib.batches.steps import typed_step
from windowlib.definition.terms import read_as
from windowlib.publication.publish import StagedChanges, joined
from windowlib.source import intake
from windowlib.source.contents import Checksums
from windowlib.source.intake import BatchIntake


def compute(inputs: Inputs) -> ComputedBatch:
    """Runs the jobs and gives what to commit.

    Footers that count no null in a key column may be wrong. Then rows without a key are in what was written, whose own
    statistics say so, and the batch is computed again from a look at the rows, which refuses them.
    """
    checksums = Checksums.started(inputs.source, [file.path for file in inputs.plan.files])
    given = reading.read(inputs)
    looked = reading.look(inputs, given)
    outcome = _computed(inputs, given, looked, checksums)
    if looked.row_groups is None or not _lacks_keys(inputs, outcome.changes):
        return outcome
    inputs.staged.discard()
    shutil.rmtree(inputs.staging, ignore_errors=True)
    inputs = replace(inputs, shared=None)
    given = reading.read(inputs)
    return _computed(inputs, given, reading.look_at_rows(inputs, given) if given else BatchIntake(), checksums)


def _lacks_keys(inputs: Inputs, changes: Mapping[str, StagedChanges]) -> bool:
    """Tests if a row that was written has no key."""
    files = (file for change in changes.values() for file in change.add)
    return any(file.nulls.get(key) for file in files for key in inputs.source.key)


def _computed(inputs: Inputs, given: AdmittedRows | None, looked: BatchIntake, checksums: Checksums) -> ComputedBatch:
    """What to commit of the rows that are given, after a look at them."""
    inputs = added.widened(inputs, given.rows if given else None)
    policy, last = watermarks.policy_of(inputs.definition.watermark), watermarks.last(inputs.opened, inputs.before)
    moved = watermarks.move(policy, inputs.plan, last, looked)
    step = typed_step(inputs, moved.applied_ms, given.rows if given else None)
    events = given.events(looked) if given else None
    windows = windows_job.run(inputs, step, events, looked)
    seen = looked.with_holes(windows.counted.get("elements_in_holes", 0))
    rejected = rejects.rejected(inputs, step, given, events, seen, windows) if given else {}
    replaced = replacement.replace_results(inputs, step, windows)
    kept = {
        "watermarks": StagedChanges(rows=[moved.row]),
        "source_files": StagedChanges(rows=intake.read_files(inputs.plan, seen, checksums, read_as(inputs.source))),
    }
    changes = joined([added.changes(inputs), windows.changes, rejected, replaced, kept])
    found = figures.of_batch(inputs, step, seen, windows, changes, moved.candidate_ms)
    return ComputedBatch(changes, moved.applied_ms, found)
