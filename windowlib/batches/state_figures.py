"""Figures of the state that a batch read and wrote, counted in the files. They must equal the counts of Spark.

Each row of `open_windows` has its number of events (`elements`). The sum over the files that a batch read is the number
of events in state before it. The sum over the files that it wrote, or read and left unchanged, is the number after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow.compute as pc

from windowlib.batches.inputs import Inputs
from windowlib.delta.data_files import DataFile, parquet_file, without
from windowlib.plans.reach import Reach
from windowlib.plans.step import Step
from windowlib.publication.publish import StagedChanges
from windowlib.source.intake import BatchIntake
from windowlib.storage.at_once import at_once
from windowlib.storage.store import Store

ELEMENTS = "elements"


def state_row_figures(
    inputs: Inputs,
    step: Step,
    batch_intake: BatchIntake,
    reached: Reach[DataFile],
    changes: Mapping[str, StagedChanges],
) -> dict[str, int | None]:
    """Figures by name. `windows_overdue` counts unread files with a window that was due or that an event may touch."""
    store, change = inputs.tables.store("open_windows"), changes.get("open_windows", StagedChanges())
    read = elements_in(store, [*reached.rewritten, *reached.read])
    left = without(inputs.tables.files("open_windows"), [*change.remove, *reached.rewritten, *reached.read])
    kind = inputs.kind
    buckets = kind.buckets(batch_intake.buckets, step)
    return {
        "events_in_state_read": read,
        "events_in_state_written": elements_in(store, [*change.add, *reached.read]),
        "windows_overdue": sum(kind.overdue(file, step) for file in left)
        + sum(kind.touches(file, buckets, step) for file in (*left, *reached.dropped)),
    }


def elements_in(store: Store, files: Iterable[DataFile]) -> int:
    """Number of events in the windows or slices of some files of the state."""

    def counted(file: DataFile) -> int:
        rows = parquet_file(store, file.path, file.size_bytes).read(columns=[ELEMENTS])
        return int(pc.sum(rows[ELEMENTS]).as_py() or 0)

    return sum(at_once(counted, files))
