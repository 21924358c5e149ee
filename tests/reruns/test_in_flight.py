"""A rerun leaves windows in flight, late events and result files that it does not recompute."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks, clock, without
from tests.support.disks import folder_of
from windowlib.batches.inputs import Inputs
from windowlib.definition.definition import Definition, load_definition
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import read_table
from windowlib.reruns import closure
from windowlib.reruns import events as of_rerun
from windowlib.reruns.dry_run import dry_run
from windowlib.reruns.events import RerunEvents
from windowlib.reruns.source import KnownFile
from windowlib.reruns.totals import Total
from windowlib.runs.advance import advance
from windowlib.source.rows import SourceRows
from windowlib.storage.disk import Disk

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.embedded]
HOUR_MS = 60 * MINUTE_MS
DEFINITION = CLICKS.replace('event_id = "id"\n', "").replace('out_of_orderness = "5m"', 'out_of_orderness = "0s"')
FIRST_HOUR = Rerun(START_MS, START_MS + HOUR_MS, "a test", "ann")
Event = tuple[str, float, int]  # user, hours after midnight, value


def written(folder: Path, number: int, events: Sequence[Event], *, again: bool = False) -> None:
    path = arrive(
        folder,
        number,
        [{"user": user, "at_ms": START_MS + round(hours * HOUR_MS), "value": value} for user, hours, value in events],
    )
    if again:
        os.utime(path, ns=(1_000 + number, 1_000 + number))


def done(spark: SparkSession, folder: Path, lateness: str, files: Sequence[Sequence[Event]], partition: str) -> Path:
    """The definition of a pipeline that has read these files."""
    text = DEFINITION.replace('allowed_lateness = "2h"', f'allowed_lateness = "{lateness}"')
    definition = clicks(folder, 0, f'{text}[storage]\nstate_partition = "{partition}"\n')
    for number, events in enumerate(files, 1):
        written(folder, number, events)
    advance(definition, lambda: spark, clock=clock)
    return definition.file


def loaded(file: Path) -> Definition:
    return load_definition(file).model_copy(update={"store": Disk(file.parent / "warehouse" / "clicks")})


def in_flight(definition: Definition) -> dict[str, tuple[float, int]]:
    """Windows in flight by user: first hour and events."""
    rows = read_table(definition, "open_windows").to_pylist()
    return {row["user"]: ((row["window_start_ms"] - START_MS) / HOUR_MS, row["elements"]) for row in rows}


def test_windows_next_to_those_that_are_recomputed_stay_in_flight(spark: SparkSession, tmp_path: Path) -> None:
    """In one file of the state."""
    file = done(spark, tmp_path, "1d", [[("a", 0, 1), ("b", 3, 2), ("b", 3.1, 3)], [("c", 6, 4)]], partition="1d")
    written(tmp_path, 1, [("a", 0, 10), ("a", 0.1, 20), ("b", 3, 2), ("b", 3.1, 3)], again=True)
    everything = Rerun(START_MS, START_MS + 4 * HOUR_MS, "a test", "ann")
    for rerun, of_a in ((everything, 2), (FIRST_HOUR, 2)):
        advance(loaded(file), lambda: spark, clock=clock, rerun=rerun)
        assert in_flight(loaded(file)) == {"a": (0, of_a), "b": (3, 2), "c": (6, 1)}
    written(tmp_path, 3, [("b", 3.2, 5)])
    advance(loaded(file), lambda: spark, clock=clock)
    [found] = [row for row in read_table(loaded(file), "results").to_pylist() if row["user"] == "b"]
    assert (found["clicks"], found["total"]) == (3, 10)


def test_a_rerun_creates_the_table_of_windows_in_flight(spark: SparkSession, tmp_path: Path) -> None:
    """No earlier batch had an event, so there is no table of windows in flight yet."""
    file = done(spark, tmp_path, "1d", [], partition="1d")
    arrive(tmp_path, 1, [{"user": None, "at_ms": START_MS, "value": 1}])
    advance(loaded(file), lambda: spark, clock=clock)
    written(tmp_path, 1, [("a", 0, 10), ("b", 0.1, 20)], again=True)
    advance(loaded(file), lambda: spark, clock=clock, rerun=FIRST_HOUR)
    assert in_flight(loaded(file)) == {"a": (0, 1), "b": (0.1, 1)}
    written(tmp_path, 2, [("b", 0.2, 5), ("c", 6, 4)])
    advance(loaded(file), lambda: spark, clock=clock)
    found = {row["user"]: row["total"] for row in read_table(loaded(file), "results").to_pylist()}
    assert found == {"a": 10, "b": 25}


def test_windows_late_by_a_new_lateness_are_removed_everywhere(spark: SparkSession, tmp_path: Path) -> None:
    """The session of b ends at 03:16, that of d 1 ms later. The watermark is 1 ms before 06:00. Their partition is not
    recomputed.
    """
    later = 3.1 + 1 / HOUR_MS
    events = [("a", 0, 1), ("b", 3, 2), ("b", 3.1, 3), ("d", 3, 2), ("d", later, 3)]
    file = done(spark, tmp_path, "1d", [events, [("c", 6, 4)]], partition="1h")
    assert in_flight(loaded(file)).keys() == {"a", "b", "c", "d"}
    file.write_text(file.read_text().replace('allowed_lateness = "1d"', 'allowed_lateness = "2h 44m"'))
    advance(loaded(file), lambda: spark, clock=clock, rerun=FIRST_HOUR)
    assert in_flight(loaded(file)) == {"c": (6, 1), "d": (3, 2)}


def test_files_of_days_that_do_not_change_are_not_written_again(spark: SparkSession, tmp_path: Path) -> None:
    file = done(spark, tmp_path, "3d", [[("a", 0, 1), ("b", 1, 2)], [("a", 30, 3)], [("c", 60, 4)]], partition="1d")
    results = folder_of(loaded(file)) / "results"

    def files_of_days() -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for path in DeltaTable(str(results)).file_uris():
            found.setdefault(Path(path).parent.name, set()).add(Path(path).name)
        return found

    before = files_of_days()
    written(tmp_path, 1, [("a", 0, 10), ("b", 1, 2)], again=True)
    everything = Rerun(START_MS, START_MS + 61 * HOUR_MS, "a test", "ann")
    advance(loaded(file), lambda: spark, clock=clock, rerun=everything)
    after = files_of_days()
    [changed] = [day for day in before if before[day] != after[day]]
    assert changed == "window_day=2026-03-02"
    totals = {(row["user"], row["total"]) for row in read_table(loaded(file), "results").to_pylist()}
    assert totals >= {("a", 10), ("b", 2), ("a", 3)}


@pytest.mark.long("in test_rerun_cases, in make test, late events go that a changed file no longer has")
@pytest.mark.long("in test_rerun_cases, in make test, late events go that a changed file no longer has")
def test_late_events_of_a_file_that_was_rewritten_are_gone_and_those_of_others_stay(
    spark: SparkSession, tmp_path: Path
) -> None:
    """They lie after the only window that is recomputed, but in the range."""
    files: list[list[Event]] = [[("c", 10, 1)], [("a", 9, 2)], [("b", 9.1, 3)]]
    file = done(spark, tmp_path, "0s", files, partition="1d")
    late = [(row["user"], row["source_file"]) for row in read_table(loaded(file), "late_events").to_pylist()]
    assert sorted(late) == [("a", "2.parquet"), ("b", "3.parquet")]
    before = {row["path"]: row for row in read_table(loaded(file), "source_files").to_pylist()}
    written(tmp_path, 2, [("a", 2, 5)], again=True)
    until_nine = Rerun(START_MS, START_MS + 9 * HOUR_MS + MINUTE_MS, "a test", "ann")
    advance(loaded(file), lambda: spark, clock=clock, rerun=until_nine)
    assert [row["user"] for row in read_table(loaded(file), "late_events").to_pylist()] == ["b"]
    results = {(row["user"], row["total"]) for row in read_table(loaded(file), "results").to_pylist()}
    assert ("a", 5) in results
    known = {row["path"]: row for row in read_table(loaded(file), "source_files").to_pylist()}
    changed = known.pop("2.parquet")
    assert known == {path: row for path, row in before.items() if path in known}
    assert changed["sha256"] == hashlib.sha256((tmp_path / "incoming" / "2.parquet").read_bytes()).hexdigest()


def test_a_chain_of_late_events_is_followed_to_both_ends_in_a_few_steps(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step reads twice as far, because only the events themselves show how far the chain extends."""
    definition = clicks(tmp_path, 0, without(DEFINITION, "max_files_per_run", "allowed_lateness", "first"))
    written(tmp_path, 1, [("z", 48, 1)])
    advance(definition, lambda: spark, clock=clock)
    for number in range(24):
        written(tmp_path, 2 + number, [("a", (30 * number + minute) / 60, 1) for minute in (0, 9, 18, 27)])
    advance(definition, lambda: spark, clock=clock)
    assert read_table(definition, "late_events").num_rows == 24 * 4
    reads, read_events = list[int](), closure.read_events

    def counted(inputs: Inputs, files: Sequence[KnownFile], *rest: Any) -> RerunEvents:
        reads.append(len(files))
        return read_events(inputs, files, *rest)

    monkeypatch.setattr(closure, "read_events", counted)
    in_the_middle = Rerun(START_MS + 6 * HOUR_MS, START_MS + 6 * HOUR_MS + MINUTE_MS, "a test", "ann")
    advance(definition, lambda: spark, clock=clock, rerun=in_the_middle)
    [found] = read_table(definition, "results").to_pylist()
    assert (found["user"], found["clicks"]) == ("a", 24 * 4)
    assert reads == sorted(reads)
    assert len(reads) <= 6


def test_unchanged_files_are_read_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tumbling = DEFINITION.replace('type = "session"\ngap = "10m"', 'type = "tumbling"\nsize = "1h"')
    definition = clicks(tmp_path, 0, tumbling)
    written(tmp_path, 1, [("a", 0, 1), ("b", 0.5, 2)])
    written(tmp_path, 2, [("a", 30, 1)])
    advance(definition, lambda: spark, clock=clock)
    reads, rows_of = list[str](), of_rerun.rows_of

    def counted(inputs: Inputs, files: Sequence[KnownFile], types: Any) -> SourceRows:
        reads.extend(file.path for file in files)
        return rows_of(inputs, files, types)

    monkeypatch.setattr(of_rerun, "rows_of", counted)
    [report] = advance(definition, lambda: spark, clock=clock, rerun=FIRST_HOUR)
    assert reads == ["1.parquet"]
    assert (report.figures["files_read"], report.figures["windows_changed"]) == (1, 0)


def test_sums_of_windows_that_are_only_added_or_only_removed(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, without(DEFINITION, "allowed_lateness", "first"))
    for number, event in enumerate([("z", 48, 1), ("a", 0, 7), ("b", 30, 1)], 1):
        written(tmp_path, number, [event])
    advance(definition, lambda: spark, clock=clock)
    added = dry_run(definition, FIRST_HOUR, clock).preview(spark).summary
    assert (added.windows["added"], added.results) == (1, Total(0, 1, 1, None))
    assert added.totals == {"clicks": Total(0, 1, 1, None), "total": Total(0, 7, 7, None)}
    advance(definition, lambda: spark, clock=clock, rerun=FIRST_HOUR)
    (tmp_path / "incoming" / "2.parquet").unlink()
    removed = dry_run(definition, replace(FIRST_HOUR, accept_gap=True), clock).preview(spark).summary
    assert (removed.windows["removed"], removed.results) == (1, Total(1, 0, -1, -100.0))
    assert removed.totals == {"clicks": Total(1, 0, -1, -100.0), "total": Total(7, 0, -7, -100.0)}


@pytest.mark.long("runs ask the same whether a file has its old content, in make test")
@pytest.mark.long("runs ask the same whether a file has its old content, in make test")
def test_a_file_that_was_only_touched_is_not_a_changed_one(spark: SparkSession, tmp_path: Path) -> None:
    file = done(spark, tmp_path, "1d", [[("a", 0, 1)], [("c", 6, 4)]], partition="1d")
    written(tmp_path, 1, [("a", 0, 1)], again=True)
    [report] = advance(loaded(file), lambda: spark, clock=clock, rerun=FIRST_HOUR)
    assert (report.figures["files_read"], report.figures["files_changed"]) == (1, 0)
    written(tmp_path, 1, [("a", 0, 2)])
    os.utime(tmp_path / "incoming" / "1.parquet", ns=(2_000, 2_000))
    [report] = advance(loaded(file), lambda: spark, clock=clock, rerun=FIRST_HOUR)
    assert (report.figures["files_read"], report.figures["files_changed"]) == (1, 1)
