"""Parquet footers agree with the rows. They are not used if a row may be refused."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.source.arriving import source_file
from windowlib.model.assigners import DynamicSession, Session, Sliding, Tumbling
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS, Admission
from windowlib.source import footers
from windowlib.source.intake import FileFigures, NewestEvent
from windowlib.storage.disk import Disk

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ADMISSION = Admission(
    keys=("user_id",),
    timestamp="ts",
    timestamp_unit=None,
    assigner=Session(gap_ms=30),
    late_up_to_ms=0,
)


def written(folder: Path, name: str, times: pa.Array, keys: list[Any] | None = None, rows_per_group: int = 3) -> None:
    table = pa.table({"ts": times, "user_id": keys or [f"u{i}" for i in range(len(times))]})
    pq.write_table(table, folder / name, row_group_size=rows_per_group)


def micros(*values: int) -> pa.Array:
    return pa.array(values, pa.int64()).cast(pa.timestamp("us", tz="UTC"))


def footer(folder: Path, name: str) -> pq.FileMetaData:
    return footers.footer(Disk(folder), source_file(folder, name))


def look(folder: Path, *names: str, **changes: Any) -> footers.BatchIntake | None:
    return footers.look(
        Disk(folder), [source_file(folder, name) for name in names], dataclasses.replace(ADMISSION, **changes)
    )


@settings(deadline=None)  # how long an example takes depends on the machine
@given(st.lists(st.lists(st.integers(-(10**7), 10**7), min_size=1, max_size=9), min_size=1, max_size=3))
def test_footers_agree_with_rows(tmp_path_factory: pytest.TempPathFactory, files: list[list[int]]) -> None:
    folder = tmp_path_factory.mktemp("files")
    names = [f"{number}.parquet" for number in range(len(files))]
    for name, times in zip(names, files, strict=True):
        written(folder, name, micros(*times))
    seen = look(folder, *names)
    assert seen is not None
    millis = {name: [time // 1000 for time in times] for name, times in zip(names, files, strict=True)}
    every = [time for times in millis.values() for time in times]
    assert (seen.rows, seen.admitted) == (len(every), len(every))
    assert seen.files == {name: FileFigures(len(t), min(t), max(t)) for name, t in millis.items()}
    assert seen.newest is not None
    assert seen.newest.timestamp_ms == max(every)
    assert millis[seen.newest.file][seen.newest.row] == max(every)
    assert seen.newest.file == min(name for name, t in millis.items() if max(t) == max(every))
    assert seen.may_be_late == (min(every) + 30 - 1 <= 0)
    for bucket in seen.buckets:
        assert bucket.max_window_end_ms == bucket.max_timestamp_ms + 30
    assert all(any(b.min_timestamp_ms <= t <= b.max_timestamp_ms for b in seen.buckets) for t in every)


def test_the_least_nanosecond_timestamp(tmp_path: Path) -> None:
    """pandas reads it as no time; the rows have the right value."""
    written(tmp_path, "a.parquet", pa.array([-(2**63), 0], pa.int64()).cast(pa.timestamp("ns")))
    assert look(tmp_path, "a.parquet") is None
    assert footers.span(footer(tmp_path, "a.parquet"), "ts", None) is None


@pytest.mark.parametrize(
    ("times", "unit"),
    [
        (pa.array([1, 2], pa.int64()), "s"),
        (pa.array([1000, 2000], pa.int64()), "ms"),
        (pa.array([1_000_999, 2_000_999], pa.int64()), "us"),
        (pa.array([EPOCH + timedelta(seconds=s) for s in (1, 2)], pa.timestamp("ms")), None),
    ],
)
def test_every_unit(tmp_path: Path, times: pa.Array, unit: str | None) -> None:
    written(tmp_path, "a.parquet", times)
    seen = look(tmp_path, "a.parquet", timestamp_unit=unit)
    assert seen is not None
    assert seen.newest == NewestEvent(2000, "a.parquet", 1)


@pytest.mark.parametrize("assigner", [Tumbling(size_ms=10), Sliding(size_ms=20, slide_ms=10)])
def test_aligned_windows_end_at_their_edge(tmp_path: Path, assigner: Tumbling | Sliding) -> None:
    written(tmp_path, "a.parquet", micros(12_000, 19_999))
    seen = look(tmp_path, "a.parquet", assigner=assigner)
    assert seen is not None
    assert [bucket.max_window_end_ms for bucket in seen.buckets] == [10 + assigner.size_ms]


def test_footers_are_unused_if_a_row_may_be_refused(tmp_path: Path) -> None:
    written(tmp_path, "null_time.parquet", pa.array([1, None], pa.timestamp("us", tz="UTC")))
    written(tmp_path, "null_key.parquet", micros(1, 2), ["ann", None])
    written(tmp_path, "sound.parquet", micros(1_000, 5_000))
    written(tmp_path, "text.parquet", pa.array(["2026-03-02", "2026-03-03"]))
    written(tmp_path, "early.parquet", micros((MIN_TIMESTAMP_MS - 1) * 1000))
    written(tmp_path, "far.parquet", micros((MAX_TIMESTAMP_MS + 1) * 1000))
    pq.write_table(pa.table({"ts": micros(1), "user_id": ["ann"]}), tmp_path / "bare.parquet", write_statistics=False)
    pq.write_table(pa.table({"ts": micros(1)}), tmp_path / "keyless.parquet")  # the key stands in the folder's name
    for name in ("null_time", "null_key", "text", "early", "far", "bare", "keyless"):
        assert look(tmp_path, "sound.parquet", f"{name}.parquet") is None, name
    assert look(tmp_path, "sound.parquet", future_after_ms=5) is not None
    assert look(tmp_path, "sound.parquet", future_after_ms=4) is None
    assert look(tmp_path, "sound.parquet", assigner=DynamicSession("gap_ms")) is None
    assert look(tmp_path, "sound.parquet", assigner=Sliding(size_ms=1, slide_ms=2)) is None
    assert look(tmp_path, "sound.parquet", timestamp_unit="ms") is None


def test_row_groups_without_rows_are_counted(tmp_path: Path) -> None:
    table = pa.table({"ts": micros(1_000, 9_000), "user_id": ["ann", "bob"]})
    with pq.ParquetWriter(tmp_path / "a.parquet", table.schema) as writer:
        for part in (table.slice(0, 0), table.slice(0, 1), table.slice(0, 0), table.slice(1, 1)):
            writer.write_table(part)
    assert pq.read_metadata(tmp_path / "a.parquet").num_row_groups == 4
    seen = look(tmp_path, "a.parquet")
    assert seen is not None
    assert (seen.newest, seen.row_groups) == (NewestEvent(9, "a.parquet", 1), 2)


def test_files_without_rows(tmp_path: Path) -> None:
    written(tmp_path, "empty.parquet", micros())
    seen = look(tmp_path, "empty.parquet")
    assert seen is not None
    assert (seen.rows, seen.newest, seen.buckets) == (0, None, [])


def test_footers_cover_the_whole_admitted_range(tmp_path: Path) -> None:
    written(tmp_path, "ends.parquet", micros(MIN_TIMESTAMP_MS * 1000, MAX_TIMESTAMP_MS * 1000 + 999))
    seen = look(tmp_path, "ends.parquet")
    assert seen is not None
    assert [(b.min_timestamp_ms, b.max_timestamp_ms) for b in seen.buckets] == [(MIN_TIMESTAMP_MS, MAX_TIMESTAMP_MS)]


@pytest.mark.parametrize("wrong", [(MIN_TIMESTAMP_MS - 1) * 1000, (MAX_TIMESTAMP_MS + 1) * 1000])
def test_one_row_group_out_of_bounds_is_enough(tmp_path: Path, wrong: int) -> None:
    written(tmp_path, "a.parquet", micros(1_000, 2_000, wrong), rows_per_group=2)
    assert look(tmp_path, "a.parquet") is None


def test_the_newest_row_is_counted_in_its_file(tmp_path: Path) -> None:
    written(tmp_path, "a.parquet", micros(1_000, 2_000, 3_000, 9_000, 8_000), rows_per_group=2)
    written(tmp_path, "b.parquet", micros(4_000, 9_000), rows_per_group=1)  # as new, but in the later file
    seen = look(tmp_path, "b.parquet", "a.parquet")
    assert seen is not None
    assert (seen.newest, seen.row_groups) == (NewestEvent(9, "a.parquet", 3), 5)


def test_windows_of_processing_time_need_the_rows() -> None:
    assert footers.may_suffice(Session(gap_ms=3), by_event_time=True)
    assert not footers.may_suffice(Session(gap_ms=3), by_event_time=False)


# -- the span of a whole file, and its texts -------------------------------------------------------------------------


@pytest.mark.parametrize(("unit", "per_ms"), [("ms", 1), ("us", 1000)])
def test_the_span_is_that_of_all_row_groups(tmp_path: Path, unit: str, per_ms: int) -> None:
    times = pa.array([at * per_ms for at in (5, 9, 2, 7)], pa.int64())
    written(tmp_path, "a.parquet", times, rows_per_group=2)
    assert footers.span(footer(tmp_path, "a.parquet"), "ts", unit) == (2, 9)


def test_the_span_includes_refused_rows(tmp_path: Path) -> None:
    written(tmp_path, "a.parquet", micros(-1, 5_999), ["ann", None])
    assert footers.span(footer(tmp_path, "a.parquet"), "ts", None) == (-1, 5)


def test_a_file_whose_footer_has_no_time_has_no_span(tmp_path: Path) -> None:
    written(tmp_path, "text.parquet", pa.array(["2026-03-02"]))
    written(tmp_path, "empty.parquet", micros())
    written(tmp_path, "nulls.parquet", pa.array([None, None], pa.timestamp("us", tz="UTC")))
    columns = {"ts": micros(1_000), "other": micros(5_000)}
    pq.write_table(pa.table(columns), tmp_path / "bare.parquet", write_statistics=["other"])
    for name in ("text", "empty", "nulls", "bare"):
        assert footers.span(footer(tmp_path, f"{name}.parquet"), "ts", None) is None, name
    assert footers.span(footer(tmp_path, "bare.parquet"), "other", None) == (5, 5)


def test_a_row_group_outside_the_calendar_is_left_out_of_the_span(tmp_path: Path) -> None:
    year_10000_us = 253_402_300_800 * 1_000_000
    written(tmp_path, "a.parquet", micros(7_000, year_10000_us), rows_per_group=1)
    assert footers.span(footer(tmp_path, "a.parquet"), "ts", None) == (7, 7)


def test_text_bounds_of_a_column(tmp_path: Path) -> None:
    written(tmp_path, "a.parquet", micros(1, 2, 3), ["bob", "ann", None], rows_per_group=2)
    written(tmp_path, "nulls.parquet", pa.array([1, 2]), pa.array([None, None], pa.string()))
    assert footers.texts(footer(tmp_path, "a.parquet"), "user_id") == [("ann", "bob")]
    assert footers.texts(footer(tmp_path, "nulls.parquet"), "user_id") == []
    assert footers.texts(footer(tmp_path, "nulls.parquet"), "ts") is None, "numbers"
    assert footers.texts(footer(tmp_path, "nulls.parquet"), "absent") is None
