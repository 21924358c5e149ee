"""A command in a process group of its own: its output line by line, and an end that leaves no child behind.

A Spark job is several processes (Python, JVM, Python workers), and so is a local Airflow. The process that started
one must be able to end all of them: by leaving the `with` block, by an exception in it, or from a signal handler.
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
    """A started command and all its children. Leaving the `with` block ends what is left of them.

    >>> import sys
    >>> with ProcessGroup([sys.executable, "-c", "print('one'); print('two')"]) as process:
    ...     list(process.lines()), process.wait()
    (['one', 'two'], 0)
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None, grace_seconds: float = 3
    ) -> None:
        self._grace_seconds = grace_seconds
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()
        self._output.close()

    def lines(self) -> Iterator[str]:
        """Each line of its output, errors included, as it comes, without its end."""
        for line in self._output:
            yield line.rstrip("\n")

    def wait(self) -> int:
        """Its exit code, once it has ended; negative when a signal ended it."""
        return self._process.wait()

    def alive(self) -> bool:
        """Whether the command itself still runs."""
        return self._process.poll() is None

    def end(self) -> None:
        """Asks what is left of the group to end, and makes it after `grace_seconds`."""
        for ask, seconds in ((signal.SIGTERM, self._grace_seconds), (signal.SIGKILL, 1)):
            deadline = time.monotonic() + seconds
            if not self._signal(ask):
                return
            while time.monotonic() < deadline and self._signal(0):
                self._process.poll()  # an ended child counts as a member of its group until it has been waited for
                time.sleep(0.02)

    @property
    def _output(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _signal(self, number: int) -> bool:
        """Whether the group had a process to send this signal to."""
        self._process.poll()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
            return True
        return False
