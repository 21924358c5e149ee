"""Copies of staged files to tables: names, partitions, statistics. No engine runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.simple_batches import no_spark
from windowlib.batches.staging import Staging
from windowlib.contract.change import ADDED
from windowlib.delta.data_files import DataFile
from windowlib.storage.disk import Disk

DAY = date(2026, 1, 2)


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    """Staging folder with one written file, `s/rows/part=a/1.parquet`."""
    (tmp_path / "s/rows/part=a").mkdir(parents=True)
    pq.write_table(pa.table({"n": [5, 7]}), tmp_path / "s/rows/part=a/1.parquet")
    return Staging(Disk(tmp_path / "s"), Disk(tmp_path), "7-1", no_spark())


@pytest.mark.parametrize(("partition", "folder"), [({}, ""), ({"day": 3, "change": "added"}, "day=3/change=added/")])
def test_a_staged_file_is_copied_to_its_partition(staging: Staging, partition: Mapping[str, Any], folder: str) -> None:
    [(file, parts)] = staging.written("rows")
    assert (file.path, parts) == ("rows/part=a/1.parquet", {"part": "a"})
    for _ in range(2):  # a repeated copy replaces the first
        copied = staging.copy(file, "results", partition)
    assert (copied.path, copied.rows, copied.partition) == (f"{folder}7-1-rows-part-a-1.parquet", 2, partition)
    assert (copied.low, copied.high) == ({"n": 5}, {"n": 7})
    assert staging.tables.sizes([f"results/{copied.path}", f"s/{file.path}"]) == [copied.size_bytes] * 2


@pytest.mark.parametrize("can_link", [True, False])
def test_a_result_is_in_results_and_in_the_feed(
    staging: Staging, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_link: bool
) -> None:
    if not can_link:
        monkeypatch.setattr(os, "link", refuse)
    [(file, _)] = staging.written("rows")
    changes = staging.result(file, DAY, ADDED, "firing")
    [kept], [fed] = changes["results"].add, changes["result_changes"].add
    assert kept.partition == {"window_day": DAY}
    assert fed == DataFile(
        f"change=added/cause=firing/window_day={DAY}/7-1-rows-part-a-1.parquet",
        kept.size_bytes,
        2,
        {"change": ADDED, "cause": "firing", "window_day": DAY},
        {"n": 5},
        {"n": 7},
        {"n": 0},
    )
    here, there = tmp_path / "results" / kept.path, tmp_path / "result_changes" / fed.path
    assert here.read_bytes() == there.read_bytes()
    assert (here.stat().st_ino == there.stat().st_ino) == can_link


def test_discarded_files_leave_the_tables(staging: Staging) -> None:
    [(file, _)] = staging.written("rows")
    staging.result(file, DAY, ADDED, "firing")
    staging.tables.put("results/7-10-other.parquet", b"of another attempt")
    staging.discard()
    assert [file.path for file in staging.tables.list()] == ["results/7-10-other.parquet"]


def refuse(*_: object) -> None:
    raise OSError("no links here")
