"""One row of `results` per key and window: all rows of the days that a batch wrote are compared."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import Schema

from tests.support.delta_rs import read_by_delta_rs
from tests.support.simple_batches import no_spark
from windowlib.batches.pinned import Pinned
from windowlib.batches.result_columns.null_columns import gone_null
from windowlib.batches.result_figures import files_written, repeated, surplus
from windowlib.delta import commits as delta_commits
from windowlib.delta.data_files import DataFile, data_file
from windowlib.delta.tables import Table, Tables
from windowlib.publication.publish import StagedChanges
from windowlib.storage.disk import Disk

HOUR_US = 3_600_000_000
NAMES = ["user", "window_start", "window_end"]
Row = tuple[Any, int]


def file_of(folder: Path, name: str, rows: list[Row], day: int = 1) -> DataFile:
    """File of `results`: users, and the hours in which their windows begin."""
    starts = pa.array([hour * HOUR_US for _, hour in rows], pa.int64())
    times = pa.timestamp("us", tz="UTC")
    columns = {"user": [user for user, _ in rows], "window_start": starts.cast(times)}
    columns["window_end"] = pa.array([start.as_py() + HOUR_US for start in starts], pa.int64()).cast(times)
    path = f"window_day=1970-01-0{day}/{name}.parquet"
    (folder / path).parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / path)
    return data_file(Disk(folder), path, (folder / path).stat().st_size, {"window_day": date(1970, 1, day)})


@pytest.mark.parametrize(
    ("kept", "surplus_rows"),
    [
        ([("ann", 1), ("bob", 2)], 0),
        ([("ann", 2), ("bob", 1)], 0),
        ([("ann", 1)], 1),
        ([("ann", 1), (None, 3), (None, 3)], 3),
    ],
)
def test_a_row_that_an_earlier_file_of_the_day_has_is_surplus(
    tmp_path: Path, kept: list[Row], surplus_rows: int
) -> None:
    added = file_of(tmp_path, "new", [("bob", 0), ("ann", 3), (None, 3), ("ann", 1)][: 4 if surplus_rows else 3])
    earlier = file_of(tmp_path, "old", kept)
    assert list(repeated(Disk(tmp_path), [added], [earlier], NAMES)) == [surplus_rows]


def test_an_aggregate_that_turns_mostly_null_is_found(tmp_path: Path) -> None:
    def of(name: str, totals: list[int | None], change: str = "added") -> DataFile:
        pq.write_table(pa.table({"total": pa.array(totals, pa.int64())}), tmp_path / name)
        return data_file(Disk(tmp_path), name, (tmp_path / name).stat().st_size, {"change": change})

    before, known = [of("0", [1] * 30)], [1] * 10
    made = [of("1", [None] * 15 + known), of("2", [None] * 99, "removed")]
    written = files_written({"result_changes": StagedChanges(add=made)})
    assert gone_null(["total", "other"], written, lambda: before) == ["total"]
    assert gone_null(["total"], [of("3", [None] * 9 + known)], lambda: before) == []  # less than half
    assert gone_null(["total"], [of("4", [None] * 19)], lambda: before) == []  # too few rows
    assert gone_null(["total"], made[:1], lambda: [of("5", [None] * 4 + [1] * 30)]) == []  # no news


def test_the_last_row_of_many_is_compared(tmp_path: Path) -> None:
    rows: list[Row] = [(f"u{number}", 5) for number in range(20_000)]
    added = [file_of(tmp_path, "1", rows), file_of(tmp_path, "2", [("u19999", 5)])]
    assert list(repeated(Disk(tmp_path), added, [], NAMES)) == [1]
    assert list(repeated(Disk(tmp_path), added[:1], [], NAMES)) == [0]


def test_each_day_is_compared_by_itself(tmp_path: Path) -> None:
    twice = [("ann", 30), ("ann", 30)]
    added = [file_of(tmp_path, "1", twice, day=2), file_of(tmp_path, "1", [("ann", 1)])]
    assert sorted(repeated(Disk(tmp_path), added, [file_of(tmp_path, "0", twice, day=3)], NAMES)) == [0, 1]


@pytest.mark.parametrize("key", [[1.5, float("nan"), float("nan")], [{"a": 1}, {"a": 2}, {"a": 2}], [b"x", b"y", b"y"]])
def test_keys_of_any_type_are_compared(key: list[Any]) -> None:
    table = pa.table({"key": key, "at": pa.array([1, 1, 1])})
    assert surplus(lambda: iter([table.slice(0, 2), table.slice(2)])) == 1


def bounded(file: DataFile, starts: tuple[int, int], ends: tuple[int, int] | None) -> DataFile:
    """Same file, with windows that begin and end in these hours."""
    bounds = {"window_start": starts} | ({"window_end": ends} if ends else {})
    low, high = ({name: datetime(1970, 1, 1, one[side], tzinfo=UTC) for name, one in bounds.items()} for side in (0, 1))
    return replace(file, low=low, high=high)


@pytest.mark.parametrize(("ends", "is_read"), [((1, 7), False), ((10, 12), False), ((7, 8), True), (None, True)])
def test_results_that_end_before_all_new_ones_are_not_read(
    tmp_path: Path, ends: tuple[int, int] | None, is_read: bool
) -> None:
    """Results of earlier batches are such results. Sessions may begin before others have ended."""
    added = bounded(file_of(tmp_path, "new", [("ann", 3)]), (2, 5), (8, 9))
    earlier = bounded(file_of(tmp_path, "old", [("ann", 3)]), (0, 6), ends)
    assert list(repeated(Disk(tmp_path), [added], [earlier], NAMES)) == [int(is_read)]


def test_files_of_other_days_are_not_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_by_delta_rs(monkeypatch)
    table = Tables(Disk(tmp_path))["results"]
    days = [date(2030, 1, 1) + timedelta(days=number) for number in range(50)]
    schema = Schema.from_arrow(pa.schema([("user", pa.string()), ("window_day", pa.date32())]))
    created = delta_commits.create(table, schema, ["window_day"])
    files = [DataFile(f"window_day={day}/1.parquet", 9, 1, {"window_day": day}) for day in days]
    version = delta_commits.commit(table, created, add=[replace(one, low={"user": "a"}) for one in files])
    described: list[str] = []
    described_file = Table._with_statistics
    monkeypatch.setattr(
        Table, "_with_statistics", lambda of, one, known: described.append(one.path) or described_file(of, one, known)
    )
    found = Pinned(Tables(Disk(tmp_path)), {"results": version}, no_spark()).files_of_days(
        "results", {days[7], days[9]}
    )
    assert sorted(described) == sorted(one.path for one in found) == [files[7].path, files[9].path]


def test_older_results_are_not_listed_unless_a_column_is_null() -> None:
    def before() -> list[DataFile]:
        raise AssertionError("no column lacks values")

    assert gone_null(["total"], [DataFile("new", 9, 90, nulls={"total": 0})], before) == []
