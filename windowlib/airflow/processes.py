"""Command in its own process group: its output line by line, and an end that leaves no child process behind.

A Spark job consists of several processes (Python, JVM, Python workers), and so does a local Airflow. The parent must be
able to end all these processes: by leaving the `with` block, by an exception in it, or from a signal handler.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Self


class ProcessGroup:
    """Started command with all its children. Leaving the `with` block ends the processes that still run.

    >>> import sys
    >>> with ProcessGroup([sys.executable, "-c", "print('one'); print('two')"]) as process:
    ...     list(process.lines()), process.wait()
    (['one', 'two'], 0)
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str | None] | None = None, grace_seconds: float = 3
    ) -> None:
        """Starts the command. `environment` changes its variables; None removes one."""
        self._grace_seconds = grace_seconds
        variables = {**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={name: value for name, value in variables.items() if value is not None},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()
        self._output.close()

    def lines(self) -> Iterator[str]:
        """Lines of output and errors as they arrive, without line ends."""
        for line in self._output:
            yield line.rstrip("\n")

    def wait(self) -> int:
        """Waits for the end of the command. Returns its exit code, negative if a signal ended it."""
        return self._process.wait()

    def alive(self) -> bool:
        """Tests if the command itself still runs."""
        return self._process.poll() is None

    def end(self) -> None:
        """Sends SIGTERM to the remaining processes, and SIGKILL after `grace_seconds`."""
        for ask, seconds in ((signal.SIGTERM, self._grace_seconds), (signal.SIGKILL, 1)):
            deadline = time.monotonic() + seconds
            if not self._signal(ask):
                return
            while time.monotonic() < deadline and self._signal(0):
                self._process.poll()  # an ended child stays in its group until it is waited for
                time.sleep(0.02)

    @property
    def _output(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _signal(self, number: int) -> bool:
        """Sends a signal to the group. Returns False if the group has no process."""
        self._process.poll()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
            return True
        return False
