"""Standard error of a JVM: kept while the JVM starts, to explain a failure, then passed on.

The JVM writes into a pipe. Once the JVM is ready, the kept output and all later output go to this process's standard
error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread

STDERR = 2
_FRAME = re.compile(r"\s*(?:at \S|\.\.\. \d+ more|Caused by: )")
_NOISE = re.compile(r"(?:OpenJDK .*)?warning:|Using Spark's|Picked up |An error occurred while calling", re.IGNORECASE)
_BEFORE = re.compile(
    r'^(?:: |Exception in thread "[^"]*" |Error: |\S+ \S+ ERROR \w+: |(?:[\w.$]+(?:Exception|Error): ))+'
)
_AFTER = re.compile(r"\s*SQLSTATE: \w+$")


class ProcessStderr:
    """Captured standard error of a process that is started with the file descriptor `write_end`."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        self._kept: list[bytes] = []
        self._is_up = False
        self._lock = Lock()
        self._thread = Thread(target=self._listen, name="windowlib-jvm-stderr", daemon=True)
        self._thread.start()

    def pass_on(self) -> None:
        """Starts to pass on the output, once the process is ready. Never blocks, even if nobody reads our stderr."""
        Thread(target=self._pass_on, name="windowlib-jvm-stderr", daemon=True).start()

    def _pass_on(self) -> None:
        with self._lock:
            self._is_up = True
            _write(b"".join(self._kept))
            self._kept.clear()

    def reason(self, within_seconds: float = 5) -> str | None:
        """Reason why the process ended, taken from its output; None if there is no output."""
        self._thread.join(within_seconds)
        with self._lock:
            return gist(b"".join(self._kept).decode("utf-8", errors="replace"))

    def _listen(self) -> None:
        try:
            while output := os.read(self._read_end, 1 << 16):
                with self._lock:
                    if self._is_up:
                        _write(output)
                    else:
                        self._kept.append(output)
        finally:
            os.close(self._read_end)


@contextmanager
def captured_stderr() -> Iterator[ProcessStderr]:
    """Captures the standard error of a process that the block starts."""
    stderr = ProcessStderr()
    try:
        yield stderr
    finally:
        os.close(stderr.write_end)


def gist(output: str) -> str | None:
    r"""First line of an output that has a message, without the names of Java classes.

    >>> gist('WARNING: incubator\nException in thread "main" org.apache.spark.SparkException: no master\n\tat org.a.b')
    'no master'
    >>> gist("Invalid maximum heap size: -Xmxmany\nError: Could not create the Java Virtual Machine.")
    'Invalid maximum heap size: -Xmxmany'
    """
    lines = (line for line in output.splitlines() if line.strip() and not _FRAME.match(line) and not _NOISE.match(line))
    return next((_BEFORE.sub("", _AFTER.sub("", line.strip())) for line in lines), None)


def _write(output: bytes) -> None:
    """Writes to standard error. If standard error is full or closed, the output is lost without an error."""
    with suppress(OSError):
        while output:
            output = output[os.write(STDERR, output) :]
