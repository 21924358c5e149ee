"""What a JVM says on its standard error: kept while it starts, to say why it ended, then passed on.

The process writes into a pipe. Once it is up, what it has said comes out on our standard error, and what it says from
then on, too.
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
    """The standard error of one process: `given` is what that process is started with."""

    def __init__(self) -> None:
        self._ours, self.given = os.pipe()
        self._kept: list[bytes] = []
        self._is_up = False
        self._lock = Lock()
        self._thread = Thread(target=self._listen, name="windowlib-jvm-stderr", daemon=True)
        self._thread.start()

    def pass_on(self) -> None:
        """The process is up. Waits for no one who does not read our standard error."""
        Thread(target=self._pass_on, name="windowlib-jvm-stderr", daemon=True).start()

    def _pass_on(self) -> None:
        with self._lock:
            self._is_up = True
            _write(b"".join(self._kept))
            self._kept.clear()

    def reason(self, within_seconds: float = 5) -> str | None:
        """Why the process has ended, in its own words; None where it has said nothing."""
        self._thread.join(within_seconds)
        with self._lock:
            return gist(b"".join(self._kept).decode("utf-8", errors="replace"))

    def _listen(self) -> None:
        try:
            while said := os.read(self._ours, 1 << 16):
                with self._lock:
                    if self._is_up:
                        _write(said)
                    else:
                        self._kept.append(said)
        finally:
            os.close(self._ours)


@contextmanager
def listening() -> Iterator[ProcessStderr]:
    """The words of a process that the block starts; of none, if it fails to."""
    words = ProcessStderr()
    try:
        yield words
    finally:
        os.close(words.given)


def gist(said: str) -> str | None:
    r"""The first line that says something, without the classes of Java.

    >>> gist('WARNING: incubator\nException in thread "main" org.apache.spark.SparkException: no master\n\tat org.a.b')
    'no master'
    >>> gist("Invalid maximum heap size: -Xmxmany\nError: Could not create the Java Virtual Machine.")
    'Invalid maximum heap size: -Xmxmany'
    """
    lines = (line for line in said.splitlines() if line.strip() and not _FRAME.match(line) and not _NOISE.match(line))
    return next((_BEFORE.sub("", _AFTER.sub("", line.strip())) for line in lines), None)


def _write(said: bytes) -> None:
    """Puts words out; where standard error is full or closed they are lost, and nothing else is."""
    with suppress(OSError):
        while said:
            said = said[os.write(STDERR, said) :]
