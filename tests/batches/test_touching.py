"""The figure `windows_touching`: sessions of one key that should have been one, fired or in flight."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowlib.batches.figures import touching
from windowlib.model.assigners import Assigner, Session, Tumbling
from windowlib.plans.step import Step
from windowlib.tables.data_files import DataFile

SESSION = Session(10)
Windows = Sequence[tuple[str, int, int]]


def written(folder: Path, table: str, columns: dict[str, Any]) -> list[DataFile]:
    (folder / table).mkdir()
    rows = pa.table(columns)
    pq.write_table(rows, folder / table / "one.parquet")
    return [DataFile("one.parquet", 1, rows.num_rows)]


def count(folder: Path, in_flight: Windows, fired: Windows, assigner: Assigner = SESSION) -> int:
    """The figure of a batch that left these windows in flight, and fired those: key, start and end in ms."""
    keys, starts, ends = ([window[i] for window in in_flight] for i in range(3))
    kept = written(folder, "open_windows", {"user": keys, "window_start_ms": starts, "window_end_ms": ends})
    users, *bounds = ([window[i] for window in fired] for i in range(3))
    begin, end = ([datetime.fromtimestamp(ms / 1000, UTC) for ms in bound] for bound in bounds)
    new = written(folder, "result_changes", {"user": users, "window_start": begin, "window_end": end})
    return touching(folder, kept, new, Step(assigner, ("user",), None, 0, 0, 0, 0, 1, 100))


@pytest.mark.parametrize(
    ("in_flight", "fired", "touch"),
    [
        ([("ann", 0, 10), ("ann", 11, 21)], [("bob", 5, 15)], 0),
        ([("ann", 0, 10), ("ann", 10, 20)], [("bob", 5, 15)], 1),  # an end that is a start: sessions merge there
        ([("ann", 0, 10)], [("ann", 9, 19)], 1),
        ([("ann", 0, 10)], [("ann", 0, 10)], 0),  # fired, and kept for late events
        ([("ann", 0, 10), ("ann", 9, 19)], [("ann", 0, 10)], 1),  # and next to one that is in both
        ([("ann", 0, 10)], [("ann", 0, 12)], 1),  # the same start, of two extents
        ([("ann", 0, 10)], [("bob", 9, 19)], 0),
    ],
)
def test_sessions_of_a_key_that_touch_are_counted(
    tmp_path: Path, in_flight: Windows, fired: Windows, touch: int
) -> None:
    assert count(tmp_path, in_flight, fired) == touch


def test_windows_that_never_merge_may_touch(tmp_path: Path) -> None:
    assert count(tmp_path, [("ann", 0, 10), ("ann", 10, 20)], [("ann", 20, 30)], Tumbling(10)) == 0
