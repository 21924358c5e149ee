"""Runs tests again and again without paying for the start of pytest: a process that forks a child for each call.

The process stands in a copy of the project and has imported nothing of it but this package. It reads a line of JSON
for each call (pytest's arguments), and answers with a line: the exit code, of a child that never ended `TIMED_OUT`.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

TIMED_OUT = 124
LIMIT_SECONDS = 120  # of a mutant that never ends; a call has a minute of tests by default
LIMIT_BYTES = 8 * 2**30  # a mutant that never stops to grow is to fail, not to take the machine along


class Runner:
    """Runs pytest in `folder`, on Sail."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "tests.mutants.runner"]
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self) -> None:
        self.process.communicate()  # at the end of its input it ends

    def exit_code(self, tests: list[str]) -> int:
        """Of pytest over the tests, which ends at the first that fails."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        own = ["-q", "-x", "-p", "no:cacheprovider", f"--basetemp={self.folder / 'tmp'}"]
        own += [
            "--tb=no",
            "-W",
            "ignore::pytest.PytestAssertRewriteWarning",
        ]  # of plugins that this process has imported
        if any(test.startswith("tests/") for test in tests):  # whose conftest knows the option; doctests alone do not
            own += ["--engine", "sail"]
        print(json.dumps([*own, *tests]), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    @property
    def said(self) -> str:
        """What pytest said last."""
        return (self.folder / "said").read_text(errors="replace")

    @property
    def failed(self) -> list[str]:
        """The test that failed in the last call; none where pytest could not say so."""
        names = (line.removeprefix("FAILED ") for line in self.said.splitlines() if line.startswith("FAILED "))
        return [name.split(" - ")[0] for name in names]


def _serve() -> None:
    import deltalake  # noqa: F401
    import hypothesis  # noqa: F401
    import pyarrow as pa  # noqa: F401
    import pytest

    asker = os.getppid()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))
            said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (1, 2):
                os.dup2(said, stream)
            code = int(pytest.main(json.loads(line)))
            sys.stdout.flush()
            os._exit(code)
        print(_waited(child, asker), flush=True)


def _waited(child: int, asker: int) -> int:
    until = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < until and os.getppid() == asker:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return TIMED_OUT


if __name__ == "__main__":
    _serve()
