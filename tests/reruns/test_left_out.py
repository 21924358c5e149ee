"""Files that were read before a pattern excluded them: they count as read, and reruns include their events."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.hours import Hours, Row

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

FIRST: list[Row] = [(None, "ann", "10:00", 1)]
SECOND: list[Row] = [(None, "ann", "10:30", 2), (None, "ann", "15:00", 7)]


@pytest.fixture(scope="module")
def after_two(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Hours:
    """A pipeline after a run, and a pattern that excludes the first file."""
    made = Hours(tmp_path_factory.mktemp("after"), spark).read(FIRST, SECOND)
    assert made.results() == {("ann", "10:00"): (2, 3)}
    file = made.definition.file
    text = file.read_text(encoding="utf-8").replace("[watermark]", 'exclude = ["1.*"]\n[watermark]')
    file.write_text(text, encoding="utf-8")
    return made


@pytest.fixture
def hours(after_two: Hours, tmp_path: Path) -> Hours:
    """A copy of that pipeline, for one test."""
    return after_two.copied(tmp_path / "hours")


def test_a_rerun_and_verify_read_it_still(hours: Hours) -> None:
    assert hours.differences() == []
    hours.rerun("10:00", "11:00")
    assert hours.results() == {("ann", "10:00"): (2, 3)}
    hours.write(1, (None, "ann", "10:00", 5))
    assert hours.run() == []  # a run no longer looks at it
    hours.rerun("10:00", "11:00")
    assert hours.results() == {("ann", "10:00"): (2, 7)}


@pytest.mark.long("a copy is another file in tests/source, and what is left out is rerun above, in make test")
def test_a_copy_of_it_is_read(hours: Hours) -> None:
    """Like any other copy, because the old path still exists."""
    shutil.copy(hours.incoming / "1.parquet", hours.incoming / "3.parquet")
    assert [report.figures["rows_read"] for report in hours.run()] == [1]
    hours.rerun("10:00", "11:00")
    assert hours.results() == {("ann", "10:00"): (3, 4)}
    assert hours.differences() == []
