"""Files that come after ``--finish``: the run and the status report their events and the way to include them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.hours import Hours, now
from windowlib.decisions.rollback import rollback
from windowlib.inspection.status import status
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
FIRST, SECOND = [("1", "ann", "10:05", 1)], [("2", "ann", "10:10", 2), ("3", "bob", "11:00", 4)]


def noted(hours: Hours, *, finish: bool = False) -> list[str]:
    notes: list[str] = []
    advance(hours.definition, lambda: hours.spark, clock=now, finish=finish, on_note=notes.append)
    return notes


def explanation(hours: Hours) -> list[str]:
    time = status(hours.definition, now()).time
    assert time is not None
    return time.explanation


def test_late_events_after_finish_are_explained_and_the_named_rollback_counts_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    hours = Hours(tmp_path, spark)
    hours.write(1, *FIRST)
    assert noted(hours, finish=True) == []
    assert not any("dropped as late" in line for line in explanation(hours))
    hours.write(2, *SECOND)
    [note] = noted(hours)
    assert "2 events were dropped as late, because batch 2 was run with --finish" in note
    assert note == f"hours: {explanation(hours)[-1]}"

    undo = re.search(r"windowlib rollback \S+ --to-batch (\d+) --reason", note)
    assert undo is not None
    rollback(hours.definition, int(undo[1]), "ann", "more input is expected", now)
    assert noted(hours) == []
    assert noted(hours, finish=True) == []
    assert hours.results() == {("ann", "10:00"): (2, 3), ("bob", "11:00"): (1, 4)}
    assert not any("dropped as late" in line for line in explanation(hours))
