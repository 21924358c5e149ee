"""Runs tests again and again without paying for the start of pytest: a process that forks a child for each call.

The process stands in a copy of the project and has imported nothing of it but this package; of the packages of
others it has imported what tests take longest to import. It reads a line of JSON for each call (pytest's arguments and
the seconds they may take), and answers with a line: the exit code, of a child that did not end in time `TIMED_OUT`.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

TIMED_OUT = 124
NOT_FOUND = 4  # pytest's exit code where it finds not all the tests that it is to run
BUSY = 8  # by so much more than a call computes it may take
LIMIT_SECONDS = 120.0  # of a mutant that never ends, where no other limit is given
PRELOADED = [
    *("deltalake", "hypothesis", "pyarrow.dataset", "pyspark.sql.connect.session", "great_expectations"),
    *("pydantic", "rich.console", "sqlglot", "typer"),
]
LIMIT_BYTES = 8 * 2**30  # a mutant that never stops to grow is to fail, not to take the machine along


class Runner:
    """Runs pytest in `folder`, on Sail."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "tests.mutants.runner"]
        # Without options of the calling pytest's; with Python's files, or each call would compile all modules again.
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "", "PYTEST_ADDOPTS": ""}
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self) -> None:
        self.process.communicate()  # at the end of its input it ends

    def exit_code(self, tests: list[str], limit_seconds: float = LIMIT_SECONDS) -> int:
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
        print(json.dumps([[*own, *tests], limit_seconds]), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    @property
    def said(self) -> str:
        """What pytest said last."""
        return (self.folder / "said").read_text(errors="replace")

    def failed(self, tests: list[str]) -> list[str]:
        """The one of the tests that failed in the last call, or could not begin; none where a module is broken."""
        lines = [line.partition(" ")[2] for line in self.said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        return [test for test in tests if any(line == test or line.startswith(f"{test} - ") for line in lines)]

    def missing(self, tests: list[str]) -> list[str]:
        """Those of which pytest did not find the function, or not all of its parameters, in the last call."""
        lines = [line for line in self.said.splitlines() if line.startswith("ERROR: not found: ")]
        return [test for test in tests if any(line.endswith(f"/{test.split('[')[0]}") for line in lines)]


def _serve() -> None:
    import pytest

    for name in PRELOADED:
        importlib.import_module(name)
    asker = os.getppid()
    for line in sys.stdin:
        arguments, limit_seconds = json.loads(line)
        child = os.fork()
        if child == 0:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))
            said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit_seconds), int(limit_seconds)))
            for stream in (1, 2):
                os.dup2(said, stream)
            _judge_here()
            code = int(pytest.main(arguments))
            sys.stdout.flush()
            os._exit(code)
        print(_waited(child, asker, BUSY * limit_seconds), flush=True)


def _judge_here() -> None:
    """From now on checks are judged in this process, which has Great Expectations: another would import it first."""
    with suppress(Exception):  # a mutant that cannot be imported: its tests say so
        from windowlib.quality import check

        check.get_ready = lambda: None


def _waited(child: int, asker: int, limit_seconds: float) -> int:
    until = time.monotonic() + limit_seconds
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
