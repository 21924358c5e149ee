"""Machines without a shared disk, on each of which a run of the pipeline of clicks starts.

A machine has a home, a working folder, a temporary folder and processes of its own. It has the definition and the JARs,
and nothing else of other machines. It ends with the run.

`python -m tests.support.machines FILE [MOMENT]` is such a run. It ends by SIGKILL at the moment `BATCH:…` (see
`tests.support.killed`). Without one, it prints as JSON which batches were done.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.clicks import clock
from tests.support.killed import SOON_S, at
from windowlib.definition.definition import load_definition
from windowlib.runs.run import RunRequest
from windowlib.runs.start import run
from windowlib.source import listing

PROJECT = Path(__file__).parents[2]
APART = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", '"$@"; exit $?', "sh")
"""Beginning of a command whose processes see no others, and end with it."""
KILLED = 128 + signal.SIGKILL  # exit code of a shell whose command was killed


@dataclass(frozen=True)
class Machine:
    """A machine whose disk is `folder`."""

    folder: Path

    @classmethod
    def with_definition(cls, folder: Path, definition: Path, jars: Sequence[Path]) -> Machine:
        """A new machine with a copy of the definition."""
        machine = cls(folder)
        for path in (machine.work, machine.home, folder / "jars", folder / "tmp"):
            path.mkdir(parents=True)
        (machine.work / definition.name).write_bytes(definition.read_bytes())
        for jar in jars:
            (folder / "jars" / jar.name).symlink_to(jar)
        return machine

    @property
    def work(self) -> Path:
        """Working folder."""
        return self.folder / "work"

    @property
    def home(self) -> Path:
        """Home of the user."""
        return self.folder / "home"

    def run(self, variables: Mapping[str, str], moment: str = "") -> subprocess.CompletedProcess[str]:
        """Runs the pipeline in a process that has these environment variables, too."""
        [file] = self.work.iterdir()
        own = {"HOME": str(self.home), "TMPDIR": str(self.folder / "tmp"), "SPARK_LOCAL_DIRS": str(self.folder / "tmp")}
        own |= {"WINDOWLIB_CACHE": str(self.folder / "jars"), "PYTHONPATH": str(PROJECT)}
        command = [*APART, sys.executable, "-m", "tests.support.machines", file.name, *([moment] if moment else [])]
        environment = {**os.environ, **own, **variables}
        return subprocess.run(
            command, cwd=self.work, env=environment, capture_output=True, text=True, timeout=500, check=False
        )


def main(file: Path, moment: str = "") -> None:
    """Runs the pipeline of a definition."""
    patch = pytest.MonkeyPatch()
    patch.setattr(listing, "AHEAD_WAITS_MS", 0)  # the clock is behind the files
    if moment:
        batch, _, when = moment.partition(":")
        at(patch, when, lambda: _die(when), int(batch))
    reports = run(RunRequest.of(load_definition(file), clock))
    print(json.dumps([report.batch_id for report in reports]))


def _die(moment: str) -> None:
    if moment.startswith("write:"):  # let the engine begin
        threading.Timer(SOON_S, os.kill, (os.getpid(), signal.SIGKILL)).start()
    else:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
