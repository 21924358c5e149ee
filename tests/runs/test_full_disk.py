"""A disk that refuses writes: full at every step of a run, or read-only. Real disks, mounted for the test."""

from __future__ import annotations

import errno
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import clicks, clock, tables
from tests.support.disks import filled, folder_of, in_memory, read_only
from tests.support.simple_batches import Reader, before_each_step, compute_simply, pipeline_of, read_simply
from tests.support.strategies import ALL
from windowlib.batches.planning import ledger_of, plan
from windowlib.cli.exits import UNEXPECTED, pipeline_tables, print_error
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk
from windowlib.storage.refusals import CannotWrite, refusal_of, refusals_named

VALUES = [10 * number + digit for number in (1, 2) for digit in range(3)]
A_RUN_KB = 128  # more than a run of one batch takes
ROOMS_KB = range(0, A_RUN_KB, 4 if ALL else 24)  # every sixth room, and fortieth step, in make test: each is a run
EACH_STEP = 1 if ALL else 40


def no_spark() -> Any:
    return None


@pytest.fixture
def simply(monkeypatch: pytest.MonkeyPatch) -> None:
    compute_simply(monkeypatch)


@pytest.fixture(scope="module")
def after_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pipeline that has read one file of two."""
    return read_simply(tmp_path_factory.mktemp("after") / "one", 1)


@pytest.fixture
def begun(simply: None, after_one: Path, tmp_path: Path) -> Path:
    """A copy of that folder, for one test."""
    return Path(shutil.copytree(after_one, tmp_path / "begun"))


@pytest.fixture
def small(mounts: None, begun: Path, tmp_path: Path) -> Iterator[Path]:
    """The same folder on a small disk."""
    with in_memory(tmp_path / "disk", size_mb=8) as disk:
        yield shutil.copytree(begun, disk / "pipeline")


def as_undisturbed(folder: Path) -> None:
    """The next run finishes the rest, with the tables of an undisturbed run."""
    advance(pipeline_of(folder), no_spark)
    reader = Reader(folder)
    reader.watch()
    assert reader.all_values() == VALUES
    assert reader.results_alone() == [10, 11, 12, 20, 22]


@pytest.mark.fault(
    "the disk is full at any step of a run",
    "the run names the folder and the free space; the next run finishes the batch",
)
def test_a_full_disk_at_every_step(mounts: None, begun: Path, tmp_path: Path) -> None:
    ends = set()
    for room_kb in ROOMS_KB:
        with in_memory(tmp_path / f"{room_kb}", size_mb=8) as disk:
            folder = Path(shutil.copytree(begun, disk / "pipeline"))
            with filled(disk, leaving_kb=room_kb):
                ends.add(end_on_a_full_disk(folder))
            as_undisturbed(folder)
    assert ends == {"nothing planned", "planned", "prepared", "committed"}


def end_on_a_full_disk(folder: Path) -> str:
    """Progress of a run that must end with one sentence about the reason."""
    if said := refusal(lambda: advance(pipeline_of(folder), no_spark)):
        assert said.startswith(f"no space is left for {folder_of(pipeline_of(folder))} ("), said
        assert said.endswith((": make room, and the next run finishes batch 2", ": make room and run again")), said
    Reader(folder).watch()
    if committed(folder) == 2:
        return "committed"
    assert said
    state = ledger_of(pipeline_of(folder)).state()
    return "prepared" if state.prepared else "planned" if state.plan else "nothing planned"


def refusal(act: Callable[[], object]) -> str | None:
    """The sentence about the disk; None if nothing is wrong."""
    said = None
    try:
        act()
    except CannotWrite as error:
        said = str(error)
    assert "\n" not in (said or "")
    return said


def committed(folder: Path) -> int:
    """The newest batch that exists."""
    commit = ledger_of(pipeline_of(folder)).state().commit
    return commit.batch_id if commit else 0


@pytest.mark.long("it is said of a run on an engine, too, in make test")
def test_the_message_names_the_space_needed(small: Path) -> None:
    with filled(small.parent, leaving_kb=40), pytest.raises(CannotWrite, match=r"needs more than the \d+ KB that were"):
        advance(pipeline_of(small), no_spark)


def test_retries_on_a_full_disk_leave_no_files(small: Path) -> None:
    """Each retry fails while it computes or publishes. It adds no file but the ledger's rows about its claim."""
    root, frozen = folder_of(pipeline_of(small)), plan(pipeline_of(small))
    before = data_files(root)
    for leaving_kb in (24, 32):
        with filled(small.parent, leaving_kb), pytest.raises(CannotWrite, match="batch 2"):
            advance(pipeline_of(small), no_spark)
        assert data_files(root) == before
    assert ledger_of(pipeline_of(small)).state().plan == frozen
    as_undisturbed(small)


def data_files(root: Path) -> set[Path]:
    """Files of every table but the ledger, committed or not, and of prepared publications."""
    found = (file for file in root.rglob("*") if file.is_file() and "_delta_log" not in file.parts)
    return {file for file in found if file.parent.name != "ledger"}


@pytest.mark.promised(
    "a storage that refuses writes is one sentence and exit code 1, and the next run finishes", "disk"
)
@pytest.mark.fault(
    "the disk becomes read-only at any step of a run", "the run says so; the next run finishes the batch"
)
def test_a_read_only_disk_at_every_step(mounts: None, begun: Path, tmp_path: Path) -> None:
    steps = steps_of(Path(shutil.copytree(begun, tmp_path / "undisturbed")))
    for number in range(1, steps, EACH_STEP):
        with in_memory(tmp_path / f"{number}", size_mb=8) as disk, ExitStack() as until_then:
            folder = Path(shutil.copytree(begun, disk / "pipeline"))

            def at_that_step(step: int) -> None:
                if step == number:  # noqa: B023
                    until_then.enter_context(read_only(disk))

            said = refusal(lambda: steps_of(folder, at_that_step))  # noqa: B023
            if said is None:
                assert committed(folder) == 2, "a run ended well on a disk that it could not write to"
            else:
                assert f"{folder_of(pipeline_of(folder))} is on a read-only disk. Nothing is lost" in said
            Reader(folder).watch()
            until_then.close()
            as_undisturbed(folder)


def steps_of(folder: Path, at: Callable[[int], None] = lambda step: None) -> int:
    """Runs, and calls `at` with the number of each step before it. Returns the number of steps."""
    steps = 0

    def step(what: str) -> None:
        nonlocal steps
        steps += 1
        at(steps)

    with pytest.MonkeyPatch.context() as patch:
        before_each_step(step, patch)
        advance(pipeline_of(folder), no_spark)
    return steps


@pytest.mark.fault(
    "an unforeseen error occurs while the disk is full", "the message says so; the traceback is written elsewhere"
)
def test_a_traceback_is_written_elsewhere_if_the_disk_is_full(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = folder_of(pipeline_of(small))
    pipeline_tables.set(Disk(root))
    with filled(small.parent, leaving_kb=0):
        assert print_error(RuntimeError("a fault"), "run") == UNEXPECTED
    said = capsys.readouterr().err
    assert said.startswith("error: RuntimeError: a fault (full traceback: ")
    file = Path(said.removesuffix(")\n").rpartition(" ")[2])
    assert "a fault" in file.read_text(encoding="utf-8")
    assert root not in file.parents
    file.unlink()


def test_what_the_operator_sees(begun: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For every command, whichever library failed to write."""
    pipeline_tables.set(pipeline_of(begun).store)
    java = RuntimeError("Job aborted: java.io.IOException: No space left on device")
    assert print_error(java, "run") == UNEXPECTED
    assert capsys.readouterr().err.startswith(f"error: no space is left for {folder_of(pipeline_of(begun))} (")


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize(
    "room_kb",
    [
        pytest.param(40, id="while it writes"),
        pytest.param(
            180,
            id="while the run does",
            marks=pytest.mark.long("without an engine it is full at each step, in make test"),
        ),
    ],
)
def test_full_while_an_engine_runs(spark: SparkSession, mounts: None, tmp_path: Path, room_kb: int) -> None:
    folder = tmp_path / "pipeline"
    advance(clicks(folder, 1), lambda: spark, clock=clock)
    with in_memory(tmp_path / "disk", size_mb=8) as disk:
        on_disk = clicks(Path(shutil.copytree(folder, disk / "pipeline")), 2)
        with filled(disk, room_kb), pytest.raises(CannotWrite, match=r"needs more than the .* finishes batch 2$"):
            advance(on_disk, lambda: spark, clock=clock)
        advance(on_disk, lambda: spark, clock=clock)
        undisturbed = clicks(folder, 2)
        advance(undisturbed, lambda: spark, clock=clock)
        assert tables(on_disk) == tables(undisturbed)


RUNS = """
import sys
from pathlib import Path
import pytest
from tests.support.simple_batches import compute_simply, pipeline_of

from windowlib.runs.advance import advance
from windowlib.storage.refusals import CannotWrite, refusal_of
from windowlib.storage.disk import Disk
with pytest.MonkeyPatch.context() as patch:
    compute_simply(patch)
    for folder in sys.argv[1:]:
        try:
            advance(pipeline_of(Path(folder)), lambda: None)
            print("written")
        except CannotWrite as error:
            print(error)
"""


@pytest.mark.fault(
    "the user may not write to a folder of the pipeline",
    "the run names it; once the user may, the next run finishes the batch",
)
def test_a_folder_of_another_user(less: list[str], begun: Path, tmp_path: Path) -> None:
    """For each folder separately, in one process."""
    denied = [
        (folder_of(pipeline_of(Path(shutil.copytree(begun, tmp_path / str(number))))), name)
        for number, name in enumerate(("results/_delta_log", "ledger/_delta_log", "_prepared"))
    ]
    folders = [root / name for root, name in denied]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o555)
    command = [*less, sys.executable, "-c", RUNS, *(tmp_path / str(number) for number in range(len(denied)))]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
    finally:
        for folder in filter(Path.exists, folders):  # the run removes the empty one
            folder.chmod(0o755)
    said = ran.stdout.splitlines()
    assert len(said) == len(denied), ran.stdout + ran.stderr  # one line each
    for number, (root, name) in enumerate(denied):
        assert said[number].startswith(f"this user may not write to {root / name}"), said[number] + ran.stderr
        assert f"all of {root}: grant it" in said[number]
        as_undisturbed(tmp_path / str(number))


def test_a_source_that_may_not_be_read_is_not_the_disk_of_the_tables(tmp_path: Path) -> None:
    denied = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "incoming" / "1.parquet"))
    assert refusal_of(denied, Disk(tmp_path / "warehouse")) is None
    assert refusal_of(denied, Disk(tmp_path / "incoming")) is not None


def test_a_file_size_limit_is_named_as_the_cause(tmp_path: Path) -> None:
    rows = pa.table({"value": list(range(10_000))})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with (
            pytest.raises(CannotWrite, match=r"`ulimit -f` .* the next run finishes batch 7"),
            refusals_named(Disk(tmp_path), 7),
        ):
            pq.write_table(rows, tmp_path / "1.parquet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_system_that_allows_no_folders() -> None:
    store = Disk(Path("/proc/warehouse/clicks"))
    expected = r"/proc/warehouse/clicks is on a read-only disk\. .*make it writable"
    with pytest.raises(CannotWrite, match=expected), refusals_named(store):
        store.create("ledger/_delta_log/0.json", b"")
