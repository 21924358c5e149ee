"""A Spark Connect server for tests, started by the command that the cluster guide gives to systemd."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.support.quick import QUICK
from tests.support.strategies import ALL
from windowlib.definition.toml.masters import TOKEN_VARIABLE

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "cluster.md"
BIN = Path(sys.executable).parent  # not resolved: a virtual environment's Python is a link
PRINTED_BIN, PRINTED_PORT = "/opt/windowlib/.venv/bin", "15002"
TOKEN = "token-of-tests"
READY_SECONDS = 240


@cache
def printed_unit() -> dict[str, str]:
    """Section `[Service]` of the unit that the guide prints."""
    [unit] = re.findall(r"^```ini\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # keys as they are written
    parser.read_string(unit.replace("\\\n", " "))
    return dict(parser["Service"])


def started_as_printed(port: int, options: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
    """Command line and variables of the unit, with the paths and the port of this machine, and more options.

    In `make test` with settings that compile little (`tests.support.quick`), in `make test-all` with none.
    """
    here = {PRINTED_BIN: str(BIN), PRINTED_PORT: str(port)}
    command, variables = printed_unit()["ExecStart"], printed_unit()["Environment"]
    for printed, actual in here.items():
        assert printed in command
        command, variables = command.replace(printed, actual), variables.replace(printed, actual)
    program, *arguments = shlex.split(command)
    quick = [] if ALL else [part for pair in QUICK.items() for part in ("--conf", "=".join(pair))]
    return [program, *quick, *options, *arguments], dict(pair.split("=", 1) for pair in shlex.split(variables))


@dataclass
class ConnectServer:
    """A server on this machine. It keeps its port when it is started again.

    options:    further options of `spark-submit`
    variables:  further variables of the server's process
    """

    folder: Path
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=lambda: free_port())
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"sc://localhost:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a client's process."""
        return {**os.environ, TOKEN_VARIABLE: TOKEN}

    def start(self) -> int:
        """Starts the server unless it runs; returns its process number once it listens."""
        if self.process is None or self.process.poll() is not None:
            command, variables = started_as_printed(self.port, self.options)
            with self.log.open("wb") as log:
                self.process = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env={**self.environment, **self.variables, **variables},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    process_group=0,
                )
        deadline = time.monotonic() + READY_SECONDS
        while not self._listens():
            said = self.log.read_text(errors="replace")
            assert self.process.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.2)
        return self.process.pid

    def end(self) -> int:
        """Ends the server as systemd does; returns its exit code."""
        assert self.process is not None
        self.process.terminate()
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
