"""Processes of a soak: commands on two simulated machines, killed, stopped and woken at random."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[3]
HOSTS = ("", "elsewhere")  # this machine, and another
AT_ONCE = 3  # processes that are awake
ENDS_IN_S = 600  # a command that takes longer hangs, on a busy machine too
VARIANTS = ("--undo", "--finish", "--dry-run")  # which a command is named with


@dataclass(slots=True)
class Started:
    """A process of a command; `stopped` until a moment, `killed` by us."""

    command: str
    process: subprocess.Popen[bytes]
    output: Path
    began: float
    stopped_until: float | None = None
    killed: bool = False

    @property
    def code(self) -> int:
        return self.process.returncode

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")


@dataclass(slots=True)
class Processes:
    """Running processes at the last look; each writes into a file of the folder."""

    folder: Path
    chance: random.Random
    started: list[Started] = field(default_factory=list)
    count: int = 0

    @property
    def are_many(self) -> bool:
        return sum(one.stopped_until is None for one in self.started) >= AT_ONCE

    def start(self, command: str, pipeline: Path, *arguments: str) -> Started:
        """Starts a command on one of the machines."""
        host = self.chance.choice(HOSTS)
        program = ["tests.world.soak.host", host] if host else ["windowlib"]
        output = self.folder / f"{self.count}.txt"
        self.count += 1
        with output.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", *program, command, str(pipeline), *arguments],
                cwd=ROOT,
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        name = " ".join([command, *(one for one in VARIANTS if command == "migrate" and one in arguments)])
        one = Started(name, process, output, time.monotonic())
        self.started.append(one)
        return one

    def kill(self) -> None:
        """SIGKILL at a random moment of a process, stopped ones too."""
        if self.started:
            time.sleep(self.chance.random() * 2)
            one = self.chance.choice(self.started)
            one.killed = True
            one.process.kill()

    def stop(self) -> None:
        """SIGSTOP, for longer than a lease or for less."""
        if awake := [one for one in self.started if one.stopped_until is None]:
            time.sleep(self.chance.random() * 2)
            one = self.chance.choice(awake)
            with suppress(ProcessLookupError):
                os.kill(one.process.pid, signal.SIGSTOP)
                one.stopped_until = time.monotonic() + self.chance.choice((0.5, 4.0, 10.0))

    def wake(self, one: Started) -> None:
        if one.stopped_until is not None:
            one.stopped_until = None
            with suppress(ProcessLookupError):
                os.kill(one.process.pid, signal.SIGCONT)

    def wake_all(self) -> None:
        for one in self.started:
            self.wake(one)

    def kill_all(self) -> None:
        """Leaves no process behind."""
        for one in self.started:
            one.process.kill()
            one.process.wait()

    def ended(self) -> list[Started]:
        """Wakes processes whose pause is over, and removes ended ones. Raises AssertionError for one that hangs."""
        found = []
        for one in list(self.started):
            if one.stopped_until is not None and time.monotonic() >= one.stopped_until:
                self.wake(one)
            if one.process.poll() is not None:
                self.started.remove(one)
                found.append(one)
            elif time.monotonic() > one.began + ENDS_IN_S:
                raise AssertionError(f"{one.command} does not end:\n{one.said()}")
        return found
