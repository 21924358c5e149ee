"""Names sorted by time: a run lists new names only, and a full listing finds the others."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.disks import folder_of
from tests.support.simple_batches import compute_simply, computed, no_spark, pipeline
from tests.support.strategies import ALL
from windowlib.batches import batch
from windowlib.batches.inputs import ComputedBatch, Inputs
from windowlib.batches.planning import ledger_of, plan
from windowlib.decisions.rollback import rollback
from windowlib.decisions.set_aside import set_aside, take_back
from windowlib.definition.definition import Definition
from windowlib.delta.tables import Tables
from windowlib.inspection.status import status
from windowlib.maintenance.maintain import maintain
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.source import marker
from windowlib.source.contents import checksum
from windowlib.source.listed import SourceError
from windowlib.source.listing import found_files, waiting_files
from windowlib.source.marker import marker_of
from windowlib.storage import disk as storage_disk

DAY_MS = 86_400_000
BY = pytest.mark.parametrize("by", ["names", "folders"])
FOLDERS_DO = pytest.mark.long("folders, in make test, find what came late by the same full listing")


class Source:
    """A pipeline that needs no engine, its source, and a clock that a test sets on."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now_ms, self.said, self.values = folder, 1_800_000_000_000, {}, 0
        self.sorted_by("folders")

    def sorted_by(self, by: str | None, **more: object) -> Definition:
        found = pipeline(self.folder)
        said = {"sorted_by_time": by, "min_file_age_ms": 0, **more}
        self.definition = found.model_copy(update={"source": found.source.model_copy(update=said)})
        return self.definition

    def clock(self) -> int:
        return self.now_ms

    def put(self, *names: str) -> None:
        """Writes files with a different value each, over any earlier content."""
        for name in names:
            path = self.folder / "incoming" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self.values += 2
            pq.write_table(pa.table({"value": [self.values], "ts": [self.values]}), path)
            os.utime(path, ns=(self.now_ms * 1_000_000 + self.values,) * 2)

    def run(self, days: float = 0) -> list[str]:
        """Files read that many days later, by name."""
        self.now_ms += int(days * DAY_MS)
        before = self.read()
        advance(self.definition, no_spark, clock=self.clock)
        return sorted(set(self.read()) - set(before))

    def read(self) -> list[str]:
        """Files read so far, each as often as it was read."""
        if ledger_of(self.definition).state().commit is None:
            return []
        return [row["path"] for row in read_table(self.definition, "source_files").to_pylist()]

    def listed(self) -> list[str]:
        """Files that the next run lists."""
        commit = ledger_of(self.definition).state().commit
        of, store = self.definition.source, self.definition.store
        since = marker.due_from(marker_of(of, store, commit), of.full_listing_every_ms, self.now_ms)
        return sorted(file.path for file in found_files(of, since).files)


def with_contents(inputs: Inputs) -> ComputedBatch:
    """Batches keep the checksums of their files, as real ones do."""
    outcome = computed(inputs)
    rows = outcome.changes["source_files"].rows or ()
    kept = [{**row, "sha256": checksum(inputs.definition.source.store, row["path"], row["size_bytes"])} for row in rows]
    return replace(
        outcome, changes={**outcome.changes, "source_files": replace(outcome.changes["source_files"], rows=kept)}
    )


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    compute_simply(monkeypatch)
    monkeypatch.setattr(batch, "compute", with_contents)
    monkeypatch.setattr(storage_disk, "flush", Path.stat)  # no power fails here
    return Source(tmp_path)


@BY
def test_a_run_lists_only_new_names(source: Source, by: str) -> None:
    source.sorted_by(by)
    source.put("day=1/a", "day=1/b", "day=2/a", "day=2/b")
    assert source.run() == ["day=1/a", "day=1/b", "day=2/a", "day=2/b"]
    source.put("day=2/c", "day=3/a", "day=3/sub/a")
    new = ["day=2/c", "day=3/a", "day=3/sub/a"]
    assert source.listed() == (["day=2/b", *new] if by == "names" else ["day=2/a", "day=2/b", *new])
    assert source.run() == new
    assert source.run() == []
    assert sorted(source.read()) == sorted({*source.read()})


@BY
def test_the_next_full_listing_finds_and_reports_a_late_name(source: Source, by: str) -> None:
    source.sorted_by(by)
    source.put("1/a", "2/a")
    source.run()
    source.put("1/b")
    assert source.run(0.99) == []
    assert source.run(0.02) == ["1/b"]
    said = status(source.definition, source.now_ms).listing
    assert said is not None
    assert "which found 1 new file under earlier names" in said
    assert source.listed() == ["2/a"]


def test_files_left_for_later_are_listed_again(source: Source) -> None:
    source.sorted_by("names", max_files_per_run=2)
    source.put("1", "3", "5", "2", "4")
    planned = plan(source.definition, source.clock)
    assert planned is not None
    assert [file.path for file in planned.files] == ["1", "3"]
    left = marker_of(source.definition.source, source.definition.store, planned)
    assert left is not None
    assert left.name == "2"  # came later than 3, and 3 is read
    assert source.run() == ["1", "2", "3", "4", "5"]
    source.sorted_by("names", min_file_age_ms=DAY_MS // 2)
    source.put("6")
    source.now_ms += DAY_MS // 4
    source.put("7")
    assert source.run(0.3) == ["6"]
    assert source.run(0.2) == ["7"]


def test_a_young_late_file_survives_its_full_listing(source: Source) -> None:
    source.put("1/a", "2/a")
    source.run()
    source.sorted_by("folders", min_file_age_ms=DAY_MS // 2)
    source.now_ms += DAY_MS
    source.put("1/b")
    assert source.run() == []
    assert source.run(0.5) == ["1/b"]


def test_an_empty_full_listing_is_remembered(source: Source) -> None:
    source.put("1/a", "2/a")
    source.run()
    assert source.run(1) == []
    assert source.listed() == ["2/a"]
    kept = folder_of(source.definition) / marker.FILE
    for text in ("", "[]", "{", '{"batch_id": 1}'):
        kept.write_text(text)
        assert source.listed() == ["1/a", "2/a"]
    assert source.run() == []
    source.now_ms -= 2 * DAY_MS  # a clock that was wrong
    assert source.listed() == ["1/a", "2/a"]


def test_a_file_that_changed_stops_the_run_that_sees_it(source: Source) -> None:
    source.put("1/a", "2/a")
    source.run()
    source.put("1/a")
    assert source.run() == []
    with pytest.raises(SourceError, match="1/a has changed since it was read"):
        source.run(1)


def test_a_changed_file_in_the_listed_range_stops_the_run(source: Source) -> None:
    source.put("1/a", "2/a")
    source.run()
    source.put("2/a")
    with pytest.raises(SourceError, match="2/a has changed since it was read"):
        source.run()


@pytest.mark.fault("a file is renamed after it was read", "it is not read again; a copy of it is new")
def test_a_renamed_file_is_not_new_and_a_copy_is(source: Source) -> None:
    source.put("1/a", "1/b", "2/a")
    source.run()
    incoming = source.folder / "incoming"
    (incoming / "3").mkdir()
    (incoming / "1/a").rename(incoming / "3/a")
    shutil.copy(incoming / "1/b", incoming / "3/b")
    shutil.copy(incoming / "3/a", incoming / "3/c")  # of one that is gone, a second one
    for name in ("3/b", "3/c"):
        os.utime(incoming / name, ns=(source.now_ms * 1_000_000 + 99,) * 2)
    assert source.run() == ["3/b", "3/c"]


def test_a_file_taken_back_is_read_before_the_marker(source: Source) -> None:
    source.put("1/a", "2/a")
    set_aside(source.definition, "1/a", "ann", "broken", source.clock)
    assert source.run() == ["2/a"]
    assert source.listed() == ["2/a"]
    take_back(source.definition, "1/a", "ann", "repaired", source.clock)
    of, commit = source.definition, ledger_of(source.definition).state().commit
    assert len(waiting_files(of.source, of.uses, Tables(of.store), commit)) == 1
    assert source.run() == ["1/a"]


def test_a_deleted_folder_causes_no_full_listing(source: Source) -> None:
    source.put("1/a", "2/a", "3/a")
    source.run()
    shutil.rmtree(source.folder / "incoming" / "3")
    assert source.listed() == []
    source.put("4/a")
    assert source.run() == ["4/a"]
    source.put("2/late")
    assert source.run() == []
    assert source.run(1) == ["2/late"]


def test_a_rollback_causes_a_full_listing_and_maintenance_does_not(source: Source) -> None:
    source.put("1/a", "2/a")
    source.run()
    source.put("3/a")
    source.run()
    source.put("1/late")
    source.run(1)
    maintain(source.definition, "ann", source.clock)
    assert source.listed() == ["3/a"]
    rollback(source.definition, 2, "ann", "wrong", source.clock)
    assert source.listed() == ["1/a", "1/late", "2/a", "3/a"]
    maintain(source.definition, "ann", source.clock)
    assert source.run() == ["1/late"]


def test_a_changed_setting_causes_one_full_listing(source: Source) -> None:
    source.put("1/a", "2/a", "2/b")
    source.run()
    source.sorted_by("names")
    assert source.listed() == ["1/a", "2/a", "2/b"]
    source.put("2/c")
    source.run()
    assert source.listed() == ["2/c"]
    source.sorted_by(None)
    assert len(source.listed()) == 4


def test_changed_patterns_cause_one_full_listing(source: Source) -> None:
    source.sorted_by("names", exclude=("*.new", "old*"))
    source.put("a", "b.new", "c", "old.new")
    assert source.run() == ["a", "c"]
    assert source.listed() == ["c"]
    source.sorted_by("names", exclude=("old*",))
    assert source.run() == ["b.new"]
    assert source.listed() == ["c"]
    source.sorted_by("names", include=("*.new",))
    source.put("d.new")
    assert source.run() == ["d.new", "old.new"]
    assert source.listed() == ["old.new"]


def test_files_next_to_folders_and_links_with_a_marker(source: Source) -> None:
    source.put("top", "1/a", "2/a")
    source.run()
    (source.folder / "elsewhere").mkdir()
    (source.folder / "incoming" / "1" / "link").symlink_to(source.folder / "elsewhere")
    source.put("top2")
    assert source.run() == []  # its folder sorts before 2
    (source.folder / "incoming" / "1" / "link").unlink()
    assert source.run(1) == ["top2"]
    (source.folder / "incoming" / "3").symlink_to(source.folder / "elsewhere")
    with pytest.raises(SourceError, match="runs do not follow links to folders"):
        source.run()


# One seed in `make test`: the others draw other names for the same rule.
@pytest.mark.parametrize("by", [pytest.param("names", marks=FOLDERS_DO), "folders"])
@pytest.mark.parametrize("seed", range(5 if ALL else 1))
def test_each_file_is_read_once_for_any_names(source: Source, by: str, seed: int) -> None:
    """Hours that do not sort, late names, and runs of at most two files: a full listing finds the rest."""
    chance = random.Random(seed)
    source.sorted_by(by, max_files_per_run=2)
    hours = (8, 9, 10, 11) if ALL else (9, 10)
    every = [f"day={day}/hour={hour}/{file}" for day in range(2) for hour in hours for file in "ab"]
    names = chance.sample(every, len(every))
    acts: list[Callable[[], object]] = [lambda: source.run(0.2)] * 8
    while names:
        source.put(*(names.pop() for _ in range(min(len(names), chance.randrange(5)))))
        chance.choice(acts)()
    source.run(1)
    assert sorted(source.read()) == sorted(every)
