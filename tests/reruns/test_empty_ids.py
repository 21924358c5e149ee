"""Empty event ids: such a row has no id. No batch, rerun, readmission or erasure treats it as a duplicate."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.hours import Hours, at, now
from windowlib.contract.intake_tables import SEEN_IDS
from windowlib.definition.instants import time_of
from windowlib.erasure.forget import ForgetRequest, forget
from windowlib.inspection.lineage.explain_window import explain_window

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
FIRST = [("", "ann", "10:05", 1), ("", "bob", "10:05", 2), (None, "ann", "10:06", 4)]
BLANK = [(" ", "bob", "10:10", 8), (" ", "ann", "10:11", 16)]
SECOND = [("", "ann", "10:05", 1), ("", "bob", "11:00", 32)]
END = [("end", "cid", "20:00", 0)]
RESULTS = {("ann", "10:00"): (3, 6), ("bob", "10:00"): (2, 10), ("bob", "11:00"): (1, 32)}


def test_a_row_with_an_empty_id_is_never_a_duplicate(spark: SparkSession, tmp_path: Path) -> None:
    """Neither in one file nor across batches. A blank id is an id."""
    hours = Hours(tmp_path, spark).read([*FIRST, *BLANK], SECOND, END)
    assert hours.results() == RESULTS
    assert hours.refused() == {("1.parquet", 4): "duplicate"}
    assert hours.seen() == {" ": "10:10", "end": "20:00"}
    assert hours.differences() == []
    [window] = explain_window(hours.definition, ["bob"], time_of(at("11:30"))).windows
    assert (len(window.events), window.excluded) == (1, [])


def test_a_rerun_counts_rows_with_an_empty_id_again(spark: SparkSession, tmp_path: Path) -> None:
    """Also rows of a repaired file, which are judged again, next to those of another file."""
    hours = Hours(tmp_path, spark).read([*FIRST, *BLANK], SECOND, END)
    hours.rerun("10:00", "12:00")
    assert hours.results() == RESULTS
    hours.write(1, *FIRST, *BLANK, ("", "ann", "10:05", 64))
    hours.rerun("10:00", "12:00")
    assert hours.results() == {**RESULTS, ("ann", "10:00"): (4, 70)}
    assert hours.refused() == {("1.parquet", 4): "duplicate"}
    assert hours.seen() == {" ": "10:10", "end": "20:00"}
    assert hours.differences() == []


def test_late_rows_with_an_empty_id_are_all_readmitted(spark: SparkSession, tmp_path: Path) -> None:
    """Also those with the time of a counted row: a repeated id and time would exclude them."""
    hours = Hours(tmp_path, spark).read(FIRST, END, SECOND, [("", "ann", "10:05", 128)])
    assert [row["event_id"] for row in hours.rows("late_events")] == [None] * 3
    hours.rerun("10:00", "12:00", late_only=True)
    assert set(hours.late().values()) == {5}
    assert hours.results() == {("ann", "10:00"): (4, 134), ("bob", "10:00"): (1, 2), ("bob", "11:00"): (1, 32)}
    assert hours.differences() == []


def test_forget_keeps_the_ids_of_other_keys_where_rows_have_an_empty_id(spark: SparkSession, tmp_path: Path) -> None:
    hours = Hours(tmp_path, spark).read(FIRST, SECOND, END)
    done = forget(hours.definition, lambda: spark, ForgetRequest(key=["ann"], who="ann", reason="request 7", clock=now))
    assert SEEN_IDS.name not in done.erasure.removed
    assert hours.seen() == {"end": "20:00"}
    assert {user for user, _ in hours.results()} == {"bob"}
