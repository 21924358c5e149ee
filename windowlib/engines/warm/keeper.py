"""The process that holds a warm engine: starts its JVM, and ends it on request or when no client has come for long.

With the JVM begin and end its companions: processes that other parts of windowlib want for all runs of this user.

`python -P -m windowlib.engines.warm.keeper FOLDER`, with what to start as JSON on its standard input;
`windowlib.engines.warm.engine` does that.

SIGTERM    ends the engine now
SIGHUP     ends it once no client is connected: another engine has taken its place

A client is connected as long as its TCP connection lasts, whatever it does meanwhile: a long batch is not idle time.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

from windowlib.engines.warm.state import EngineState, Process, read, write

LOOK_EVERY_SECONDS = 0.5
WRITE_EVERY_SECONDS = 3600  # so that what cleans up old temporary files leaves the state alone
GRACE_SECONDS = 10


class Keeper:
    """One engine, from its start to its end."""

    def __init__(self, place: Path, asked: dict[str, Any]) -> None:
        self.place = place
        self.ending = False
        self.idle_seconds: float | None = asked["idle_seconds"]
        known = {name: asked[name] for name in ("port", "token", "versions", "settings", "conf", "idle_seconds")}
        self.state = EngineState(keeper=Process.of(os.getpid()), started_at=time.time(), **known)
        write(place, self.state)
        environment = {**os.environ, **asked["environment"]}
        # A group of its own: a signal to the JVM's group does not end this process half-way.
        self.server = subprocess.Popen(
            asked["command"], stdin=subprocess.DEVNULL, env=environment, cwd=place, process_group=0
        )
        # They end by themselves when their standard input is closed, however this process ends.
        self.companions = [
            subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0) for command in asked["companions"]
        ]
        self.state = replace(self.state, server=Process.of(self.server.pid))
        self._write()

    def run(self) -> int:
        """Waits until the engine has ended, or ends it; gives the JVM's exit code."""
        last_used = written = time.monotonic()
        while self.server.poll() is None and not self.ending:
            if not self.state.ready:
                self._look_whether_ready()
                last_used = time.monotonic()
            elif connections(self.server.pid, self.state.port):
                last_used = time.monotonic()
            elif self.idle_seconds is not None and time.monotonic() - last_used >= self.idle_seconds:
                break
            if time.monotonic() - written >= WRITE_EVERY_SECONDS:
                written = time.monotonic()
                self._write()
            time.sleep(LOOK_EVERY_SECONDS if self.state.ready else 0.1)
        return self._end()

    def end_now(self, number: int, frame: FrameType | None) -> None:
        self.ending = True

    def end_when_idle(self, number: int, frame: FrameType | None) -> None:
        self.idle_seconds = 0.0

    def _look_whether_ready(self) -> None:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.state.port), 1).close()
            self.state = replace(self.state, ready=True)
            self._write()

    def _write(self) -> None:
        """Writes the state, unless another engine has taken our place."""
        known = read(self.place)
        if known is None or known.keeper == self.state.keeper:
            write(self.place, self.state)

    def _end(self) -> int:
        for companion in self.companions:
            companion.kill()
            companion.wait()
        if self.server.poll() is None:
            self.server.terminate()
        try:
            return self.server.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.server.kill()
            return self.server.wait()


def connections(pid: int, port: int) -> int:
    """How many clients are connected to the port of a process."""
    try:
        found = psutil.Process(pid).net_connections("tcp")
    except psutil.NoSuchProcess:
        return 0
    return sum(one.status == psutil.CONN_ESTABLISHED and bool(one.laddr) and one.laddr.port == port for one in found)


def main() -> None:
    """Starts what is asked for, and stays, detached: the process that asked may end, or wait for its own children."""
    asked = json.load(sys.stdin)
    if os.fork():
        return
    keeper = Keeper(Path(sys.argv[1]), asked)
    signal.signal(signal.SIGTERM, keeper.end_now)
    signal.signal(signal.SIGHUP, keeper.end_when_idle)
    sys.exit(keeper.run() and 1)


if __name__ == "__main__":
    main()
