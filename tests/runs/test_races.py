"""Concurrent runs of one pipeline: one of them does the work. The others end and have changed nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import ON_SAIL, clicks, clock, tables
from tests.support.killed import dead_owner
from tests.support.simple_batches import one_by_one
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.verdicts import abandon
from windowlib.definition.definition import Definition
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files
from windowlib.delta.tables import Table
from windowlib.ledger.lease import lease
from windowlib.ledger.ledger import Ledger, Superseded
from windowlib.ledger.owner import Owner, shows_life
from windowlib.ledger.rows import LedgerState
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

ROOT = Path(__file__).parents[2]
APPENDS = """
import sys
from pathlib import Path
from windowlib.ledger.ledger import Ledger, wall_clock_ms
from windowlib.storage.disk import Disk
for number in range(10):
    Ledger(Disk(Path(sys.argv[1])), wall_clock_ms).write({"kind": "heartbeat"})
"""


SOON_MS = 300  # a lease that ends soon


def impatient(definition: Definition) -> Definition:
    """The same pipeline for a run that soon takes a silent run on another machine for dead."""
    return definition.model_copy(update={"lease_timeout_ms": SOON_MS})


@pytest.mark.slow
@pytest.mark.fault("three processes append to one ledger at once", "no row is lost or out of order")
def test_three_processes_append_to_a_ledger_without_losing_rows(tmp_path: Path) -> None:
    command = [sys.executable, "-c", APPENDS, str(tmp_path)]
    processes = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    ended = [(process.communicate()[1], process.returncode) for process in processes]
    assert [code for _, code in ended] == [0, 0, 0], ended
    ledger = Table(Disk(tmp_path / "ledger"))
    rows = [
        row["sequence"]
        for file in ledger.files(ledger.version())
        for row in data_files.read_parquet(ledger.store, file).to_pylist()
    ]
    assert sorted(rows) == list(range(1, 31))


def test_a_claim_holds_while_its_owner_lives(tmp_path: Path) -> None:
    ledger = Ledger(Disk(tmp_path), clock, lease_timeout_ms=1000)
    ledger.claim()
    with pytest.raises(Superseded, match=f"another run holds this pipeline .process {os.getpid()} on this machine"):
        Ledger(Disk(tmp_path), clock).claim()


@pytest.mark.fault("a run died and left its claim", "the next run takes over at once")
def test_the_claim_of_a_dead_process_delays_no_run(tmp_path: Path) -> None:
    with dead_owner():
        Ledger(Disk(tmp_path), clock).claim()
    before, claim = Ledger(Disk(tmp_path), clock).claim()
    assert before.left_by_a_dead_run
    assert claim.epoch == 2


def test_a_claim_from_another_machine_holds_while_heartbeats_come_in(tmp_path: Path) -> None:
    """Whatever its clock shows: it is years behind ours."""
    said: list[str] = []
    with dead_owner(host="elsewhere"):
        theirs = Ledger(Disk(tmp_path), lambda: 0, SOON_MS)
        _, claim = theirs.claim()
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(SOON_MS / 3000):
            theirs.write({"kind": "heartbeat"}, claim.epoch)

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        with pytest.raises(Superseded, match="on elsewhere"):
            Ledger(Disk(tmp_path), clock, SOON_MS).claim(said.append)
    finally:
        stop.set()
        beating.join()
    assert [line.startswith("waiting up to 0 s for a heartbeat of process") for line in said] == [True]

    began = time.monotonic()
    Ledger(Disk(tmp_path), clock).write({"kind": "approve"})  # a row of an operator is not a sign of life
    _, next_claim = Ledger(Disk(tmp_path), lambda: -1_000_000, SOON_MS).claim()
    assert time.monotonic() - began >= SOON_MS / 1000
    with pytest.raises(Superseded, match=rf"claim {next_claim.epoch}, this run has {claim.epoch}"):
        theirs.write({"kind": "heartbeat"}, claim.epoch)


def test_a_claim_from_another_machine_that_is_released_is_free_at_once(tmp_path: Path) -> None:
    with dead_owner(host="elsewhere"):
        theirs = Ledger(Disk(tmp_path), clock)
        _, claim = theirs.claim()
    threading.Timer(0.2, theirs.write, ({"kind": "release"}, claim.epoch)).start()
    began = time.monotonic()
    assert Ledger(Disk(tmp_path), clock, 60_000).claim()[1].epoch == 2
    assert time.monotonic() - began < 30


@pytest.mark.fault("a heartbeat cannot be written for a while", "the next heartbeat keeps the claim alive")
def test_a_heartbeat_survives_an_io_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, failures = Ledger(Disk(tmp_path), clock, SOON_MS), [OSError("disk full"), OSError("disk full")]
    _, claim = ledger.claim()
    append = Ledger._append

    def failing(self: Ledger, state: LedgerState, *rows: Mapping[str, Any]) -> None:
        if failures:
            raise failures.pop()
        append(self, state, *rows)

    with lease(ledger, claim):
        monkeypatch.setattr(Ledger, "_append", failing)
        assert shows_life(lambda: Ledger(Disk(tmp_path), clock).state().claim, 20 * SOON_MS)
    assert not failures
    assert ledger.state().claim == replace(ledger.state().claim, epoch=1, released=True)


@pytest.mark.promised("of several runs at once, one does each batch", "disk")
@pytest.mark.slow
@pytest.mark.fault("two runs start at once", "one works, one leaves; there is one result")
def test_one_of_two_runs_at_once_leaves(tmp_path: Path) -> None:
    definition = clicks(tmp_path, files=1, definition=ON_SAIL)
    command = [sys.executable, "-P", "-m", "windowlib", "run", str(definition.file)]
    environment = {name: value for name, value in os.environ.items() if name != "WINDOWLIB_WAREHOUSE"}
    processes = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ended = [(*process.communicate(), process.returncode) for process in processes]
    (done_out, _, done), (_, left_err, left) = sorted(ended, key=lambda end: end[2])
    assert (done, left) == (0, 4), ended
    assert "  read 82  " in done_out
    assert left_err.startswith("error: another run holds this pipeline (process ")
    assert len(left_err.splitlines()) == 1
    kinds = [row["kind"] for row in read_table(definition, "ledger").to_pylist()]
    assert sorted(kind for kind in kinds if kind != "heartbeat") == ["claim", "commit", "plan", "prepare", "release"]
    assert read_table(definition, "source_files").num_rows == 1


@pytest.fixture(scope="module")
def after_one_batch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pipeline that has committed its first file of two."""
    folder = tmp_path_factory.mktemp("after") / "one"
    advance(clicks(folder, files=2), lambda: spark, clock=clock, max_batches=1)
    return folder


@pytest.fixture(scope="module")
def after_two_batches(
    spark: SparkSession, after_one_batch: Path, tmp_path_factory: pytest.TempPathFactory
) -> Definition:
    return run(copy(after_one_batch, tmp_path_factory.mktemp("after") / "two"), spark)


def copy(pipeline: Path, folder: Path) -> Definition:
    """The same pipeline, with all its files, in another folder."""
    shutil.copytree(pipeline, folder)
    return clicks(folder, files=0)


def run(definition: Definition, spark: SparkSession) -> Definition:
    advance(definition, lambda: spark, clock=clock)
    return definition


def run_interrupted(definition: Definition, spark: SparkSession, meanwhile: Callable[[], object]) -> None:
    """A run on another machine that falls silent just before its first commit, and goes on after `meanwhile`."""
    commit = delta_commits.commit_logged
    with pytest.MonkeyPatch.context() as earlier, dead_owner(host="elsewhere") as patch:
        one_by_one(earlier)
        earlier.setattr(Owner, "lease_ms", lambda _, ours_ms: ours_ms)  # it did not say how patient it is

        def silent(*arguments: Any) -> int:
            if len(arguments) < 5:  # of the ledger's, before it
                return commit(*arguments)
            patch.undo()
            meanwhile()
            return commit(*arguments)

        patch.setattr(delta_commits, "commit_logged", silent)
        advance(definition, lambda: spark, clock=clock)


@pytest.mark.promised("a write of a superseded run that arrives late changes nothing", "disk")
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.fault("a run wakes after another took over its batch", "it changes nothing and leaves")
def test_a_run_that_was_taken_over_changes_nothing(
    spark: SparkSession, after_one_batch: Path, after_two_batches: Definition, tmp_path: Path
) -> None:
    definition = copy(after_one_batch, tmp_path / "zombie")
    done: list[dict[str, int | None]] = []

    def take_over() -> None:
        advance(impatient(definition), lambda: spark, clock=clock)
        done.append(versions(definition))

    with pytest.raises(Superseded, match="another run took this pipeline over"):
        run_interrupted(definition, spark, take_over)
    assert versions(definition) == done[0]
    assert tables(definition) == tables(after_two_batches)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.fault("a batch is abandoned while its run sleeps", "the run fails at its next commit")
def test_a_run_whose_batch_was_abandoned_changes_nothing(
    spark: SparkSession, after_one_batch: Path, tmp_path: Path
) -> None:
    definition = copy(after_one_batch, tmp_path / "zombie")
    before = tables(definition)
    done: list[dict[str, int | None]] = []

    def give_up() -> None:
        abandon(impatient(definition), "ann", "it hangs", clock)
        done.append(versions(definition))

    with pytest.raises(Superseded, match="another run took this pipeline over"):
        run_interrupted(definition, spark, give_up)
    assert versions(definition) == done[0]
    assert tables(definition) == before
    state = ledger_of(definition).state()
    assert (state.plan, state.last_batch_id) == (None, 2)


def versions(definition: Definition) -> dict[str, int | None]:
    return {name: Table(definition.store.below(name)).version() for name in COMMIT_ORDER}
