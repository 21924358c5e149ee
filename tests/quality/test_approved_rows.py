"""Results suites judge rows that a batch adds or changes; rows published earlier stay approved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.hours import TUMBLING, Hours, Row, now
from windowlib.decisions.verdicts import approve
from windowlib.ledger.ledger import Rejected
from windowlib.quality.validations import stored_outcomes

pytestmark = [pytest.mark.spark, pytest.mark.both]

LATE = TUMBLING + '\nallowed_lateness = "2d"'
SESSION = 'type = "session"\ngap = "30m"\nallowed_lateness = "2d"'
AT_MOST_TEN = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "total", "max_value": 10}}
TWO_ROWS = {"type": "expect_table_row_count_to_equal", "kwargs": {"value": 2}}
LARGE: list[Row] = [(None, "ann", f"0{hour}:10", 99) for hour in range(4)]
SMALL: list[Row] = [(None, "bob", "00:20", 1), (None, "bob", "06:00", 1)]  # the last one fires all that is before


def judged_hours(folder: Path, spark: SparkSession, *expectations: dict[str, Any], window: str = LATE) -> Hours:
    """A pipeline whose results these expectations judge."""
    hours = Hours(folder, spark, window)
    (folder / "rows.json").write_text(json.dumps({"expectations": expectations}), encoding="utf-8")
    with (folder / "hours.toml").open("a", encoding="utf-8") as file:
        file.write('[checks]\nresults_suite = "rows.json"\n')
    return hours


def approved(hours: Hours, batch_id: int) -> Hours:
    """The pipeline once its newest batch was refused and approved."""
    with pytest.raises(Rejected, match=f"batch {batch_id} .*waits"):
        hours.run()
    assert approve(hours.definition, "ann", "seen", now) == batch_id
    hours.run()
    return hours


def large(hours: Hours) -> list[tuple[str, str]]:
    """The windows of `results` that the suite refuses."""
    return sorted(window for window, (_, total) in hours.results().items() if total > 10)


def test_rows_that_were_approved_are_not_judged_again(spark: SparkSession, tmp_path: Path) -> None:
    hours = judged_hours(tmp_path / "pipeline", spark, AT_MOST_TEN)
    hours.write(1, *LARGE, *SMALL)
    approved(hours, 1)
    hours.write(2, (None, "bob", "00:30", 2))
    assert [report.batch_id for report in hours.run()] == [2]
    assert large(hours) == [("ann", f"0{hour}:00") for hour in range(4)]
    assert hours.results()["bob", "00:00"] == (2, 3)


def test_an_approved_row_that_changes_is_judged_again_and_alone(spark: SparkSession, tmp_path: Path) -> None:
    hours = judged_hours(tmp_path / "pipeline", spark, AT_MOST_TEN)
    hours.write(1, *LARGE, *SMALL)
    approved(hours, 1)
    hours.write(2, (None, "ann", "02:30", 1))
    with pytest.raises(Rejected, match="1 unexpected among 1, such as 100"):
        hours.run()


def test_a_rerun_judges_the_rows_that_it_changes(spark: SparkSession, tmp_path: Path) -> None:
    hours = judged_hours(tmp_path / "pipeline", spark, AT_MOST_TEN)
    hours.write(1, *LARGE, *SMALL)
    approved(hours, 1)
    hours.write(1, *LARGE, (None, "bob", "00:20", 4), SMALL[1])
    report = hours.rerun("00:00", "08:00")
    assert report.figures["windows_changed"] == 1
    assert large(hours) == [("ann", f"0{hour}:00") for hour in range(4)]
    hours.write(1, *LARGE, (None, "bob", "00:20", 11), SMALL[1])
    with pytest.raises(Rejected, match="1 unexpected among 1, such as 11"):
        hours.rerun("00:00", "08:00")


def test_a_batch_that_only_removes_results_has_none_to_judge(spark: SparkSession, tmp_path: Path) -> None:
    hours = judged_hours(tmp_path / "pipeline", spark, AT_MOST_TEN)
    hours.write(1, *LARGE, *SMALL)
    approved(hours, 1)
    hours.write(1, *LARGE, SMALL[1])
    assert hours.rerun("00:00", "08:00").figures["windows_removed"] == 1
    assert [
        one["suite_name"] for one in stored_outcomes(hours.definition.store)[0].suites if "own" in one["suite_name"]
    ] == []


def test_merged_sessions_are_judged_as_one(spark: SparkSession, tmp_path: Path) -> None:
    hours = judged_hours(tmp_path / "pipeline", spark, AT_MOST_TEN, window=SESSION)
    hours.write(1, (None, "ann", "01:00", 99), (None, "bob", "02:00", 4), (None, "bob", "02:40", 4), SMALL[1])
    approved(hours, 1)
    hours.write(2, (None, "bob", "02:20", 3))
    with pytest.raises(Rejected, match="1 unexpected among 1, such as 11"):
        hours.run()


def test_a_suite_counts_the_rows_that_it_judges(spark: SparkSession, tmp_path: Path) -> None:
    hours = judged_hours(tmp_path / "pipeline", spark, TWO_ROWS)
    hours.write(1, SMALL[0], (None, "bob", "01:00", 1), (None, "bob", "02:00", 1))
    hours.run()
    hours.write(2, (None, "bob", "00:30", 2), (None, "bob", "01:30", 2))
    hours.run()
    hours.write(1, (None, "bob", "00:20", 4), (None, "bob", "01:00", 4), (None, "bob", "02:00", 1))
    assert hours.rerun("00:00", "03:00").figures["windows_changed"] == 2
