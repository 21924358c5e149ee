"""The process behind a claim: who it is, and whether it can still be at work.

A process is *in sight* where its number means the same process to us: the same boot of the same machine and, as two
containers may share both, the same PID namespace. Of one in sight the kernel says whether it runs. One that is defunct,
or stopped by a signal, is not at work: its claim is free, and should it wake, the ledger refuses its rows.

Of any other process only its heartbeats are known. Clocks of two machines differ, so their times say nothing; it
counts as ended when no heartbeat of it came in for `lease_timeout` (the longer one, of its definition and ours) by *our
own* monotonic clock.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from enum import Enum
from pathlib import Path

import psutil

CLOCK_STEP_S = 2  # by so much the same boot and the same start may differ after the machine's clock was corrected
START_FIELD = 19  # of /proc/PID/stat after the name: field 22 as `man proc` counts
DAG_RUN = "WINDOWLIB_DAG_RUN"  # the environment variable in which a task names its run: JSON of [dag_id, run_id]
LOOKS = 40  # at the ledger in one `lease_timeout`
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ProcessState(Enum):
    """What can be said about a process."""

    AT_WORK = "at work"
    ENDED = "ended"
    OUT_OF_SIGHT = "out of sight"


@dataclass(frozen=True, slots=True)
class Owner:
    """A process. `boot` and `started` are in seconds since the epoch by its machine's clock.

    `boot_id` and `namespace` are what Linux calls this boot and the PID namespace, `ticks` the start in the kernel's
    ticks since that boot, which no correction of the clock moves; None where there are none.
    `lease_timeout_ms` is how often it promises a heartbeat. `dag_id` and `run_id` name the run of Airflow
    that started it; None where none did.

    >>> Owner.of_json(this_process().to_json()).life()
    <ProcessState.AT_WORK: 'at work'>
    """

    host: str
    boot: int
    pid: int
    started: float
    boot_id: str | None = None
    namespace: str | None = None
    ticks: int | None = None
    lease_timeout_ms: int | None = None
    dag_id: str | None = None
    run_id: str | None = None

    @classmethod
    def of_json(cls, text: str) -> Owner:
        """The owner that a claim row names; what a newer release has added is left out."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text).items() if name in known})

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @property
    def dag_run(self) -> tuple[str, str] | None:
        """The run of Airflow that started it: the ids of its DAG and of the run."""
        return (self.dag_id, self.run_id) if self.dag_id and self.run_id else None

    def __str__(self) -> str:
        here = "this machine" if self.host == socket.gethostname() else self.host
        return f"process {self.pid} on {here}"

    def life(self) -> ProcessState:
        """Whether the process can be at work, as far as this one sees."""
        if not self._in_sight(this_process()):
            return ProcessState.OUT_OF_SIGHT
        try:
            process = psutil.Process(self.pid)
            same = self._is(process)
            working = same and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD, psutil.STATUS_STOPPED)
        except psutil.NoSuchProcess:
            return ProcessState.OUT_OF_SIGHT if _is_hidden(self.pid) else ProcessState.ENDED
        except psutil.AccessDenied:
            return ProcessState.OUT_OF_SIGHT
        return ProcessState.AT_WORK if working else ProcessState.ENDED

    def lease_ms(self, ours_ms: int) -> int:
        """How long a sign of it is waited for: an edited definition makes no run impatient with another."""
        return max(ours_ms, self.lease_timeout_ms or 0)

    def is_same(self, other: Owner) -> bool:
        """Whether both are one process, whatever was done to the clock between."""
        if not self._in_sight(other) or self.pid != other.pid:
            return False
        if self.boot_id and self.ticks is not None and other.ticks is not None:
            return self.ticks == other.ticks
        return abs(self.started - other.started) <= CLOCK_STEP_S

    def _is(self, process: psutil.Process) -> bool:
        """Whether a process that runs now, of that number, is this one."""
        if self.boot_id and self.ticks is not None and (ticks := _ticks(self.pid)) is not None:
            return ticks == self.ticks
        return bool(abs(process.create_time() - self.started) <= CLOCK_STEP_S)

    def _in_sight(self, here: Owner) -> bool:
        if self.boot_id and here.boot_id:
            return (self.boot_id, self.namespace) == (here.boot_id, here.namespace) and self.namespace is not None
        return self.host == here.host and abs(self.boot - here.boot) <= CLOCK_STEP_S


def this_process() -> Owner:
    """The process that runs this."""
    process = psutil.Process()
    boot, started = int(psutil.boot_time()), process.create_time()
    kernel = _boot_id(), _namespace(), _ticks(process.pid)
    dag_id, run_id = json.loads(os.environ.get(DAG_RUN) or "[null, null]")
    return Owner(socket.gethostname(), boot, process.pid, started, *kernel, dag_id=dag_id, run_id=run_id)


def shows_life(sign: Callable[[], object], timeout_ms: int) -> bool:
    """Whether `sign` changes within `timeout_ms` of now; waits until it does, or until they have passed.

    >>> shows_life(lambda: 7, timeout_ms=20), shows_life(time.monotonic, timeout_ms=20)
    (False, True)
    """
    first, until = sign(), time.monotonic() + timeout_ms / 1000
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, timeout_ms / 1000 / LOOKS))
        if sign() != first:
            return True
    return False


def _ticks(pid: int) -> int | None:
    """When a process started, in ticks since the boot; None where the kernel does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[START_FIELD])


def _is_hidden(pid: int) -> bool:
    """Whether there is a process that `/proc` does not show to this user (mounted with hidepid)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return False  # it began just now, or is our own and ending


def _boot_id() -> str | None:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None


def _namespace() -> str | None:
    """What distinguishes our PID namespace from others; None where `/proc` shows another one than ours."""
    try:
        return os.readlink("/proc/self/ns/pid") if os.readlink("/proc/self") == str(os.getpid()) else None
    except OSError:
        return None
