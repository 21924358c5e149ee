"""Time limit for work that may hang: an engine's job, the check process, or one pipeline of several.

The block runs in the main thread of the process. When its time is over, up to three steps follow, until the block ends:

- The engine is asked to drop its jobs, so that the call that waits for these jobs fails.
- A signal raises an error in the main thread, wherever that thread waits.
- After `GRACE_S` the whole process ends, because the main thread waits in code that no signal interrupts.

In each case the claim becomes free, and a batch that is not prepared is not published. The next attempt finishes the
batch. In other threads there is no time limit.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from windowlib.definition.toml.durations import format_duration
from windowlib.definition.visible import visible
from windowlib.model.errors import TryAgain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRACE_S = 60
DROPPED_S = 10  # time for an engine to drop its jobs
UNEXPECTED = 1  # exit code of a process that is ended here; `windowlib.cli.exits` names it


BATCH_ADVICE = "the next run finishes it. If it needs the time, set batch_timeout higher or max_files_per_run lower"
LOOKUP_ADVICE = "run again. If it happens again, check if the storage of the source or of the warehouse hangs"
COMMAND_ADVICE = "start it again. If it needs the time, set batch_timeout higher or narrow the request"


class TimedOut(TryAgain):
    """A batch, or the computation of a command, took longer than `batch_timeout`."""


class Expired(BaseException):
    """Raised in the main thread when the time is over. It is not an `Exception`, so ordinary handlers do not catch it.

    Code that must clean up in any case catches `FAILED`.
    """


FAILED = (Exception, Expired)


@contextmanager
def within(
    timeout_ms: int, what: str, engines: Sequence[SparkSession] = (), advice: str = BATCH_ADVICE, *, waits_ms: int = 0
) -> Iterator[None]:
    """Raises `TimedOut` if the block takes longer than `timeout_ms`. `what` begins the message, `advice` ends it.

    At the limit, asks `engines` to drop their jobs. `waits_ms` extends the limit by an intended wait.

    >>> with within(60_000, "batch 1"):
    ...     pass
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    sentence = f"{what} has taken longer than batch_timeout = {format_duration(timeout_ms)} and was ended; {advice}"
    watch = _Watch(sentence, engines)
    before = signal.signal(signal.SIGALRM, watch.alarm)
    threading.Thread(target=watch.over, args=(timeout_ms + waits_ms,), name="windowlib-deadline", daemon=True).start()
    try:
        yield
    except BaseException as error:
        if watch.expired.is_set():
            raise TimedOut(sentence) from (None if isinstance(error, Expired) else error)
        raise
    finally:
        watch.end()
        signal.signal(signal.SIGALRM, before)


class _Watch:
    """Watches a block of the main thread from a separate thread. `sentence` is printed if the process ends."""

    def __init__(self, sentence: str, engines: Sequence[SparkSession]) -> None:
        self.sentence, self.engines = sentence, engines
        self.done, self.expired = threading.Event(), threading.Event()
        self._ending, self._thread = threading.Lock(), threading.get_ident()

    def alarm(self, number: int, frame: FrameType | None) -> None:
        """Handles the signal in the main thread."""
        if not self.done.is_set():
            raise Expired

    def over(self, timeout_ms: int) -> None:
        """Waits for the end of the block. Ends the block when its time is over."""
        if self.done.wait(timeout_ms / 1000):
            return
        self.expired.set()
        for engine in self.engines:
            threading.Thread(target=_interrupt, args=(engine,), daemon=True).start()
        if self.engines and self.done.wait(DROPPED_S):
            return  # the engine has dropped its jobs, and the caller that waited for them has failed
        for _ in range(GRACE_S):  # repeated, because code that cleans up may wait, too
            with self._ending:
                if self.done.is_set():
                    return
                signal.pthread_kill(self._thread, signal.SIGALRM)
            if self.done.wait(1):
                return
        _end(self.sentence)

    def end(self) -> None:
        """Ends the watch. From here on no signal is sent."""
        with self._ending:
            self.done.set()


def bounded(limit_ms: int, what: str, spark: SparkSession) -> AbstractContextManager[None]:
    """Limits a computation outside of batches to `limit_ms`, the value of `batch_timeout`. Raises `TimedOut`."""
    return within(limit_ms, what, [spark], COMMAND_ADVICE)


def _interrupt(spark: SparkSession) -> None:
    """Asks an engine to drop its jobs. Ignores errors of the engine."""
    with suppress(Exception):
        spark.interruptAll()


def _end(sentence: str) -> NoReturn:
    print(visible(f"error: {sentence}"), file=sys.stderr, flush=True)
    os._exit(UNEXPECTED)
