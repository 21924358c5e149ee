"""Time limits end whatever hangs: waits of every kind, a job of the engine, one of several pipelines, a whole
process.
"""

from __future__ import annotations

import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.support import simple_batches
from tests.support.clicks import CLICKS, clicks, clock
from tests.support.disks import folder_of
from tests.support.killed import dead_owner, stopped
from windowlib.batches import reading
from windowlib.batches.planning import ledger_of
from windowlib.cli.exits import UNEXPECTED, exit_code
from windowlib.cli.main import app
from windowlib.definition.definition import Definition, load_definition
from windowlib.engines.sail import is_sail
from windowlib.ledger.ledger import Ledger, wall_clock_ms
from windowlib.runs import attempt, deadline, leftovers, run, together
from windowlib.runs import claimed_pipeline as at_work
from windowlib.runs.advance import advance
from windowlib.runs.deadline import TimedOut, within
from windowlib.runs.run import RunRequest
from windowlib.runs.together import advance_together
from windowlib.source import listing
from windowlib.storage.disk import Disk

# Where the signal comes while a weak reference or destructor is called, Python drops what it raises: it is sent again.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. <:pytest.PytestUnraisableExceptionWarning")
SOON_MS = 200
LONG_S = 30
UNTIL = ["--to", "2026-03-03T00:00Z", "--reason", "late", "--who", "ann"]
ONE_FILE = CLICKS.replace('name = "clicks"', 'name = "clicks"\nbatch_timeout = "8s"')


def wait_for_a_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=LONG_S)


def wait_for_a_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(LONG_S)
        ours.recv(1)


def wait_and_hide_errors() -> None:
    try:
        time.sleep(LONG_S)
    except Exception as error:  # as a client does that takes any error for a lost connection
        raise AssertionError from error


@pytest.mark.parametrize(
    "wait",
    [
        lambda: time.sleep(LONG_S),
        lambda: queue.Queue[int]().get(timeout=LONG_S),
        wait_for_a_lock,
        wait_for_a_socket,
        wait_and_hide_errors,
    ],
)
def test_whatever_waits_is_ended(wait: Callable[[], object]) -> None:
    handler, began = signal.getsignal(signal.SIGALRM), time.monotonic()
    says = "batch 7 has taken longer than batch_timeout = 200ms"
    with pytest.raises(TimedOut, match=says) as raised, within(SOON_MS, "batch 7"):
        wait()
    assert time.monotonic() - began < LONG_S
    assert exit_code(raised.value) == UNEXPECTED  # Airflow tries again
    assert signal.getsignal(signal.SIGALRM) is handler


def test_what_ends_in_time_is_left_alone() -> None:
    with within(5 * SOON_MS, "batch 7"):
        done = 1
    time.sleep(6 * SOON_MS / 1000)
    assert done


def test_errors_of_the_block_are_its_own() -> None:
    with pytest.raises(KeyError), within(1000 * LONG_S, "batch 7"):
        raise KeyError


@pytest.mark.fault("a batch exceeds `batch_timeout` after it has written its files", "its files are deleted at once")
def test_a_batch_stopped_by_its_timeout_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simple_batches.compute_simply(monkeypatch)
    written, over, were_there = threading.Event(), deadline._Watch.over, list[Path]()

    def hang(*_: Any) -> None:
        were_there.extend(folder_of(definition).glob("results/*.parquet"))
        written.set()
        time.sleep(LONG_S)

    def over_once_written(watch: Any, timeout_ms: int) -> None:
        """Starts the time limit when the files are written, so that a slow machine does not matter."""
        written.wait(LONG_S)
        over(watch, timeout_ms)

    monkeypatch.setattr(deadline, "DROPPED_S", 0.05)
    monkeypatch.setattr(deadline._Watch, "over", over_once_written)
    monkeypatch.setattr(attempt, "_judged", hang)
    definition = simple_batches.pipeline(tmp_path).model_copy(update={"batch_timeout_ms": SOON_MS})
    simple_batches.arrive(tmp_path, 1)
    with pytest.raises(TimedOut, match="batch 1 has taken longer"):
        advance(definition, simple_batches.no_spark)
    left = [path for path in folder_of(definition).rglob("*.parquet") if "ledger" not in path.parts]
    assert left == []
    assert were_there


@pytest.mark.fault(
    "listing the source, planning or claiming hangs on storage",
    "the run is stopped after `batch_timeout` and keeps no claim",
)
@pytest.mark.parametrize("hangs_at", [(listing, "folder_files"), (run, "next_due"), (leftovers, "remove")])
def test_a_hanging_preparation_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs_at: tuple[Any, str]
) -> None:
    simple_batches.compute_simply(monkeypatch)
    definition = simple_batches.pipeline(tmp_path).model_copy(update={"batch_timeout_ms": SOON_MS})
    simple_batches.arrive(tmp_path, 1)
    with monkeypatch.context() as patch:
        patch.setattr(*hangs_at, lambda *_, **__: time.sleep(LONG_S))
        patch.setattr(Ledger, "longest_lease_ms", lambda _: 0)
        with pytest.raises(TimedOut, match=r"(looking for the next batch|claiming the pipeline) has taken longer"):
            advance(definition, simple_batches.no_spark)
    claim = ledger_of(definition).state().claim
    assert claim is None or claim.released
    unbounded = definition.model_copy(update={"batch_timeout_ms": 600_000})
    assert [report.batch_id for report in advance(unbounded, simple_batches.no_spark)] == [1]


def test_waiting_for_a_sign_of_another_machine_does_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simple_batches.compute_simply(monkeypatch)
    definition = simple_batches.pipeline(tmp_path)
    simple_batches.arrive(tmp_path, 1)
    with dead_owner("elsewhere"):
        Ledger(definition.store, wall_clock_ms, 25 * SOON_MS).claim()
    impatient = definition.model_copy(update={"batch_timeout_ms": 20 * SOON_MS, "lease_timeout_ms": SOON_MS})
    assert [report.batch_id for report in advance(impatient, simple_batches.no_spark)] == [1]


@pytest.mark.fault(
    "of several pipelines, one hangs while it publishes the batch of a dead run",
    "it is stopped after its `batch_timeout`; the others continue",
)
def test_a_hanging_roll_forward_stops_no_other_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simple_batches.compute_simply(monkeypatch)
    both = [simple_batches.pipeline(tmp_path / name) for name in ("one", "two")]
    for name in ("one", "two"):
        simple_batches.arrive(tmp_path / name, 1)
    with stopped("commit:results"):
        advance(both[0], simple_batches.no_spark)
    first, second = both[0].model_copy(update={"batch_timeout_ms": SOON_MS}), both[1].model_copy(update={"name": "two"})
    monkeypatch.setattr(at_work, "roll_forward", lambda *_: time.sleep(LONG_S))
    monkeypatch.setattr(together, "sharing_key", lambda _: None)
    ends = together.advance_together([RunRequest.of(one, clock) for one in (first, second)], simple_batches.no_spark)
    assert [type(end.error) for end in ends] == [TimedOut, type(None)]
    assert [report.batch_id for report in ends[1].reports] == [1]


def hanging(spark: SparkSession, release: Path) -> None:
    """A job of the engine that does not end until `release` exists."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        while not Path(str(release)).exists():
            time.sleep(0.05)
        yield from batches

    spark.range(1).mapInArrow(wait, "id long").collect()


@pytest.fixture
def hangs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[set[str]]:
    """Names of pipelines whose batches hang in a job. The jobs end after the test."""
    names, read, release = {"clicks"}, reading.read, tmp_path / "release"

    def reads(inputs: Any) -> Any:
        if inputs.definition.name in names:
            hanging(inputs.spark, release)
        return read(inputs)

    monkeypatch.setattr(reading, "read", reads)
    yield names
    release.touch()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_a_batch_that_hangs_in_the_engine_is_ended_and_done_again(
    spark: SparkSession, tmp_path: Path, hangs: set[str]
) -> None:
    definition = clicks(tmp_path, 1, ONE_FILE)
    with pytest.raises(TimedOut, match="batch 1 has taken longer than batch_timeout = 8s"):
        advance(definition, lambda: spark, clock=clock)
    state = ledger_of(definition).state()
    assert state.commit is None
    assert state.claim is not None
    assert state.claim.released
    hangs.clear()
    (tmp_path / "release").touch()
    unbounded = definition.model_copy(update={"batch_timeout_ms": 600_000})
    assert [report.batch_id for report in advance(unbounded, lambda: spark, clock=clock)] == [1]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("a batch that hangs, of one pipeline, is ended in make test")
def test_one_of_several_pipelines_that_hangs_leaves_the_others_alone(
    spark: SparkSession, tmp_path: Path, hangs: set[str]
) -> None:
    both = [clicks(tmp_path, 1, ONE_FILE), other(tmp_path)]
    ends = advance_together([RunRequest.of(one, clock) for one in both], lambda: spark)
    assert [type(end.error) for end in ends] == [TimedOut, type(None)]
    assert [report.batch_id for report in ends[1].reports] == [1]


def other(folder: Path) -> Definition:
    """A pipeline over the same files that does not hang."""
    file = folder / "other.toml"
    file.write_text(CLICKS.replace('"clicks"', '"other"').replace('gap = "10m"', 'gap = "11m"'))
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / "other")})


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize(
    ("step", "asked", "what"),
    [
        ("windowlib.inspection.verify.verify._expected", ["verify"], "verify"),
        pytest.param(
            "windowlib.reruns.dry_run.look",
            ["rerun", "--dry-run", "--from", "2026-03-02T00:00Z", *UNTIL],
            "the preview",
            marks=pytest.mark.long("verify is bounded by the same lines in make test"),
        ),
    ],
)
@pytest.mark.fault("verify or a preview hangs in the engine", "it is stopped after `batch_timeout`")
def test_a_hanging_computation_of_a_command_is_stopped(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, asked: list[str], what: str
) -> None:
    advance(clicks(tmp_path, 1), lambda: spark, clock=clock)
    engine = "sail" if is_sail(spark) else "spark"
    text = ONE_FILE.replace("8s", "3s").replace("[source]", f'engine = "{engine}"\n[source]', 1)
    definition = clicks(tmp_path, 1, text)
    release = tmp_path / "release"
    monkeypatch.setattr(step, lambda inputs, *others: hanging(inputs.spark, release))
    ended = CliRunner().invoke(app, [asked[0], str(definition.file), *asked[1:]])
    release.touch()
    assert ended.exit_code == UNEXPECTED
    assert f"error: {what} has taken longer than batch_timeout = 3s and was ended; start it again" in ended.output
