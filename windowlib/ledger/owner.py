"""Process behind a claim: its identity, and a test if the process can still be at work.

A process is *in sight* if its process id means the same process here. That needs the same boot of the same machine and
the same PID namespace, because two containers may share a boot. The kernel tells if a process in sight is running. A
process that is defunct or stopped by a signal is not at work: its claim is free. If it wakes up, the ledger refuses its
rows.

A process out of sight shows only heartbeats. The clocks of two machines differ, so the times in its rows prove nothing.
The process counts as ended if no heartbeat arrives for `lease_timeout` by the monotonic clock *of this process*. If the
definitions of the two processes state different timeouts, the longer timeout counts.
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

CLOCK_STEP_S = 2  # times of the same boot or start may differ by this after the machine's clock was corrected
START_FIELD = 19  # of /proc/PID/stat after the name: field 22 as `man proc` counts
DAG_RUN = "WINDOWLIB_DAG_RUN"  # environment variable in which a task names its run: JSON of [dag_id, run_id]
LOOKS = 40  # readings of the ledger in one `lease_timeout`
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ProcessState(Enum):
    """State of a process, as far as the current process can observe it."""

    AT_WORK = "at work"
    ENDED = "ended"
    OUT_OF_SIGHT = "out of sight"


@dataclass(frozen=True, slots=True)
class Owner:
    """A process. `boot` and `started` are in seconds since the epoch by its machine's clock.

    `boot_id` and `namespace` are the names that Linux gives this boot and the PID namespace. `ticks` is the start in
    the kernel's ticks since the boot, which no correction of the clock changes. All three are None on other systems.
    The process promises a heartbeat within `lease_timeout_ms`. `dag_id` and `run_id` name the Airflow run that started
    the process. Both are None if Airflow did not start the process.

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
        """Reads the owner that a claim row names. Ignores fields that a newer release has added."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text).items() if name in names})

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @property
    def dag_run(self) -> tuple[str, str] | None:
        """The Airflow run that started the process, as (DAG id, run id)."""
        return (self.dag_id, self.run_id) if self.dag_id and self.run_id else None

    def __str__(self) -> str:
        here = "this machine" if self.host == socket.gethostname() else self.host
        return f"process {self.pid} on {here}"

    def life(self) -> ProcessState:
        """State of the process, as the current process sees it."""
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
        """Time in ms to wait for a heartbeat: the owner's `lease_timeout_ms` or `ours_ms`, whichever is longer."""
        return max(ours_ms, self.lease_timeout_ms or 0)

    def is_same(self, other: Owner) -> bool:
        """Tests if both are the same process, even if the clock was corrected meanwhile."""
        if not self._in_sight(other) or self.pid != other.pid:
            return False
        if self.boot_id and self.ticks is not None and other.ticks is not None:
            return self.ticks == other.ticks
        return abs(self.started - other.started) <= CLOCK_STEP_S

    def _is(self, process: psutil.Process) -> bool:
        """Tests if `process`, which has the same process id, is the process of this owner."""
        if self.boot_id and self.ticks is not None and (ticks := _ticks(self.pid)) is not None:
            return ticks == self.ticks
        return bool(abs(process.create_time() - self.started) <= CLOCK_STEP_S)

    def _in_sight(self, here: Owner) -> bool:
        if self.boot_id and here.boot_id:
            return (self.boot_id, self.namespace) == (here.boot_id, here.namespace) and self.namespace is not None
        return self.host == here.host and abs(self.boot - here.boot) <= CLOCK_STEP_S


def this_process() -> Owner:
    """The current process."""
    process = psutil.Process()
    boot, started = int(psutil.boot_time()), process.create_time()
    kernel = _boot_id(), _namespace(), _ticks(process.pid)
    dag_id, run_id = json.loads(os.environ.get(DAG_RUN) or "[null, null]")
    return Owner(socket.gethostname(), boot, process.pid, started, *kernel, dag_id=dag_id, run_id=run_id)


def shows_life(sign: Callable[[], object], timeout_ms: int) -> bool:
    """Tests if the value of `sign` changes within `timeout_ms` from now. Waits for the change or the timeout.

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
    """Start of a process in ticks since the boot; None if the kernel does not provide it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[START_FIELD])


def _is_hidden(pid: int) -> bool:
    """Tests if a process exists although `/proc`, mounted with hidepid, does not show it to this user."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return False  # the process began just now, or is our own child and ends


def _boot_id() -> str | None:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None


def _namespace() -> str | None:
    """Name of our PID namespace; None if `/proc` shows another namespace than ours."""
    try:
        return os.readlink("/proc/self/ns/pid") if os.readlink("/proc/self") == str(os.getpid()) else None
    except OSError:
        return None
