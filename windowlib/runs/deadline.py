"""A bound for what may hang: an engine's job, the judge, a member of a group.

The block runs in the process's main thread. When its time is over, the engine is asked to drop its jobs, so that the
call that waits for them fails; where that does not help, a signal raises an error in that thread, wherever it waits;
what waits in code that no signal reaches is ended with the whole process, `GRACE_S` later. Either way the claim is free
and nothing is published that was not prepared: the next try finishes the batch. In other threads there is no bound.
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
DROPPED_S = 10  # for an engine to drop its jobs
UNEXPECTED = 1  # the exit code of a process that is ended; `windowlib.cli.exits` names it


OF_A_BATCH = "the next run finishes it. Where it is honest work, set batch_timeout higher or max_files_per_run lower"
OF_A_LOOK = "run again. Where nothing else is wrong, the storage of the source or of the warehouse hangs"
OF_A_COMMAND = "start it again. Where it is honest work, set batch_timeout higher, or ask for less"


class TimedOut(TryAgain):
    """A batch, or a command's computation, took longer than `batch_timeout`."""


class Expired(BaseException):
    """Raised where the main thread waits; no handler of errors on the way takes it for one of its own.

    What must be cleaned up in any case names it (`FAILED`).
    """


FAILED = (Exception, Expired)


@contextmanager
def within(
    timeout_ms: int, what: str, engines: Sequence[SparkSession] = (), advice: str = OF_A_BATCH, *, waits_ms: int = 0
) -> Iterator[None]:
    """Raises `TimedOut` where the block takes longer than `timeout_ms`; `what` begins the sentence, `advice` ends it.

    Then `engines` are asked to drop what they still compute. `waits_ms` is how much longer the block may take because
    it waits for something on purpose.

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
    """What looks over a block of the main thread, from a thread of its own; `sentence` is said if the process ends."""

    def __init__(self, sentence: str, engines: Sequence[SparkSession]) -> None:
        self.sentence, self.engines = sentence, engines
        self.done, self.expired = threading.Event(), threading.Event()
        self._ending, self._thread = threading.Lock(), threading.get_ident()

    def alarm(self, number: int, frame: FrameType | None) -> None:
        """Where the main thread is when the signal reaches it."""
        if not self.done.is_set():
            raise Expired

    def over(self, timeout_ms: int) -> None:
        """Waits for the end of the block, and ends it when its time is over."""
        if self.done.wait(timeout_ms / 1000):
            return
        self.expired.set()
        for engine in self.engines:
            threading.Thread(target=_interrupt, args=(engine,), daemon=True).start()
        if self.engines and self.done.wait(DROPPED_S):
            return  # the engine has dropped its jobs, and the caller that waited for them has seen it
        for _ in range(GRACE_S):  # again and again: what cleans up on the way may wait, too
            with self._ending:
                if self.done.is_set():
                    return
                signal.pthread_kill(self._thread, signal.SIGALRM)
            if self.done.wait(1):
                return
        _end(self.sentence)

    def end(self) -> None:
        """The block has ended: from here on no signal is sent."""
        with self._ending:
            self.done.set()


def bounded(limit_ms: int, what: str, spark: SparkSession) -> AbstractContextManager[None]:
    """What a command computes outside of batches has `batch_timeout` as a batch has; raises `TimedOut`."""
    return within(limit_ms, what, [spark], OF_A_COMMAND)


def _interrupt(spark: SparkSession) -> None:
    """An engine that cannot drop its jobs, or does not answer, is left alone."""
    with suppress(Exception):
        spark.interruptAll()


def _end(sentence: str) -> NoReturn:
    print(visible(f"error: {sentence}"), file=sys.stderr, flush=True)
    os._exit(UNEXPECTED)
