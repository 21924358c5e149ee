"""Starting, finding and ending the warm engine of this user and installation.

An engine fits when its versions (Spark, Python, Java, windowlib's own code) and its settings are those that would be
started now; one that does not is replaced, and ends once no client is connected. Two starts at once give one
engine: the lock is held until the first has said in the state file that it is starting, and the second waits for it.
"""

from __future__ import annotations

import hashlib
import json
import platform
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psutil

from windowlib.engines import jvm
from windowlib.engines.connect import EngineError
from windowlib.engines.spark import on_this_machine, settings_of
from windowlib.engines.warm.keeper import connections
from windowlib.engines.warm.state import LOG, PACKAGE, EngineState, folder, forget, locked, read

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
KEPT_WITHIN_SECONDS, READY_WITHIN_SECONDS = 30, 120
IDLE_SECONDS = 3600.0
MASTER = "local[*]"
Commands = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Status:
    """An engine's status. `clients` are connected now; `fits`: a run would use it, and not replace it."""

    port: int
    pid: int
    started_at: float
    idle_seconds: float | None
    clients: int
    memory_bytes: int
    versions: dict[str, str]
    conf: dict[str, str]
    fits: bool
    log: Path


def ensure(companions: Commands = ()) -> EngineState:
    """The engine for a run: the one that is there, or one that is started now with the settings of the one before."""
    before = read(folder())
    conf, idle_seconds = (before.conf, before.idle_seconds) if before else ({}, IDLE_SECONDS)
    return start(conf, idle_seconds, companions=companions)


def start(
    conf: Mapping[str, str],
    idle_seconds: float | None = IDLE_SECONDS,
    port: int | None = None,
    companions: Commands = (),
) -> EngineState:
    """An engine with these settings, ready: the one that is there if it fits, else a new one in its place.

    `idle_seconds`: after how long without a client it ends (None: never); `port`: a free one if not given;
    `companions`: processes that begin and end with it, and have to end when their standard input is closed. Raises
    `EngineError` when it cannot be started.
    """
    place = folder()
    with locked(place):
        found = read(place)
        if found and _fits(found, conf) and found.alive and (port is None or found.port == port):
            state = found
        else:
            if found:
                _replace(found)
            state = _launch(place, conf, idle_seconds, port or _free_port(), companions)
    try:
        return _wait_until_ready(place, state)
    except EngineError:
        with locked(place):
            _kill(state)
            if state is not found:
                forget(place, state, found)
        raise


def stop() -> bool:
    """Ends the engine, whatever it is doing; whether one ran."""
    place = folder()
    with locked(place):
        found = read(place)
        return found is not None and _kill(found)


def status() -> Status | None:
    """The engine's status; None without one."""
    place = folder()
    found = read(place)
    process = found.server.found() if found and found.server else None
    if found is None or process is None or not found.alive:
        return None
    return Status(
        port=found.port,
        pid=process.pid,
        started_at=found.started_at,
        idle_seconds=found.idle_seconds,
        clients=connections(process.pid, found.port),
        memory_bytes=process.memory_info().rss,
        versions=found.versions,
        conf=found.conf,
        fits=_fits(found, found.conf),
        log=place / LOG,
    )


def versions() -> dict[str, str]:
    """What an engine depends on, by name."""
    java = Path(jvm.java()).resolve()
    newest = max(int(file.stat().st_mtime) for file in PACKAGE.rglob("*.py"))
    return {
        "spark": version("pyspark"),
        "python": f"{platform.python_version()} ({sys.executable})",
        "java": str(java),
        "great_expectations": version("great-expectations"),
        "windowlib": f"{version('windowlib')} ({PACKAGE}, {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(newest))})",
    }


def _settings(conf: Mapping[str, str]) -> dict[str, str]:
    return {
        **settings_of(MASTER, conf),
        **on_this_machine(),
        "spark.app.name": "windowlib engine",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.port.maxRetries": "0",
    }


def _fingerprint(conf: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(_settings(conf), sort_keys=True).encode()).hexdigest()[:16]


def _fits(state: EngineState, conf: Mapping[str, str]) -> bool:
    return state.versions == versions() and state.settings == _fingerprint(conf)


def _launch(
    place: Path, conf: Mapping[str, str], idle_seconds: float | None, port: int, companions: Commands
) -> EngineState:
    """Starts a keeper, and returns when it has written its state."""
    settings = {**_settings(conf), "spark.connect.grpc.binding.port": str(port)}
    token = secrets.token_hex(16)
    asked = {
        "command": jvm.command(settings, ["--class", SERVER, "spark-internal"]),
        "environment": {
            **jvm.added_environment(),
            "PYSPARK_PYTHON": settings["spark.pyspark.python"],  # a Connect server does not look at the setting
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": token,
        },
        "companions": companions,
        "port": port,
        "token": token,
        "versions": versions(),
        "settings": _fingerprint(conf),
        "conf": dict(conf),
        "idle_seconds": idle_seconds,
    }
    with (place / LOG).open("w") as log:
        subprocess.run(
            [sys.executable, "-P", "-m", "windowlib.engines.warm.keeper", str(place)],
            input=json.dumps(asked).encode(),
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=place,
            start_new_session=True,  # neither Ctrl-C nor the end of the run that needed it first is for the engine
            check=False,
        )
    deadline = time.monotonic() + KEPT_WITHIN_SECONDS
    while (state := read(place)) is None or state.token != token or state.server is None:
        if time.monotonic() > deadline:
            raise _failed(place, KEPT_WITHIN_SECONDS)
        time.sleep(0.02)
    return state


def _wait_until_ready(place: Path, state: EngineState) -> EngineState:
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while not state.ready:
        if not state.alive or time.monotonic() > deadline:
            raise _failed(place, READY_WITHIN_SECONDS)
        time.sleep(0.02)
        now = read(place)
        if now and now.keeper == state.keeper:
            state = now
    return state


def _failed(place: Path, seconds: float) -> EngineError:
    log = place / LOG
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    reason = lines[0] if lines else "its log is empty"
    return EngineError(f"the warm engine was not ready within {seconds} s, or ended: {reason} (log: {log})")


def _replace(state: EngineState) -> None:
    """Lets an engine that does not fit end when its last client has left; one without a keeper ends now."""
    keeper = state.keeper.found()
    if keeper and state.alive:
        with suppress(psutil.NoSuchProcess):
            keeper.send_signal(signal.SIGHUP)
    else:
        _kill(state)


def _kill(state: EngineState) -> bool:
    """Ends what is left of an engine; whether anything was."""
    found = [process for known in (state.keeper, state.server) if known and (process := known.found())]
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, left = psutil.wait_procs(found, timeout=15)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=5)
    return bool(found)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
