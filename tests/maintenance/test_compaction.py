"""Sizes of compacted files."""

from __future__ import annotations

import pytest

from windowlib.delta.data_files import DataFile
from windowlib.maintenance import compaction

KB = 1 << 10


def compacted(name: str, sizes_kb: list[int]) -> list[list[int]]:
    """Sizes in KB of the files in each group that becomes one file."""
    files = [
        DataFile(f"{n}.parquet", size * KB, 1, low={"batch_id": n, "sequence": n}, high={"batch_id": n, "sequence": n})
        for n, size in enumerate(sizes_kb)
    ]
    found = compaction.groups(name, files, lambda partition: False, 1)
    return [[file.size_bytes // KB for file in one] for one in found]


@pytest.mark.parametrize("name", ["ledger", "run_metrics", "dq_results", "source_files", "watermarks"])
def test_a_table_read_by_log_statistics_keeps_several_files(name: str) -> None:
    assert compacted(name, [100] * 25) == [[100] * 10, [100] * 10, [100] * 5]
    assert compacted(name, [900, 300, *[10] * 9]) == [[10] * 9]


def test_another_table_gets_large_files() -> None:
    assert compacted("quarantine", [100] * 25) == [[100] * 25]
    assert compacted("quarantine", [16_000] * 9) == [[16_000] * 4, [16_000] * 4]
