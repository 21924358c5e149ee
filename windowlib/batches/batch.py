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

from windowlib.batches import added, figures, reading, rejects, replacement, watermarks, windows_job
from windowlib.batches.inputs import Inputs, Outcome
from windowlib.batches.steps import typed_step
from windowlib.definition.terms import read_as
from windowlib.source import intake
from windowlib.source.contents import Checksums
from windowlib.tables.publish import Changes, joined


def compute(inputs: Inputs) -> Outcome:
    """Runs the jobs and gives what to commit."""
    source = inputs.source
    checksums = Checksums.started(source, [file.path for file in inputs.plan.files])
    given = reading.read(inputs)
    inputs = added.widened(inputs, given.rows if given else None)
    looked = reading.look(inputs, given)
    policy, last = watermarks.policy_of(inputs.definition.watermark), watermarks.last(inputs.opened, inputs.before)
    moved = watermarks.move(policy, inputs.plan, last, looked)
    step = typed_step(inputs, moved.applied_ms, given.rows if given else None)
    events = given.events(looked) if given else None
    windows = windows_job.run(inputs, step, events, looked)
    seen = looked.with_holes(windows.counted.get("elements_in_holes", 0))
    rejected = rejects.rejected(inputs, step, given, events, seen, windows) if given else {}
    replaced = replacement.replace_results(inputs, step, windows)
    kept = {
        "watermarks": Changes(rows=[moved.row]),
        "source_files": Changes(rows=intake.read_files(inputs.plan, seen, checksums, read_as(source))),
    }
    changes = joined([added.changes(inputs), windows.changes, rejected, replaced, kept])
    found = figures.of_batch(inputs, step, seen, windows, changes, moved.candidate_ms)
    return Outcome(changes, moved.applied_ms, found)
