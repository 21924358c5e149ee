"""Maintenance: compaction and deletion, unnoticed by readers."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.clicks import arrive as arrive_click
from tests.support.clicks import clicks, events
from tests.support.clicks import clock as plan_time
from tests.support.disks import folder_of
from tests.support.killed import Killed, dead_owner, stopped
from tests.support.log_files import file_of
from tests.support.simple_batches import Reader, arrive, before_each_step, compute_simply, last_run, no_spark, pipeline
from tests.support.strategies import ALL
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.rollback import rollback
from windowlib.decisions.verdicts import accept_clock, approve
from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant
from windowlib.delta.tables import Table
from windowlib.ledger import lease
from windowlib.ledger import retained_batches as kept
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import Rejected, Superseded
from windowlib.ledger.maintenances import kept_from
from windowlib.ledger.retained_batches import CutExpired
from windowlib.maintenance import compaction
from windowlib.maintenance.maintain import forecast, maintain
from windowlib.publication.readers import read_table
from windowlib.quality.check import CheckResult
from windowlib.runs import attempt
from windowlib.runs.advance import advance
from windowlib.storage import disk as storage_disk

HOUR_MS = 3_600_000
WHO = "ann"
EACH = 6 if ALL else 27
"""Step at which maintenance is killed, as after each all tables are read again. The schedules kill it at any step."""


class Clock:
    """A clock that a test sets on."""

    now_ms = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now_ms

    def later(self, hours: float) -> None:
        self.now_ms += int(hours * HOUR_MS)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of a pipeline without an engine and with early compaction. One cut is kept."""
    compute_simply(monkeypatch)
    monkeypatch.setattr(storage_disk, "flush", Path.stat)  # no power fails here
    for what in ("CLOSED", "OPEN", "OPEN_DAY"):
        monkeypatch.setattr(compaction, what, 4)
    pipeline(tmp_path)
    return tmp_path


def runs(folder: Path, clock: Clock, numbers: range) -> Definition:
    """Runs one batch per file, an hour apart."""
    definition = pipeline(folder)
    for number in numbers:
        arrive(folder, number)
        clock.later(1)
        advance(definition, no_spark, clock=clock)
    return definition


def rows(definition: Definition, versions: dict[str, int]) -> dict[str, list[str]]:
    """Rows of the tables at these versions."""
    tables, found = ledger_of(definition).tables, {}
    for name in ("results", "open_windows", "source_files"):
        table = tables[name]
        files = table.files(versions.get(name))
        read = (compaction.data_files.read_parquet(table.store, file).to_pylist() for file in files)
        found[name] = sorted(str(row) for rows in read for row in rows)
    return found


def cuts(definition: Definition) -> dict[int, dict[str, list[str]]]:
    """Rows of every kept cut, by batch."""
    commits = commits_of(ledger_of(definition).tables, kept_from(definition.store))
    return {one.batch_id: rows(definition, dict(one.versions)) for one in commits}


def data_files_on_disk(definition: Definition) -> set[str]:
    """The data files of all tables that batches publish."""
    root = folder_of(definition)
    found = (path for name in COMMIT_ORDER for path in (root / name).rglob("*.parquet"))
    return {str(path.relative_to(root)) for path in found if "_delta_log" not in path.parts}


def needed(definition: Definition) -> set[str]:
    """Data files that the kept cuts need."""
    ledger = ledger_of(definition)
    return {
        f"{name}/{file.path}"
        for one in commits_of(ledger.tables, kept_from(definition.store))
        for name in one.versions
        for file in ledger.tables[name].files(one.versions[name])
    }


def test_compaction_changes_no_cut(folder: Path, clock: Clock) -> None:
    definition = runs(folder, clock, range(1, 9))
    before, shown = cuts(definition), forecast(definition, clock)
    report = maintain(definition, WHO, clock)
    assert report.batch_id == 9
    assert shown.tables[:-1] == report.tables[:-1]  # the ledger has gained rows
    assert cuts(definition) == {number: held for number, held in before.items() if number >= report.kept_from} | {
        9: before[8]
    }
    live = {name: len(table.files(table.version())) for name, table in tables_of(definition)}
    assert live["results"] == live["source_files"] == 1
    after = cuts(runs(folder, clock, range(9, 11)))[11]
    assert set(before[8]["source_files"]) < set(after["source_files"])
    Reader(folder).watch()


@pytest.mark.spark
@pytest.mark.embedded
def test_consumers_of_changes_do_not_notice_maintenance(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for what in ("CLOSED", "OPEN", "OPEN_DAY"):
        monkeypatch.setattr(compaction, what, 2)
    definition = clicks(tmp_path, 2)
    table = ledger_of(definition).tables["result_changes"]
    seen: list[dict[str, Any]] = []

    def follow() -> int:
        """Reads the changes after the last batch that was read."""
        last_seen = max((row["batch_id"] for row in seen), default=0)
        new = [row for row in read_table(definition, "result_changes").to_pylist() if row["batch_id"] > last_seen]
        seen.extend(new)
        return len(new)

    for number in (3, 4) if ALL else (3,):
        advance(definition, lambda: spark, clock=plan_time)
        assert follow()
        before = {name: rows_of(read_table(definition, name)) for name in ("results", "open_windows", "seen_ids")}
        at = table.version()
        assert at is not None
        report = maintain(definition, WHO, plan_time)
        assert "result_changes" in {one.table for one in report.tables if one.compacted}
        assert follow() == 0
        assert before == {name: rows_of(read_table(definition, name)) for name in before}
        entry = file_of(folder_of(table), at + 1).read_text().splitlines()
        files = [one for line in entry for kind, one in json.loads(line).items() if kind in ("add", "remove")]
        assert len(files) > 2
        assert not any(file["dataChange"] for file in files)  # which a stream over the table passes over
        then = DeltaTable(str(folder_of(table)), version=at).to_pyarrow_table()
        assert rows_of(then) == rows_of(read_table(definition, "result_changes"))
        arrive_click(tmp_path, number, events(number))
    assert sorted(map(str, seen)) == rows_of(read_table(definition, "result_changes"))


def rows_of(found: pa.Table) -> list[str]:
    return sorted(map(str, found.to_pylist()))


def tables_of(definition: Definition) -> Iterator[tuple[str, Table]]:
    ledger = ledger_of(definition)
    return ((name, ledger.tables[name]) for name in ("results", "source_files"))


@pytest.mark.long("eight batches are, in make test, and maintenance killed at steps ends with the needed files alone")
def test_after_many_batches_only_files_of_kept_cuts_remain(folder: Path, clock: Clock) -> None:
    definition = runs(folder, clock, range(1, 41))
    assert len(data_files_on_disk(definition)) > 150
    maintain(definition, WHO, clock)
    clock.later(2)
    report = maintain(definition, WHO, clock)  # of what was put together only the newer cut is kept
    assert report.kept_from == 41
    assert data_files_on_disk(definition) == needed(definition)
    entries = [path for name in COMMIT_ORDER for path in (folder_of(definition) / name / "_delta_log").glob("*.json")]
    assert len(data_files_on_disk(definition)) <= 6
    assert len(entries) <= 2 * len(COMMIT_ORDER)
    assert maintain(definition, WHO, clock).tables == ()


def test_a_deleted_cut_is_refused_in_a_sentence(folder: Path, clock: Clock) -> None:
    definition = runs(folder, clock, range(1, 6))
    clock.later(2)
    report = maintain(definition, WHO, clock)
    assert report.kept_from == 5
    with pytest.raises(CutExpired, match=r"no way back to batch 3: .* files of batches before 5 .*\"1 batch\""):
        rollback(definition, 3, WHO, "too far", clock)
    assert rollback(definition, 5, WHO, "the last that is kept", clock) == 7


def test_cuts_are_kept_for_a_retention_period(folder: Path, clock: Clock) -> None:
    definition = pipeline(folder)
    kept_for = definition.retention.model_copy(update={"cuts": kept.RetentionPeriod(ms=5 * HOUR_MS)})
    runs(folder, clock, range(1, 8))
    report = maintain(definition.model_copy(update={"retention": kept_for}), WHO, clock)
    assert report.kept_from == 2


@pytest.mark.fault(
    "maintenance runs by a clock that is a year ahead",
    "ages count from the newest batch until an operator accepts the clock",
)
def test_maintenance_counts_ages_from_the_newest_batch_if_the_clock_is_ahead(folder: Path, clock: Clock) -> None:
    definition = pipeline(folder)
    kept_for = definition.retention.model_copy(update={"cuts": kept.RetentionPeriod(ms=5 * HOUR_MS)})
    definition = definition.model_copy(update={"retention": kept_for})
    runs(folder, clock, range(1, 8))
    before, newest = forecast(definition, clock).kept_from, clock()
    clock.later(24 * 365)  # the clock is wrong, or the pipeline has paused
    reports = [forecast(definition, clock)]
    for _ in range(2):
        reports.append(maintain(definition, WHO, clock))
        clock.later(24)
    assert reports[1].batch_id == 8, "the first has made a batch, which that clock has dated"
    for report in reports:
        [note] = report.notes
        assert report.kept_from == before
        assert re.search(
            rf"far ahead of the newest batch, so ages are counted from {instant(newest)}.* accept-clock", note
        )
    accept_clock(definition, WHO, "paused", clock)
    report = maintain(definition, WHO, clock)
    assert report.notes == ()
    assert report.kept_from > before


def test_maintain_deletes_files_of_dead_attempts_and_keeps_those_of_a_waiting_batch(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = runs(folder, clock, range(1, 4))
    arrive(folder, 4)
    with stopped("ledger:prepare"):
        advance(definition, no_spark, clock=clock)
    dead = data_files_on_disk(definition) - needed(definition)
    assert len(dead) > 2
    refusal = [CheckResult("events", "rows", "critical", "Every row is liked.", False, "0", "1")]
    with monkeypatch.context() as patch:
        patch.setattr(attempt, "_judged", lambda *_: refusal)
        with pytest.raises(Rejected):
            advance(definition, no_spark, clock=clock)
    waiting = data_files_on_disk(definition) - needed(definition) - dead
    clock.later(2)
    report = maintain(definition, WHO, clock)
    assert report.batch_id is None
    assert "batch 4 waits for a decision" in report.notes[0]
    assert data_files_on_disk(definition) - needed(definition) == waiting
    approve(definition, WHO, "look again", clock=clock)
    last_run(folder, clock)
    assert len(cuts(definition)[4]["source_files"]) == 4


def test_files_of_dead_attempts_are_recognized_by_batch_and_claim_in_their_names(folder: Path, clock: Clock) -> None:
    """This holds for a batch of any age. Files that the ledger has fixed stay, and so do files with similar names."""
    definition = runs(folder, clock, range(1, 4))
    rows = read_table(definition, "ledger").to_pylist()
    fixed = {row["batch_id"]: row["epoch"] for row in rows if row["kind"] == "prepare"}
    arrive(folder, 4)
    with stopped("ledger:prepare"):
        advance(definition, no_spark, clock=clock)
    dead, others = [(1, fixed[2]), (3, fixed[1])], [(2, fixed[2]), (9, fixed[1])]
    paths = {one: folder_of(definition) / "results" / f"{one[0]}-{one[1]}-0.parquet" for one in (*dead, *others)}
    for path in paths.values():
        path.touch()
    advance(definition, no_spark, clock=clock)
    assert [one for one, path in paths.items() if path.exists()] == others


def test_a_pipeline_whose_warehouse_is_the_folder_of_a_table_keeps_its_files(folder: Path, clock: Clock) -> None:
    definition = runs(folder, clock, range(1, 6))
    nested = folder_of(definition) / "results" / "nested"
    shutil.copytree(folder_of(definition), folder / "nested")
    shutil.move(folder / "nested", nested)
    before = {path for path in nested.rglob("*") if path.is_file()}
    clock.later(24 * 365)
    maintain(definition, WHO, clock)
    assert {path for path in nested.rglob("*") if path.is_file()} == before


def test_maintain_does_not_disturb_a_run_in_progress(folder: Path, clock: Clock) -> None:
    definition = runs(folder, clock, range(1, 6))
    ledger = ledger_of(definition, clock)
    _, claim = ledger.claim()
    with lease.lease(ledger, claim), pytest.raises(Superseded, match="another run holds this pipeline"):
        maintain(definition, WHO, clock)
    assert "a run is in progress" not in str(forecast(definition, clock).notes)


@pytest.mark.fault(
    "`windowlib maintain` is killed at any step", "no kept cut changes; the next maintenance finishes it"
)
def test_a_killed_maintenance_loses_nothing(folder: Path, clock: Clock) -> None:
    definition = runs(folder, clock, range(1, 6))
    clock.later(2)
    before, values = cuts(definition)[5], Reader(folder).all_values()
    for moment in range(1, 1_000, EACH):
        left = moment
        clock.later(0.1)

        def step(what: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed(what)

        with pytest.MonkeyPatch.context() as patch, dead_owner():
            patch.setattr(lease, "_release", lambda ledger, claim: None)
            before_each_step(step, patch)
            try:
                maintain(definition, WHO, clock)
            except Killed:
                pass
            else:
                break
        newest = max(cuts(definition).items())[1]
        assert newest == before
        Reader(folder).watch()
    assert moment > 40
    assert Reader(folder).all_values() == values
    arrive(folder, 6)
    last_run(folder, clock)
    clock.later(2)
    maintain(definition, WHO, clock)
    clock.later(2)
    maintain(definition, WHO, clock)
    assert data_files_on_disk(definition) == needed(definition)


@pytest.mark.long("each is done by itself in make test, and killed at steps")
def test_random_operations_never_change_a_kept_cut(folder: Path, clock: Clock) -> None:
    for seed in range(2):
        chance, number = random.Random(seed), 0
        place = folder / str(seed)
        definition = pipeline(place)
        known: dict[int, dict[str, list[str]]] = {}
        for _ in range(16):
            clock.later(chance.choice((0.1, 1, 3)))
            match chance.choice(("run", "run", "maintain", "rollback")):
                case "run":
                    number += 1
                    runs(place, clock, range(number, number + 1))
                case "maintain":
                    maintain(definition, WHO, clock)
                case "rollback" if len(known) > 1:
                    rollback(definition, sorted(known)[-2], WHO, "by chance", clock)
                    last_run(place, clock)
            if number:
                now = cuts(definition)
                assert {batch: known[batch] for batch in now if batch in known} == {
                    batch: held for batch, held in now.items() if batch in known
                }
                known = now
                Reader(place).watch()


def test_maintain_deletes_unused_files_next_to_the_tables(folder: Path, clock: Clock) -> None:
    definition = runs(folder, clock, range(1, 3))
    store = definition.store
    unused = {
        "unfinished work": [
            "last_error.json.0f.tmp",
            "checks/1.json.0f.tmp",
            "_staging/9-9-0f/feed/a",
            "_staging/9-9-0f/b",
        ],
        "previews": ["_previews/0f/difference/change=added/a", "_previews/0f/page.html"],
        "old tracebacks": ["logs/1.log"],
        "finished migrations": ["_migration/0f/results/a"],
    }
    kept = ["_staging/8-8-0f/a", "_staging/8-8-0f/b", "last_error.json", "logs/2.log", "checks/2.json.0f.tmp"]
    for path in (*kept, *chain(*unused.values())):
        store.put(path, b"1")
    for path in ("_staging/8-8-0f/b", "logs/2.log", "checks/2.json.0f.tmp"):
        os.utime(Path(store.url) / path, ns=(0, clock() * 1_000_000))  # written now
    clock.later(2)
    os.utime(Path(store.url) / "logs/1.log", ns=(0, (clock() - 91 * 24 * HOUR_MS) * 1_000_000))
    counts = {name: len(paths) for name, paths in unused.items()}
    assert forecast(definition, clock).others == counts
    assert maintain(definition, WHO, clock).others == counts
    left = {file.path for file in store.list()}
    assert left >= {*kept}
    assert not left & {*chain(*unused.values())}
    assert not (Path(store.url) / "_previews").exists()
