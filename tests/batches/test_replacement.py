"""Which files of `results` a batch writes again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.batches.replacement import _touched
from windowlib.definition.instants import utc
from windowlib.tables.data_files import DataFile

WINDOW = pa.struct({"window_start_ms": pa.int64(), "window_end_ms": pa.int64()})


def updates(path: Path, *starts_ms: list[int]) -> Path:
    """A staged file of rows that replace windows with these starts."""
    replaced = [[{"window_start_ms": start, "window_end_ms": start + 9} for start in row] for row in starts_ms]
    pq.write_table(pa.table({"replaced": pa.array(replaced, pa.list_(WINDOW))}), path)
    return path


def results(name: str, first_ms: int, last_ms: int) -> DataFile:
    bounds = ({"window_start": utc(first_ms)}, {"window_start": utc(last_ms)})
    return DataFile(name, size_bytes=1, rows=1, partition={}, low=bounds[0], high=bounds[1])


def test_files_are_found_by_the_start_of_a_replaced_window(tmp_path: Path) -> None:
    files = [results("before", -30, -1), results("begins", 0, 9), results("ends", -10, 0), results("after", 1, 9)]
    assert [file.path for file in _touched(files, [updates(tmp_path / "a", [0])])] == ["begins", "ends"]


def test_a_file_between_two_replaced_windows_is_left_alone(tmp_path: Path) -> None:
    files = [results("early", 0, 9), results("between", 10, 19), results("late", 20, 29)]
    paths = [updates(tmp_path / "a", [5, 25], []), updates(tmp_path / "b", [7])]
    assert [file.path for file in _touched(files, paths)] == ["early", "late"]
