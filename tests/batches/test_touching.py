"""Figure `windows_touching`: touching sessions of one key, fired or in flight, which should have merged."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowlib.batches import touching as compared_pairwise
from windowlib.batches.result_figures import in_ms
from windowlib.batches.touching import KeySample, in_flight, touching
from windowlib.delta.data_files import DataFile
from windowlib.engines.spark_dialect import SPARK
from windowlib.model.assigners import Session
from windowlib.plans.step import Step
from windowlib.storage.disk import Disk

SESSION = Session(10)
Windows = Sequence[tuple[str, int, int]]


def written(folder: Path, columns: dict[str, Any]) -> list[DataFile]:
    rows = pa.table(columns)
    pq.write_table(rows, folder / "one.parquet")
    return [DataFile("one.parquet", 1, rows.num_rows)]


def count(folder: Path, left: Windows, fired: Windows, batch_id: int = 1) -> int:
    """Figure of a batch that left and fired these windows: key, start and end in ms."""
    keys, starts, ends = ([window[i] for window in left] for i in range(3))
    kept = written(folder, {"user": keys, "window_start_ms": starts, "window_end_ms": ends})
    users, *bounds = ([window[i] for window in fired] for i in range(3))
    begin, end = (pa.chunked_array([[datetime.fromtimestamp(ms / 1000, UTC) for ms in bound]]) for bound in bounds)
    step = Step(SESSION, ("user",), None, 0, 0, 0, 0, batch_id, 100, dialect=SPARK)
    compared = KeySample.of(step, len(left) + len(fired))
    new = compared.windows(pa.table({"user": users}), in_ms(begin), in_ms(end))
    return touching([*in_flight(Disk(folder), kept, compared), new], step.keys)


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


def test_with_many_windows_each_batch_compares_a_share_of_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch compares a share of the keys, in flight and fired alike; every key has its turn."""
    users = [f"u{number}" for number in range(40)]
    left, fired = [(user, 0, 10) for user in users], [(user, 9, 19) for user in users]
    assert count(tmp_path, left, fired) == 40
    monkeypatch.setattr(compared_pairwise, "COMPARED_ROWS", 20)
    found = [count(tmp_path, left, fired, batch_id) for batch_id in range(1, 5)]
    assert sum(found) == 40
    assert all(0 < one < 25 for one in found)
