"""Figures of the state that a batch read and wrote, by the files themselves: what its plan counted must be in them.

`open_windows` says of each row how many events it holds (`elements`), so the sum over the files that a batch read is
what it had before, and the sum over those that it wrote, or read and left as they are, what stays in state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.batches.inputs import Inputs
from windowlib.delta.data_files import DataFile, without
from windowlib.plans.reach import Reach
from windowlib.plans.step import Step
from windowlib.publication.publish import StagedChanges
from windowlib.source.intake import BatchIntake

ELEMENTS = "elements"


def of_state(
    inputs: Inputs, step: Step, seen: BatchIntake, reached: Reach[DataFile], changes: Mapping[str, StagedChanges]
) -> dict[str, int | None]:
    """The figures by name; of files that were not read, how many hold a window that was due or may be touched."""
    folder, change = inputs.tables.folder("open_windows"), changes.get("open_windows", StagedChanges())
    read = elements_in(folder, [*reached.rewritten, *reached.read])
    left = without(inputs.tables.files("open_windows"), [*change.remove, *reached.rewritten, *reached.read])
    kind = inputs.kind
    buckets = kind.buckets(seen.buckets, step)
    return {
        "events_in_state_read": read,
        "events_in_state_written": elements_in(folder, [*change.add, *reached.read]),
        "windows_overdue": sum(kind.overdue(file, step) for file in left)
        + sum(kind.touches(file, buckets, step) for file in (*left, *reached.dropped)),
    }


def elements_in(folder: Path, files: Iterable[DataFile]) -> int:
    """The events in the windows, or slices, that files of the state hold."""
    columns = (pq.ParquetFile(folder / file.path).read(columns=[ELEMENTS])[ELEMENTS] for file in files)
    return sum(pc.sum(column).as_py() or 0 for column in columns)
