"""State of the process behind a claim: real processes that run, are stopped, are defunct, or have their own PID
namespace.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support.killed import dead_owner
from windowlib.ledger import owner as owners
from windowlib.ledger.ledger import Ledger, Superseded, wall_clock_ms
from windowlib.ledger.owner import Owner, ProcessState, this_process
from windowlib.storage.disk import Disk

ROOT = Path(__file__).parents[2]
SOON_MS = 900
CLAIMS = """
import sys, time
from pathlib import Path
from windowlib.ledger.lease import lease
from windowlib.ledger.ledger import Ledger, wall_clock_ms
from windowlib.storage.disk import Disk
ledger = Ledger(Disk(Path(sys.argv[1])), wall_clock_ms, int(sys.argv[2]))
_, claim = ledger.claim()
with lease(ledger, claim):
    print("at work", flush=True)
    time.sleep(60)
"""


@contextmanager
def at_work(folder: Path, lease_ms: int = SOON_MS, within: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the pipeline in `folder`. `within` is the start of its command."""
    command = [*within, sys.executable, "-c", CLAIMS, str(folder), str(lease_ms)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "at work\n"
            yield process
        finally:
            process.kill()


def until(status: str, process: subprocess.Popen[str]) -> None:
    """Waits until the kernel reports this state of a process."""
    deadline = time.monotonic() + 10
    while psutil.Process(process.pid).status() != status:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def claimed_by(folder: Path) -> int:
    """Epoch of a claim made now. A process on this machine is judged at once, so the claim does not wait."""
    began = time.monotonic()
    _, claim = Ledger(Disk(folder), wall_clock_ms, 600_000).claim()
    assert time.monotonic() - began < 60
    return claim.epoch


def test_a_running_process_holds_what_it_claimed(tmp_path: Path) -> None:
    with at_work(tmp_path) as process, pytest.raises(Superseded, match=f"process {process.pid} on this machine"):
        claimed_by(tmp_path)


@pytest.mark.fault("SIGSTOP stops a run", "it blocks no other run and is refused when it wakes")
def test_a_stopped_process_is_refused_when_it_wakes(tmp_path: Path) -> None:
    with at_work(tmp_path) as process:
        process.send_signal(signal.SIGSTOP)
        until(psutil.STATUS_STOPPED, process)
        assert claimed_by(tmp_path) == 2
        process.send_signal(signal.SIGCONT)
        time.sleep(SOON_MS / 1000)
        assert Ledger(Disk(tmp_path), wall_clock_ms).state().claim.epoch == 2


def test_a_defunct_process_holds_nothing(tmp_path: Path) -> None:
    """Killed, and not waited for by its parent, as Airflow's supervisor may leave it."""
    with at_work(tmp_path) as process:
        process.kill()
        until(psutil.STATUS_ZOMBIE, process)
        assert claimed_by(tmp_path) == 2


@pytest.mark.fault("another process has the number of a dead run", "it holds no claim")
def test_a_reused_process_number_holds_no_claim() -> None:
    here = this_process()
    assert here.ticks is not None
    assert replace(here, ticks=here.ticks - 1).life() is ProcessState.ENDED
    assert replace(here, ticks=None, started=here.started - 60).life() is ProcessState.ENDED


@pytest.mark.fault("the machine's clock is corrected by an hour during a run", "the run keeps its claim")
def test_a_corrected_clock_ends_no_claim() -> None:
    here = this_process()
    before = replace(here, started=here.started - 3_600, boot=here.boot - 3_600)
    assert before.life() is ProcessState.AT_WORK
    assert before.is_same(here)
    assert not replace(here, ticks=0).is_same(here)
    assert not replace(here, pid=1).is_same(here)


@pytest.mark.fault(
    "`hidepid` hides another user's run in `/proc`", "it is judged by its heartbeats, not considered dead"
)
@pytest.mark.parametrize("seen", [psutil.NoSuchProcess(7), psutil.AccessDenied(7)])
def test_a_hidden_process_is_judged_by_its_heartbeats(monkeypatch: pytest.MonkeyPatch, seen: psutil.Error) -> None:
    owner = replace(this_process(), pid=7)

    def refuse(*_: int) -> None:
        raise PermissionError

    def hide(pid: int) -> psutil.Process:
        raise seen

    monkeypatch.setattr(owners, "this_process", lambda: owner)
    monkeypatch.setattr(owners.psutil, "Process", hide)
    monkeypatch.setattr(owners.os, "kill", refuse)
    assert owner.life() is ProcessState.OUT_OF_SIGHT


@pytest.mark.fault(
    "two machines run a pipeline with different values of `lease_timeout`",
    "each waits as long as the other machine's own value",
)
def test_a_claim_lasts_as_long_as_its_owner_promised(tmp_path: Path) -> None:
    said: list[str] = []
    with dead_owner("elsewhere"):
        _, claim = Ledger(Disk(tmp_path), wall_clock_ms, 3 * SOON_MS).claim()
    patient = Ledger(Disk(tmp_path), wall_clock_ms, 3 * SOON_MS)
    beating = threading.Timer(2 * SOON_MS / 1000, patient.write, [{"kind": "heartbeat"}, claim.epoch])
    beating.start()
    with pytest.raises(Superseded, match="on elsewhere"):
        Ledger(Disk(tmp_path), wall_clock_ms, 1).claim(said.append)
    beating.join()
    assert said[0].startswith(f"waiting up to {3 * SOON_MS // 1000} s")


@pytest.mark.parametrize(("age_ms", "holds"), [(0, True), (59_999, True), (60_000, False)])
def test_a_lease_of_exactly_its_timeout_has_ended(tmp_path: Path, age_ms: int, holds: bool) -> None:
    with dead_owner("elsewhere"):
        _, claim = Ledger(Disk(tmp_path), wall_clock_ms, 60_000).claim()
    holder = Ledger(Disk(tmp_path), lambda: claim.alive_at_ms + age_ms, 1).holder(claim)  # as long as it has promised
    assert (holder is not None) == holds


@pytest.mark.parametrize("other", [{"boot_id": "another"}, {"namespace": "pid:[1]"}, {"namespace": None}])
def test_a_process_of_another_boot_or_namespace_is_out_of_sight(other: dict[str, str | None]) -> None:
    """Even if another process has that process id here, and the host has the same name."""
    assert replace(this_process(), pid=1, **other).life() is ProcessState.OUT_OF_SIGHT


def test_a_claim_with_fewer_or_more_fields_is_read() -> None:
    here = this_process()
    text = f'{{"host": "{here.host}", "boot": {here.boot}, "pid": {here.pid}, "started": {here.started}}}'
    assert Owner.of_json(text).life() is ProcessState.AT_WORK
    assert Owner.of_json(text.replace("}", ', "of_a_newer_release": 1}')).pid == here.pid
    assert Owner.of_json(text.replace(here.host, "elsewhere")).life() is ProcessState.OUT_OF_SIGHT


@pytest.mark.fault("two containers share a host name", "they judge each other by heartbeats only")
def test_two_containers_on_one_host_see_heartbeats_only(tmp_path: Path, namespaces: tuple[str, ...]) -> None:
    """Its host name and boot are ours. Its process id is 1, which is another process here."""
    with at_work(tmp_path, within=namespaces) as process:
        said: list[str] = []
        with pytest.raises(Superseded, match="process 1 on this machine"):
            Ledger(Disk(tmp_path), wall_clock_ms, 4 * SOON_MS).claim(said.append)
        assert len(said) == 1
        for child in psutil.Process(process.pid).children():
            os.kill(child.pid, signal.SIGKILL)
        assert Ledger(Disk(tmp_path), wall_clock_ms, SOON_MS).claim()[1].epoch == 2


@pytest.fixture
def namespaces(without_rights: list[str]) -> tuple[str, ...]:
    """Start of a command that runs it in its own PID namespace."""
    within = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    try:
        subprocess.run([*within, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        without_rights.append("PID namespaces (unshare --pid): two containers on one host")
        pytest.skip(f"needs the right to make PID namespaces: {error}")
    return within
