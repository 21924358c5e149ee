"""Identity of a file: its content, and the values of its folders that the definition reads."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.source.arriving import ALWAYS, DAY, Arriving, seconds
from tests.support.clicks import CLICKS, clicks
from windowlib.ledger.rerun_request import RerunRefused
from windowlib.source import contents
from windowlib.source.contents import Contents

BY_STORE = 'key = ["store"]\ntimestamp = "at"\n'
BY_DAY = 'key = ["user"]\ntimestamp = "day"\nschema = { day = "date" }\n'
LISTINGS = pytest.mark.parametrize("listing", ["", 'sorted_by_time = "folders"\n'], ids=["all", "sorted"])
ACCEPTED = replace(ALWAYS, accept_gap=True)
"""A rerun of everything that goes on without files that are gone."""


@pytest.mark.parametrize(
    ("column", "old", "new"),
    [
        ("key", 'key = ["user"]', 'key = ["day"]'),
        ("event time", 'timestamp = "at_ms"', 'timestamp = "day"'),
        ("event id", 'event_id = "id"', 'event_id = "day"'),
        ("aggregate", "sum(value)", "sum(day)"),
        ("filter", '"sum(value)"', "\"sum(value) FILTER (WHERE day = 'x')\""),
        ("gap", 'gap = "10m"', 'gap_column = "day"'),
        ("renamed", 'key = ["user"]', 'rename = { DAY = "user" }\nkey = ["user"]'),
    ],
)
def test_folder_values_in_use_belong_to_the_identity(column: str, old: str, new: str, tmp_path: Path) -> None:
    definitions = {"unread": CLICKS, column: CLICKS.replace(old, new)}
    differ = {}
    for name, text in definitions.items():
        definition = clicks(tmp_path / name.replace(" ", "-"), 0, text)
        inputs = Contents.of(definition.source, definition.uses, definition.store)
        one, other = (inputs.identity(f"day={day}/a.parquet", "0f") for day in (1, 2))
        differ[name] = one != other
    assert differ == {"unread": False, column: True}


def test_two_encodings_of_a_folder_value_are_equal(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0)
    identity = Contents.of(definition.source, definition.uses, definition.store).identity
    assert identity("user=a b/1", "0f") == identity("user=a%20b/1", "0f")
    assert identity("user=/1", "0f") == identity("user=__HIVE_DEFAULT_PARTITION__/1", "0f")
    assert identity("user=7/1", "0f") != identity("user=007/1", "0f")
    assert identity("user=7/1", "0f") != identity("1", "0f")
    assert identity("user=7/1", "0f") != identity("user=7/1", "10")


@pytest.mark.spark
@pytest.mark.embedded
@LISTINGS
def test_a_file_in_another_keys_folder_is_another_input(spark: SparkSession, tmp_path: Path, listing: str) -> None:
    pipeline = Arriving(tmp_path / "p", BY_STORE + listing)
    pipeline.put("store=1/a.parquet", {"at": seconds(1, 2, 3)})
    pipeline.put("store=2/b.parquet", {"at": seconds(4)})
    pipeline.run(spark)
    pipeline.move("store=1/a.parquet", "store=2/a.parquet")
    assert pipeline.results(spark, ["store", "n"]) == [("1", 3), ("2", 4)]
    with pytest.raises(RerunRefused, match=r"the source has a gap: 1 file with 3 rows.*\n  store=1/a\.parquet: 3 rows"):
        pipeline.run(spark, ALWAYS)
    assert not pipeline.verified(spark).differences
    assert "may hold events of store=1/a.parquet (gone" in pipeline.verified(spark).not_compared[0]
    pipeline.run(spark, ACCEPTED)
    assert pipeline.results(spark, ["store", "n"]) == [("2", 4)]


@pytest.mark.spark
@pytest.mark.embedded
@LISTINGS
def test_equal_files_in_folders_of_several_days_are_all_read(spark: SparkSession, tmp_path: Path, listing: str) -> None:
    """For example a sensor that repeats its states every day while old days are deleted."""
    pipeline = Arriving(tmp_path / "p", BY_DAY + listing)
    for day in range(2, 5):
        pipeline.put(f"day=2026-03-0{day}/a.parquet", {"user": ["ann", "bob"], "state": ["ok", "ok"]})
        pipeline.run(spark)
        shutil.rmtree(pipeline.incoming / f"day=2026-03-0{day - 1}", ignore_errors=True)
    days = [DAY + timedelta(days=number) for number in range(3)]
    assert pipeline.results(spark, ["window_start", "user", "n"]) == [
        (day, user, 1) for day in days for user in ("ann", "bob")
    ]
    with pytest.raises(RerunRefused, match=r"gap: 2 files with 4 rows"):
        pipeline.run(spark, ALWAYS)


@pytest.mark.spark
@pytest.mark.embedded
@LISTINGS
def test_an_unused_folder_value_does_not_change_the_input(spark: SparkSession, tmp_path: Path, listing: str) -> None:
    pipeline = Arriving(tmp_path / "p", BY_STORE + listing)
    pipeline.put("hour=07/store=1/a.parquet", {"at": seconds(1, 2, 3)})
    pipeline.run(spark)
    pipeline.move("hour=07/store=1/a.parquet", "hour=08/store=1/b.parquet")
    assert pipeline.run(spark) == []
    pipeline.run(spark, ALWAYS)
    assert pipeline.results(spark, ["store", "n"]) == [("1", 3)]
    verified = pipeline.verified(spark)
    assert (list(verified.differences), list(verified.not_compared)) == ([], [])


@pytest.mark.spark
@pytest.mark.embedded
def test_a_moved_source_keeps_the_identity_of_its_files(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Arriving(tmp_path / "p", BY_STORE)
    for store in (1, 2):
        pipeline.put(f"store={store}/a.parquet", {"at": seconds(1)})
    pipeline.run(spark)
    pipeline.incoming.rename(tmp_path / "p" / "landing")
    pipeline.define(f'{BY_STORE}moved_from = "incoming"\n')
    file = tmp_path / "p" / "p.toml"
    file.write_text(file.read_text().replace('path = "incoming"', 'path = "landing"'))
    pipeline.incoming = tmp_path / "p" / "landing"
    assert pipeline.run(spark) == []
    pipeline.move("store=1/a.parquet", "store=3/a.parquet")
    pipeline.move("store=2/a.parquet", "store=2/b.parquet")
    assert pipeline.results(spark, ["store", "n"]) == [("1", 1), ("2", 1), ("3", 1)]
    assert pipeline.read() == ["store=1/a.parquet", "store=2/a.parquet", "store=3/a.parquet"]


@pytest.mark.spark
@pytest.mark.embedded
def test_a_delta_file_is_identified_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    """Equal rows in another partition are new. A deleted file is a gap, even if another file has the same bytes."""
    pipeline = Arriving(tmp_path / "p", BY_STORE, "delta")
    for store in (1, 2):
        rows = pa.table({"store": pa.array([store, store], pa.int32()), "at": seconds(1, 2)})
        write_deltalake(str(pipeline.incoming), rows, mode="append", partition_by=["store"])
        pipeline.run(spark)
    assert pipeline.results(spark, ["store", "n"]) == [(1, 2), (2, 2)]
    [gone] = (path for path in DeltaTable(str(pipeline.incoming)).file_uris() if "store=1" in path)
    Path(gone).rename(pipeline.incoming / "store=2" / Path(gone).name)
    with pytest.raises(RerunRefused, match=r"gap: 1 file with 2 rows.*\n  store=1/"):
        pipeline.run(spark, ALWAYS)


@pytest.mark.spark
@pytest.mark.embedded
def test_a_file_without_a_checksum_is_another_input_under_another_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example a file above 1 GiB. No rerun matches another file with it, or removes its events."""
    monkeypatch.setattr(contents, "LARGEST_BYTES", 100)
    pipeline = Arriving(tmp_path / "p", BY_STORE)
    pipeline.put("store=1/a.parquet", {"at": seconds(1, 2)})
    pipeline.run(spark)
    pipeline.move("store=1/a.parquet", "store=1/b.parquet")
    with pytest.raises(RerunRefused, match=r"gap: 1 file with 2 rows.*\n  store=1/a\.parquet"):
        pipeline.run(spark, ALWAYS)
    assert pipeline.results(spark, ["store", "n"]) == [("1", 4)]
