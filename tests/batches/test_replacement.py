"""Files of `results` that a batch writes again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks, clock, without
from tests.support.delta_rs import read_by_delta_rs
from tests.support.disks import folder_of
from tests.support.simple_batches import no_spark
from windowlib.batches.pinned import Pinned
from windowlib.batches.replacement import _touched
from windowlib.definition.definition import Definition
from windowlib.definition.instants import utc
from windowlib.delta import commits as delta_commits
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Table, Tables
from windowlib.publication import publish
from windowlib.publication.publish import StagedChanges
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk
from windowlib.storage.store import ObjectInfo

STARTS = pa.schema([("window_start", pa.timestamp("us", "UTC"))])
WINDOW = pa.struct({"window_start_ms": pa.int64(), "window_end_ms": pa.int64()})


def updates(path: Path, *starts_ms: list[int]) -> ObjectInfo:
    """Staged file of rows that replace windows with these starts."""
    replaced = [[{"window_start_ms": start, "window_end_ms": start + 9} for start in row] for row in starts_ms]
    pq.write_table(pa.table({"replaced": pa.array(replaced, pa.list_(WINDOW))}), path)
    return ObjectInfo(path.name, path.stat().st_size, 0)


def results(folder: Path, **files_ms: tuple[int, int]) -> Pinned:
    """Table `results` with only a log: files with the least and greatest start of a window."""
    tables = Tables(Disk(folder))
    made = [
        DataFile(name, 1, 1, {}, *({"window_start": utc(bound)} for bound in bounds), {"window_start": 0})
        for name, bounds in files_ms.items()
    ]
    created = delta_commits.create(tables["results"], Schema.from_arrow(STARTS))
    version = delta_commits.commit(tables["results"], created, add=made)
    return Pinned(tables, {"results": version}, no_spark())


def test_files_are_found_by_the_start_of_a_replaced_window(tmp_path: Path) -> None:
    found = results(tmp_path, before=(-30, -1), begins=(0, 9), ends=(-10, 0), after=(1, 9))
    assert {file.path for file in _touched(found, Disk(tmp_path), [updates(tmp_path / "a", [0])])} == {"begins", "ends"}


def test_a_file_between_two_replaced_windows_is_left_alone(tmp_path: Path) -> None:
    found = results(tmp_path, early=(0, 9), between=(10, 19), late=(20, 29))
    paths = [updates(tmp_path / "a", [5, 25], []), updates(tmp_path / "b", [7])]
    assert {file.path for file in _touched(found, Disk(tmp_path), paths)} == {"early", "late"}


def test_only_files_of_replaced_windows_are_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_by_delta_rs(monkeypatch)
    found = results(tmp_path, **{f"f{number}": (10 * number, 10 * number + 9) for number in range(50)})
    described: list[str] = []
    describe = Table._described

    def counting(table: Table, opened: DeltaTable, listed: pa.Table) -> list[DataFile]:
        described.extend(listed["path"].to_pylist())
        return describe(table, opened, listed)

    monkeypatch.setattr(Table, "_described", counting)
    _touched(found, Disk(tmp_path), [updates(tmp_path / "a", [5, 25])])
    assert sorted(described) == ["f0", "f2"]
    described.clear()
    schema = found.schema("results")
    changes = StagedChanges(add=[DataFile("new", 1, 1)], remove=[DataFile("f0", 1, 1)], schema=schema)
    made, _ = publish.table_change(found.opened, "results", changes, found.versions["results"])
    assert [file.path for file in made.remove] == ["f0"]
    assert described == []


@pytest.mark.spark
@pytest.mark.embedded
def test_a_window_that_ends_at_midnight_lies_in_the_day_before(spark: SparkSession, tmp_path: Path) -> None:
    """A late event that changes the window leaves it there."""
    tumbling = CLICKS.replace('type = "session"\ngap = "10m"', 'type = "tumbling"\nsize = "1h"')
    definition = clicks(tmp_path, 0, without(tumbling, "first"))
    found = []
    for number, minutes in enumerate(([-10, 10, 119], [-10]), 1):
        at_ms = [START_MS + at * MINUTE_MS for at in minutes]
        arrive(tmp_path, number, [{"id": f"{number} {at}", "user": "ann", "at_ms": at, "value": 1} for at in at_ms])
        advance(definition, lambda: spark, clock=clock)
        found.append(clicks_by_day(definition))
    assert found == [[("2026-03-01", 1), ("2026-03-02", 1)], [("2026-03-01", 2), ("2026-03-02", 1)]]


def clicks_by_day(definition: Definition) -> list[tuple[str, int]]:
    """Results in each partition."""
    table = Tables(definition.store)["results"]
    files = table.files(table.version())
    rows = [
        (file.partition["window_day"], pq.ParquetFile(folder_of(table) / file.path).read(["clicks"])) for file in files
    ]
    return sorted((str(day), clicks) for day, part in rows for clicks in part["clicks"].to_pylist())
