"""Files that were renamed after they were read: reruns, late events and `verify` know them by both names."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.hours import Hours
from windowlib.ledger.rerun_request import RerunRefused

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
FIRST = [("1", "ann", "10:05", 1), ("2", "ann", "10:10", 2)]
REPEATS = [("1", "ann", "10:05", 1), ("3", "bob", "15:00", 5)]
LATE = [("4", "ann", "10:20", 100), ("5", "bob", "15:30", 5)]


@pytest.fixture(scope="module")
def moved(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Hours:
    """A pipeline after a run, with two files moved into a folder."""
    made = Hours(tmp_path_factory.mktemp("moved"), spark).read(FIRST, REPEATS, LATE)
    assert (made.refused(), made.late()) == ({("2.parquet", 0): "duplicate"}, {("3.parquet", 0): None})
    made.move(2, 3)
    assert made.run() == []
    return made


@pytest.fixture
def hours(moved: Hours, tmp_path: Path) -> Hours:
    """A copy of that pipeline, for one test."""
    return moved.copied(tmp_path / "hours")


def test_verify_finds_what_was_read_under_another_name(hours: Hours) -> None:
    assert hours.differences() == []


def test_a_rerun_neither_counts_a_duplicate_nor_forgets_a_late_event(hours: Hours) -> None:
    assert hours.rerun("10:00", "11:00").figures["late_readmitted"] == 1
    assert hours.results() == {("ann", "10:00"): (3, 103)}
    assert hours.refused() == {("2.parquet", 0): "duplicate"}
    assert hours.late() == {("3.parquet", 0): 4}
    assert hours.differences() == []
    with pytest.raises(RerunRefused, match="there is no such late event"):
        hours.rerun("10:00", "11:00", late_only=True)


@pytest.mark.long("a rerun of its range, in make test, readmits it under the same name")
def test_its_late_events_can_be_readmitted_alone(hours: Hours) -> None:
    hours.rerun("10:00", "11:00", late_only=True)
    assert hours.results() == {("ann", "10:00"): (3, 103)}
    assert hours.late() == {("3.parquet", 0): 4}
    assert hours.differences() == []


@pytest.mark.long("files are read otherwise, and renamed ones rerun, by themselves in make test")
def test_it_is_changed_under_its_new_name(hours: Hours) -> None:
    """Read differently, the file counts as changed. The tables keep its first name."""
    file = hours.definition.file
    file.write_text(file.read_text() + '[source.dialect]\ntime_zone = "UTC"\n', encoding="utf-8")
    hours.rerun("10:00", "16:00")
    assert hours.results() == {("ann", "10:00"): (3, 103)}
    assert hours.refused() == {("2.parquet", 0): "duplicate"}
    assert hours.late() == {}  # an event of a file that was judged again is an event like others
    assert {row["path"]: row["sha256"] is None for row in hours.rows("source_files")} == {
        f"{number}.parquet": False for number in (1, 2, 3)
    }
    assert hours.differences() == []
