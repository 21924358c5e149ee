"""Power cuts on a real file system. The disk is copied at many moments of a run, and a run continues on each copy.

Nothing is flushed for a copy but what the run itself flushes. A file that the run did not sync is empty or missing in
the copy.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import clicks, clicks_on_sail, clock, tables
from tests.support.disks import ImageDisk, flushed, folder_of, in_memory
from tests.support.killed import FILES
from tests.support.log_files import file_of
from tests.support.simple_batches import (
    Reader,
    arrive,
    before_each_step,
    compute_simply,
    going_back,
    last_run,
    no_spark,
    pipeline,
    pipeline_of,
)
from tests.support.strategies import ALL
from windowlib.batches.planning import ledger_of
from windowlib.delta.log import DamagedLog
from windowlib.ledger.ledger import Ledger
from windowlib.runs.advance import advance
from windowlib.storage import disk as storage_disk

EACH = 1 if ALL else 40
"""Step of a run at which the power is cut, or every fortieth in `make test`: each copies a disk and runs on it again.
The schedules cut it at any step, on a disk that is only simulated."""
SIZE_MB = 8  # of the disk; a copy takes what is on it
COPIES_MB = 500


@dataclass(slots=True)
class Copy:
    """Content of the disk before a step of the run, and the newest batch that the run had reported as committed."""

    disk: ImageDisk
    step: str
    committed: int


@dataclass(slots=True)
class Copies:
    """Copies of a disk, each made before a step, with this many steps between two copies."""

    disk: ImageDisk
    mounted_on: Path
    journal_too: bool
    steps: int = 0
    committed: int = 0
    made: list[Copy] = field(default_factory=list)

    def step(self, what: str) -> None:
        self.steps += 1
        if self.steps % EACH == 0:
            self.make(what)

    def make(self, what: str) -> None:
        if self.journal_too:
            (self.mounted_on / "flushed").write_text(what, encoding="utf-8")
            flushed(self.mounted_on / "flushed")
        image = self.disk.image.with_name(f"{len(self.made)}.img")
        self.made.append(Copy(self.disk.copy(self.mounted_on, image), what, self.committed))


@pytest.fixture
def copied(mounts: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], list[Copy]]]:
    """Runs two batches on a disk, and returns its copies."""
    compute_simply(monkeypatch)

    def made(journal_too: bool) -> list[Copy]:
        image = ImageDisk.made(memory / "disk.img", SIZE_MB)
        with image.mounted(tmp_path / "disk") as folder:
            pipeline(folder)
            found = Copies(image, folder, journal_too)
            for number in (1, 2):
                arrive(folder, number)
                flushed(folder / "incoming" / f"{number}.parquet", folder / "incoming", folder, *folder.glob("*.toml"))
                with monkeypatch.context() as patch:
                    before_each_step(found.step, patch)
                    advance(pipeline_of(folder), no_spark)
                found.committed = number
                found.make(f"after batch {number}")
        return found.made

    with in_memory(tmp_path / "memory", COPIES_MB) as memory:
        yield made


def check(copy: Copy, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """After the power cut, every reported batch exists, and the next run finishes the rest."""
    patch.setattr(
        Ledger, "_is_free", lambda *_: True
    )  # the machine has started again: the process that made a claim has ended
    with copy.disk.mounted(folder):
        ledger, reader = ledger_of(pipeline_of(folder)), Reader(folder)
        commit = going_back(ledger.state).commit
        assert (commit.batch_id if commit else 0) >= copy.committed
        last_run(folder)
        reader.watch()
        arrived = sorted(int(file.stem) for file in (folder / "incoming").iterdir())
        assert arrived == [1, 2][: len(arrived)]
        assert reader.all_values() == [10 * number + digit for number in arrived for digit in range(3)]
        assert len(arrived) >= copy.committed


def check_all(copies: list[Copy], folder: Path, patch: pytest.MonkeyPatch) -> None:
    for copy in copies:
        try:
            check(copy, folder, patch)
        except BaseException as error:
            error.add_note(f"power cut before: {copy.step}")
            raise
        copy.disk.image.unlink()


@pytest.mark.promised("a power failure loses no commit that was reported", "disk")
@pytest.mark.parametrize(
    "journal_too",
    [
        pytest.param(
            False,
            id="any time",
            marks=pytest.mark.long("right after the journal was written, in make test, more files are empty"),
        ),
        pytest.param(True, id="right after the journal was written"),
    ],
)
@pytest.mark.fault(
    "the power fails at any moment of a run", "reported commits are there; the next run finishes the rest"
)
def test_a_power_cut_loses_no_reported_commit(
    copied: Callable[[bool], list[Copy]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal_too: bool
) -> None:
    check_all(copied(journal_too), tmp_path / "copy", monkeypatch)


@pytest.mark.long("without a sync something is lost on the disk that is simulated, in make test")
def test_without_flushing_something_is_lost(
    copied: Callable[[bool], list[Copy]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(storage_disk, "flush", lambda path: None)
        copies = copied(True)
    with pytest.raises((AssertionError, DamagedLog)):
        check_all(copies, tmp_path / "copy", monkeypatch)


@pytest.mark.fault(
    "the power fails after the first batch of a pipeline in a new folder",
    "the folder is there: it was synced before the ledger began",
)
def test_the_folders_above_a_new_pipeline_last_before_its_ledger_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: later runs sync no folder above the pipeline's own."""
    compute_simply(monkeypatch)
    flush, lasting, folder, begins = storage_disk.flush, list[Path](), tmp_path / "new", list[int]()

    def watched(path: Path) -> None:
        if not begins and file_of(folder_of(pipeline_of(folder)) / "ledger", 0).exists():
            begins.append(len(lasting))
        flush(path)
        lasting.append(path)

    monkeypatch.setattr(storage_disk, "flush", watched)
    pipeline(folder)
    arrive(folder, 1)
    advance(pipeline_of(folder), no_spark)
    root = folder_of(pipeline_of(folder))
    assert {root, root.parent, folder} <= {*lasting[: begins[0]]}
    lasting.clear()
    arrive(folder, 2)
    advance(pipeline_of(folder), no_spark)
    assert root in lasting
    assert not {*root.parents} & {*lasting}


# -- a run on an engine -----------------------------------------------------------------------------------------------

RUNS = """
import sys
from pathlib import Path
from tests.support.clicks import clicks_on_sail, clock

from windowlib.engines import sail
from windowlib.runs.advance import batches
from windowlib.runs.claimed_pipeline import first_batch
from windowlib.runs.run import RunRequest
run = RunRequest.of(clicks_on_sail(Path(sys.argv[1])), clock)
for report in batches(run, first_batch(run), sail.session):
    print(report.batch_id, flush=True)
"""
COPY_EVERY_S = 0.1
CHECKED = 99 if ALL else 4  # of the copies, at most; each is mounted and run on Sail


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("the same run without an engine, in make test, is cut off at many of its steps")
@pytest.mark.fault(
    "the power fails in any 0.1 s of a run on an engine",
    "reported commits are there; the next run leaves the tables of an undisturbed run",
)
def test_a_power_cut_while_an_engine_runs_loses_no_commit(
    spark: SparkSession, mounts: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clicks(tmp_path / "undisturbed", FILES)
    undisturbed = clicks_on_sail(tmp_path / "undisturbed")
    advance(undisturbed, lambda: spark, clock=clock)
    with in_memory(tmp_path / "memory", COPIES_MB) as memory:
        made = copies_of_a_process(ImageDisk.made(memory / "disk.img", SIZE_MB), tmp_path)
        assert {copy.committed for copy in made} == {*range(FILES + 1)}
        for copy in made[:: -(-len(made) // CHECKED)]:
            monkeypatch.setattr(Ledger, "_is_free", lambda *_: True)  # as above
            with copy.disk.mounted(tmp_path / "copy") as folder:
                definition = clicks_on_sail(folder)
                commit = going_back(ledger_of(definition).state).commit
                assert (commit.batch_id if commit else 0) >= copy.committed
                going_back(lambda: advance(definition, lambda: spark, clock=clock))  # noqa: B023
                assert tables(definition) == tables(undisturbed)


def copies_of_a_process(image: ImageDisk, tmp_path: Path) -> list[Copy]:
    """Copies of the disk of a run in a separate process, which stops for each copy."""
    reported, made = tmp_path / "reported", list[Copy]()
    with image.mounted(tmp_path / "disk") as folder, reported.open("w") as output:
        clicks(folder, FILES)
        subprocess.run(["sync", "-f", folder], check=True)
        command = [sys.executable, "-c", RUNS, str(folder)]
        with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=output) as process:
            while not (folder / "warehouse").exists():
                assert process.poll() is None
                time.sleep(0.01)
            while process.poll() is None:
                process.send_signal(signal.SIGSTOP)
                committed = len(reported.read_text().split())
                number = len(made)
                made.append(Copy(image.copy(folder, image.image.with_name(f"{number}.img")), str(number), committed))
                process.send_signal(signal.SIGCONT)
                time.sleep(COPY_EVERY_S)
        assert process.returncode == 0
        made.append(Copy(image.copy(folder, image.image.with_name("last.img")), "its end", FILES))
    return made
