"""The file by which runs, the keeper and the command line know of a warm engine, and its lock.

It lies in a folder that only its user can enter: `$WINDOWLIB_ENGINE_DIR`, or one for each
installation of windowlib in the machine's temporary folder, so that two installations never share, or replace, an
engine. It must be a folder of this machine alone.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from windowlib.engines.connect import EngineError

FOLDER_VARIABLE = "WINDOWLIB_ENGINE_DIR"
STATE, LOCK, LOG = "engine.json", "lock", "engine.log"
PACKAGE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Process:
    """A process that cannot be taken for a later one with the same number."""

    pid: int
    created: float  # seconds since the epoch

    @classmethod
    def of(cls, pid: int) -> Process:
        """The process that has this number now; raises psutil.NoSuchProcess."""
        return cls(pid, psutil.Process(pid).create_time())

    def found(self) -> psutil.Process | None:
        """It, if it still runs."""
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            if process.create_time() == self.created and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None


@dataclass(frozen=True, slots=True)
class EngineState:
    """What is known of an engine. `versions` and `settings` are those it was started with, `conf` what was asked for.

    `server` is its JVM, None until there is one; `ready` says that it has answered.
    """

    keeper: Process
    port: int
    token: str = field(repr=False)
    versions: dict[str, str]
    settings: str  # a fingerprint
    conf: dict[str, str]
    idle_seconds: float | None
    started_at: float  # seconds since the epoch
    server: Process | None = None
    ready: bool = False

    @property
    def address(self) -> str:
        """Where clients find it, with the token."""
        return f"sc://localhost:{self.port}/;token={self.token}"

    @property
    def alive(self) -> bool:
        """Whether its processes run, or its keeper does and will start the other."""
        if self.keeper.found() is None:
            return False
        return self.server is None or self.server.found() is not None


def folder() -> Path:
    """The engine's folder, made if need be; raises `EngineError` when it belongs to another user."""
    *above, place = _places()
    for outer in above:
        _own(outer)
    return _own(place)


def folder_if_any() -> Path | None:
    """The engine's folder; None where there is none, or one of another user's."""
    with suppress(OSError):
        if all(place.stat().st_uid == os.getuid() for place in _places()):
            return _places()[-1]
    return None


def _places() -> list[Path]:
    """The engine's folder, the last, and those above it that must be ours."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return [Path(named).absolute()]
    user = Path(tempfile.gettempdir()) / f"windowlib-{os.getuid()}"
    installation = hashlib.sha256(f"{sys.prefix}\n{PACKAGE}".encode()).hexdigest()[:8]
    return [user, user / f"engine-{installation}"]


def _own(place: Path) -> Path:
    """A folder that only we can enter."""
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        if place.stat().st_uid != os.getuid():
            raise EngineError(f"{place} belongs to another user; name a folder of your own in {FOLDER_VARIABLE}")
        place.chmod(0o700)
    except OSError as error:
        raise EngineError(
            f"{place} cannot be used ({error}); name a folder of your own in {FOLDER_VARIABLE}"
        ) from error
    return place


def read(place: Path) -> EngineState | None:
    """The newest engine of a folder, whether it still runs or not; None when there never was one of this format."""
    try:
        raw = json.loads((place / STATE).read_text(encoding="utf-8"))
        processes = {name: Process(**raw[name]) if raw[name] else None for name in ("keeper", "server")}
        return EngineState(**{**raw, **processes})
    except (FileNotFoundError, json.JSONDecodeError, KeyError, TypeError):
        return None  # none, or one of another version of this file


def write(place: Path, state: EngineState) -> None:
    """Replaces what is known, all at once; only the user can read it."""
    handle, name = tempfile.mkstemp(dir=place)  # readable by its owner alone
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(asdict(state), file)
    os.replace(name, place / STATE)


def forget(place: Path, state: EngineState, before: EngineState | None) -> None:
    """Undoes what was written of an engine that never was ready, settings included, unless there is a newer one."""
    known = read(place)
    if known and known.token == state.token:
        if before:
            write(place, before)
        else:
            (place / STATE).unlink(missing_ok=True)


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """Keeps other processes from starting or ending an engine meanwhile; the end of this process unlocks, too."""
    with (place / LOCK).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
