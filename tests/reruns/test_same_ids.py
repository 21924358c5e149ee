"""Event ids that occur in several files, of which one is repaired or lost: exactly one row counts in each case."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, SCHEMA, START_MS, clicks, clock
from tests.support.hours import SLIDING, Hours
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
END = [("end", "bob", "20:00", 5)]


@pytest.mark.long("ids that a file elsewhere has too stay there in the tests below, and forgotten ones, in make test")
@pytest.mark.parametrize("horizon", ["", 'dedup_horizon = "1h"'])
def test_an_id_of_a_file_elsewhere_stays_a_duplicate(spark: SparkSession, tmp_path: Path, horizon: str) -> None:
    """Another row of its file is repaired, also after the id was forgotten. An id that only the repaired file has now
    is a duplicate, too, if a file that the rerun does not read has it.
    """
    first, second = [("1", "ann", "08:05", 1), ("2", "bob", "08:10", 1)], [("1", "ann", "12:05", 1)]
    hours = Hours(tmp_path, spark, horizon=horizon).read(first, [*second, ("3", "ann", "12:10", 2)], END)
    assert ("1" in hours.seen()) == (not horizon)
    new = [] if horizon else [("2", "bob", "12:15", 1)]
    hours.write(2, *second, ("3", "ann", "12:10", 20), *new)
    hours.rerun("12:00", "13:00")
    assert hours.results() == {("ann", "08:00"): (1, 1), ("bob", "08:00"): (1, 1), ("ann", "12:00"): (1, 20)}
    assert hours.refused() == {("2.parquet", row): "duplicate" for row in (0, *((2,) if new else ()))}
    assert hours.differences() == []


def test_the_row_that_remains_of_an_id_counts(spark: SparkSession, tmp_path: Path) -> None:
    """One rerun, and another case for each user: an id that the repaired file no longer has, or has now.

    - ann: id 1 is in another file, too, and counts there now.
    - bob: c2 still counts where it did, though the repaired file has it, too.
    - cid: x1 lies outside of the range elsewhere. Its windows are not recomputed, so it stays refused.
    - dan: no file has n1 any more, so it may come again.
    """
    kept = [
        ("2", "ann", "10:06", 10),
        ("c1", "bob", "10:05", 1),
        ("x2", "cid", "10:06", 10),
        ("n2", "dan", "10:06", 10),
    ]
    gone = [("1", "ann", "10:05", 1), ("x1", "cid", "10:05", 1), ("n1", "dan", "10:05", 1)]
    first = [("3", "ann", "10:10", 100), ("1", "ann", "10:50", 1), ("c2", "bob", "10:10", 2)]
    hours = Hours(tmp_path, spark).read(
        [*kept, *gone], [*first, ("x3", "cid", "10:10", 100), ("x1", "cid", "11:50", 1)], END
    )
    assert hours.refused() == {("2.parquet", 1): "duplicate", ("2.parquet", 4): "duplicate"}
    hours.write(1, *kept, ("c2", "bob", "10:15", 200))
    wanted = {
        ("ann", "10:00"): (3, 111),
        ("bob", "10:00"): (2, 3),
        ("cid", "10:00"): (2, 110),
        ("dan", "10:00"): (1, 10),
    }
    for _ in range(2):
        hours.rerun("10:00", "11:00")
        assert hours.results() == wanted
        assert hours.refused() == {("1.parquet", 4): "duplicate", ("2.parquet", 4): "duplicate"}
    counted = {"2": "10:06", "3": "10:10", "1": "10:50", "c1": "10:05", "c2": "10:10", "x2": "10:06", "x3": "10:10"}
    assert hours.seen() == {**counted, "n2": "10:06", "end": "20:00"}
    assert hours.span(2) == ("10:10", "10:50")
    assert hours.differences() == []
    hours.write(4, ("n1", "dan", "20:10", 1), ("n4", "dan", "22:00", 1))
    hours.run()
    assert ("4.parquet", 0) not in hours.refused()
    assert hours.results()["dan", "20:00"] == (1, 1)


@pytest.mark.long("of a file that was repaired, in make test, ids are left to others by the same rule")
@pytest.mark.long("of a file that was repaired, in make test, ids are left to others by the same rule")
def test_the_row_that_remains_of_an_id_counts_once_a_file_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    hours = Hours(tmp_path, spark).read(
        [("1", "ann", "10:05", 1), ("2", "ann", "10:06", 10)],
        [("3", "ann", "10:10", 100), ("1", "ann", "10:50", 1)],
        END,
    )
    (hours.incoming / "1.parquet").unlink()
    hours.rerun("10:00", "11:00", accept_gap=True)
    assert hours.results() == {("ann", "10:00"): (2, 101)}
    assert hours.refused() == {}
    assert hours.seen() == {"3": "10:10", "1": "10:50", "end": "20:00"}
    assert hours.span(2) == ("10:10", "10:50")
    assert hours.differences() == []


@pytest.mark.long("next to other rows of its file, in make test, one counts and is in the file's span")
@pytest.mark.long("next to other rows of its file, in make test, one counts and is in the file's span")
def test_the_row_that_remains_is_the_first_of_its_file_that_counts(spark: SparkSession, tmp_path: Path) -> None:
    hours = Hours(tmp_path, spark).read([("1", "ann", "10:05", 1)], [("1", "ann", "10:50", 1)], END)
    assert hours.span(2) is None
    hours.write(1, ("2", "ann", "10:06", 10))
    hours.rerun("10:00", "11:00")
    assert hours.results() == {("ann", "10:00"): (2, 11)}
    assert hours.span(2) == ("10:50", "10:50")


def test_an_event_moves_by_repairs(spark: SparkSession, tmp_path: Path) -> None:
    """It is not a duplicate of itself at its earlier place."""
    hours = Hours(tmp_path, spark).read([("1", "ann", "10:05", 1)], END)
    hours.write(1, ("1", "ann", "12:05", 1))
    hours.rerun("10:00", "13:00")
    hours.write(1, ("1", "ann", "12:05", 2))
    hours.rerun("12:00", "13:00")
    assert hours.results() == {("ann", "12:00"): (1, 2)}
    assert hours.refused() == {}
    hours.write(3, ("1", "ann", "21:00", 7), ("4", "ann", "22:00", 7))
    hours.run()
    assert hours.refused() == {("3.parquet", 0): "duplicate"}


@pytest.mark.long("a row that remains counts, and late events are readmitted, by themselves in make test")
@pytest.mark.long("a row that remains counts, and late events are readmitted, by themselves in make test")
def test_the_row_that_remains_was_late_as_well(spark: SparkSession, tmp_path: Path) -> None:
    """The windows overlap. The row came long after all of them."""
    hours = Hours(tmp_path, spark, SLIDING).read(
        [("1", "ann", "10:05", 1), ("2", "ann", "10:06", 10)], END, [("1", "ann", "10:50", 1)]
    )
    hours.write(1, ("2", "ann", "10:06", 10))
    hours.rerun("10:00", "11:00")
    assert hours.results()["ann", "10:00"] == (2, 11)
    assert hours.refused() == {}
    assert hours.differences() == []


def test_ids_that_are_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    """One row counts of an id that the repaired file repeats. A row that repeats an event elsewhere stays refused."""
    elsewhere, twice = ("1", "ann", "12:04", 1), [("2", "ann", "12:05", 1), ("2", "ann", "12:05", 1)]
    hours = Hours(tmp_path, spark, horizon='dedup_horizon = "1h"').read(
        [("1", "ann", "08:05", 1)], [elsewhere, *twice, ("3", "ann", "12:10", 2)], twice, END
    )
    refused = dict.fromkeys([("2.parquet", 0), ("2.parquet", 2), ("3.parquet", 0), ("3.parquet", 1)], "duplicate")
    assert (hours.refused(), hours.seen()) == (refused, {"end": "20:00"})
    hours.write(2, elsewhere, *twice, ("3", "ann", "12:10", 20))
    hours.rerun("12:00", "13:00")
    assert hours.results() == {("ann", "08:00"): (1, 1), ("ann", "12:00"): (2, 21)}
    assert hours.refused() == refused
    assert hours.differences() == []


@pytest.mark.long("an UPDATE, drawn by chance in make test, removes events and adds them again")
@pytest.mark.long("an UPDATE, drawn by chance in make test, removes events and adds them again")
def test_an_event_that_was_deleted_from_a_table_may_come_again(spark: SparkSession, tmp_path: Path) -> None:
    """A version removes it. The other rows of its file stay duplicates."""
    definition = clicks(tmp_path, 0, CLICKS.replace('format = "parquet"', 'format = "delta"'))
    rows = [{"id": one, "user": "ann", "at_ms": START_MS, "value": 1} for one in ("a", "b")]
    later = {"id": "c", "user": "ann", "at_ms": START_MS + 5 * MINUTE_MS, "value": 1}
    for file in (rows, [later]):
        write_deltalake(tmp_path / "incoming", pa.Table.from_pylist(file, schema=SCHEMA), mode="append")
    advance(definition, lambda: spark, clock=clock)
    DeltaTable(tmp_path / "incoming").delete("id = 'a'")
    whole = Rerun(START_MS - MINUTE_MS, START_MS + MINUTE_MS, "deleted", "ann")
    [report] = advance(definition, lambda: spark, clock=clock, rerun=whole)
    files = {name: report.figures[f"files_{name}"] for name in ("read", "changed", "missing", "replaced")}
    assert files == {"read": 2, "changed": 1, "missing": 0, "replaced": 1}
    write_deltalake(tmp_path / "incoming", pa.Table.from_pylist(rows, schema=SCHEMA), mode="append")
    advance(definition, lambda: spark, clock=clock)
    refused = read_table(definition, "quarantine").to_pylist()
    assert [(row["reason"], '"b"' in row["raw"]) for row in refused] == [("duplicate", True)]
