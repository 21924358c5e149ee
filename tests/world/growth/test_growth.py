"""A batch of an old pipeline opens no more files and log entries than one of a young pipeline.

Young is the thirtieth batch and old the seventieth, in `make test-all` the hundredth and the five hundredth.
`python -m tests.world.growth` measures thousands of batches on an engine.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.disks import folder_of
from tests.support.simple_batches import DEFINITION, batches_of, compute_simply, no_spark
from tests.support.strategies import ALL
from tests.world.growth.bounds import needed_files
from windowlib.definition.definition import load_definition
from windowlib.definition.toml.source import Source
from windowlib.delta import checkpoints, data_files
from windowlib.delta import tables as delta
from windowlib.delta.small_tables import SMALL_FILES
from windowlib.ledger import entries as ledger_entries
from windowlib.maintenance.maintain import maintain
from windowlib.runs.advance import advance
from windowlib.runs.run import RunRequest
from windowlib.source.listed import SourceListing
from windowlib.source.listing import Since, found_files
from windowlib.storage import disk as storage_disk
from windowlib.storage.disk import Disk

YOUNG, OLD = (100, 500) if ALL else (30, 70)
READ_ROWS = 20  # of each of a batch's four looks, the rows since the last commit and two
SPAN = 20  # batches since maintenance, which are looked at; every ten commits of a table make a checkpoint
START_MS, STEP_MS = 1_800_000_000_000, 480_000  # all of the source is listed at 1, 181, 361, and so on: once a day


class Grown:
    """A pipeline whose batches, of one file with one value, need no engine."""

    def __init__(self, folder: Path) -> None:
        (folder / "incoming").mkdir()
        file = folder / "values-0s.toml"
        text = DEFINITION.format(delay="0s", gap="10ms")
        file.write_text(text.replace("[watermark]", 'sorted_by_time = "names"\n\n[watermark]'))
        self.folder, self.definition, self.number = folder, load_definition(file), 0

    def clock(self) -> int:
        return START_MS + self.number * STEP_MS

    def arrive(self) -> None:
        """The file of the next batch."""
        self.number += 1
        path = self.folder / "incoming" / f"{self.number:05}.parquet"
        pq.write_table(pa.table({"value": [self.number], "ts": [self.number]}), path)
        os.utime(path, (self.number, self.number))

    def batches(self, up_to: int) -> None:
        """Each by a run of its own."""
        while self.number < up_to:
            self.arrive()
            advance(self.definition, no_spark, clock=self.clock)

    def long_run(self, up_to: int) -> None:
        """All by one run: a file arrives before each look at the source."""

        def look(source: Source, since: Since) -> SourceListing:
            if self.number < up_to:
                self.arrive()
            return found_files(source, since)

        request = replace(RunRequest.of(self.definition, self.clock), look=look)
        assert sum(1 for _ in batches_of(request)) > 1

    def other_files(self) -> int:
        """Number of files that no kept cut names: logs, and files replaced since maintenance."""
        files = [path for path in folder_of(self.definition).rglob("*") if path.is_file()]
        return len(files) - needed_files(self.definition, self.clock)


class Looks:
    """Numbers of reads of data files by table, of opened logs, and of entries after their checkpoints."""

    def __init__(self) -> None:
        self.files, self.logs, self.entries = Counter[str](), Counter[str](), Counter[str]()

    def at_file(self, file: Path) -> None:
        if file.suffix == ".parquet" and file.parent.name != "_delta_log":
            self.files[file.parent.name] += 1

    def at_log(self, folder: Path) -> None:
        if not (folder / "_delta_log").is_dir():
            return
        names = [path.name for path in (folder / "_delta_log").iterdir() if path.name[0].isdigit()]
        last = max((int(name[:20]) for name in names if ".checkpoint." in name), default=-1)
        self.logs[folder.name] += 1
        self.entries[folder.name] += sum(name.endswith(".json") and int(name[:20]) > last for name in names)


@contextmanager
def counted(patch: pytest.MonkeyPatch) -> Iterator[Looks]:
    """Counts opened files and logs within the block."""
    looks, get, get_range, check_entries = Looks(), Disk.get, Disk.get_range, delta.check_entries
    with patch.context() as patched:
        patched.setattr(Disk, "get", lambda store, path: looks.at_file(store.root / path) or get(store, path))
        patched.setattr(
            Disk,
            "get_range",
            lambda store, path, *part: looks.at_file(store.root / path) or get_range(store, path, *part),
        )
        patched.setattr(delta, "check_entries", lambda store: looks.at_log(store.root) or check_entries(store))
        yield looks


@contextmanager
def folds_counted(grown: Grown, patch: pytest.MonkeyPatch) -> Iterator[Counter[int]]:
    """Counts the ledger rows folded per batch within the block."""
    folded, apply = Counter[int](), ledger_entries.applied
    with patch.context() as patched:
        patched.setattr(
            ledger_entries, "applied", lambda state, row: folded.update([grown.number]) or apply(state, row)
        )
        yield folded


@pytest.mark.slow
@pytest.mark.embedded
def test_a_batch_of_an_old_pipeline_opens_no_more_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long run reads no more of the ledger for its last batch either, although its claim is many rows back."""
    compute_simply(monkeypatch)
    monkeypatch.setattr(data_files, "KEPT", 100_000)  # otherwise threads decide what is read again
    monkeypatch.setattr(storage_disk, "flush", Path.stat)  # no power fails here
    grown, found, others = Grown(tmp_path), list[Looks](), list[int]()
    for number in (YOUNG, OLD):
        with folds_counted(grown, monkeypatch) as folded:
            grown.long_run(number - SPAN)
        if number == YOUNG:
            assert max(folded.values()) <= READ_ROWS, "rows that a batch of the long run has read"
        maintain(grown.definition, "ann", grown.clock)
        with counted(monkeypatch) as looks:
            grown.batches(number)
        found.append(looks)
        others.append(grown.other_files())
    young, old = found
    ledger = {"ledger"}  # of which a batch appends several: they are folded now within the span, now before it
    assert {of: young.files[of] for of in young.files.keys() - ledger} == {
        of: old.files[of] for of in old.files.keys() - ledger
    }
    assert abs(old.files["ledger"] - young.files["ledger"]) <= SMALL_FILES + 1  # of one fold, and the file it made
    assert old.logs == young.logs
    for looks in found:
        assert all(looks.entries[of] <= checkpoints.ENTRIES * looks.logs[of] for of in looks.logs), looks.entries
    assert others[1] <= others[0] + SMALL_FILES + checkpoints.ENTRIES * len(old.logs), "folded or checkpointed soon"
