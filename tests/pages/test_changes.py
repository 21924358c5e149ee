"""Changes since yesterday: with too many batches the page names the start of the count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import Schema

from tests.support.disks import folder_of
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files
from windowlib.delta.tables import Tables
from windowlib.ledger.decision import Decision
from windowlib.pages import changes as module
from windowlib.pages.changes import Replaced, changes
from windowlib.pages.newest_rows import RecentRun
from windowlib.storage.disk import Disk

NOW_MS, MINUTE_MS, BATCHES = 1_772_712_000_000, 60_000, 6
SCHEMA = pa.schema([("window_day", pa.date32()), ("cause", pa.string()), ("change", pa.string()), ("n", pa.int64())])


@pytest.fixture
def fed(tmp_path: Path) -> tuple[Tables, list[RecentRun]]:
    """Batches at intervals of a minute, newest first; each changes as many results as its number."""
    tables = Tables(Disk(tmp_path))
    table = tables["result_changes"]
    parts = ["window_day", "cause", "change"]
    version = delta_commits.create(table, Schema.from_arrow(SCHEMA), partition_by=parts)
    runs = []
    for number in range(1, BATCHES + 1):
        data = pa.table({"n": pa.array(range(number), pa.int64())})
        partition = {"window_day": "2026-03-05", "cause": "late", "change": "changed"}
        folder = "/".join(f"{name}={value}" for name, value in partition.items())
        file = data_files.write(table.store, data)
        (folder_of(table) / folder).mkdir(parents=True, exist_ok=True)
        (folder_of(table) / file.path).rename(folder_of(table) / folder / file.path)
        version = delta_commits.commit(table, version, add=[moved(file, folder, partition)])
        at_ms = NOW_MS - (BATCHES - number) * MINUTE_MS
        runs.append(RecentRun(number, at_ms, at_ms, 1.0, 1, 0, {}, {"result_changes": version}))
    return tables, runs[::-1]


def moved(file: data_files.DataFile, folder: str, partition: dict[str, str]) -> data_files.DataFile:
    return replace(file, path=f"{folder}/{file.path}", partition=partition)


def test_all_batches_of_the_day_are_counted(fed: tuple[Tables, list[RecentRun]]) -> None:
    found = changes(*fed, NOW_MS)
    assert found is not None
    assert (found.batches, found.total("changed"), found.is_cut) == (6, 21, False)
    assert found.since_ms == NOW_MS - module.DAY_MS


def test_a_day_of_too_many_commits_names_its_start(
    fed: tuple[Tables, list[RecentRun]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMITS_READ", 3)
    found = changes(*fed, NOW_MS)
    assert found is not None
    assert (found.batches, found.total("changed"), found.is_cut) == (3, 6 + 5 + 4, True)
    assert found.since_ms == NOW_MS - 2 * MINUTE_MS


def test_a_ledger_not_read_for_a_whole_day_names_its_start(fed: tuple[Tables, list[RecentRun]]) -> None:
    """The state before the oldest batch is unknown, so this batch is not counted."""
    tables, runs = fed
    found = changes(tables, runs[:4], NOW_MS, is_whole=False)
    assert found is not None
    assert (found.batches, found.total("changed"), found.is_cut) == (3, 6 + 5 + 4, True)


def test_changes_of_a_rollback_are_unknown_without_the_old_version(
    fed: tuple[Tables, list[RecentRun]],
) -> None:
    tables, runs = fed
    delta_commits.create(tables["results"], Schema.from_arrow(SCHEMA))
    back = Decision("rollback", "ann", "not right", to_batch_id=5)
    runs[0] = replace(runs[0], decision=back, versions={**runs[0].versions, "results": 0})
    runs[1] = replace(runs[1], versions={**runs[1].versions, "results": 7})
    found = changes(tables, runs, NOW_MS)
    assert found is not None
    assert [*found.replaced] == [Replaced(6, "roll back to batch 5", None)]
    alone = changes(tables, runs[:1], NOW_MS)
    assert alone is not None
    assert [one.rows for one in alone.replaced] == [None]
