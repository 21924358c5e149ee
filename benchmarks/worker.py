"""A process for each side, that does a piece of its work when asked and reports how long it took."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection

from benchmarks.sides.side import STEP, Piece, Task

SPAWN = multiprocessing.get_context("spawn")
Start = Callable[[str, Task, bool], AbstractContextManager[Callable[[Piece], float]]]


class SideFailed(RuntimeError):
    """A side could not do its work: `why`, a line; the message has its traceback."""

    def __init__(self, side: str, why: str) -> None:
        super().__init__(f"{side} failed:\n{why}")
        self.why = why.strip().splitlines()[-1]


@contextmanager
def worker(side: str, task: Task, new_process: bool) -> Iterator[Callable[[Piece], float]]:
    """A call that lets `side` do one piece of work, and gives the seconds that it took.

    With `new_process`, each piece has a process of its own, and the seconds are those of its life.
    """
    if new_process:
        yield lambda piece: _life(side, task, piece)
        return
    here, process = _started(side, task)

    def once(piece: Piece) -> float:
        here.send(piece)
        return _answer(here, side)

    try:
        _answer(here, side)  # it is ready
        yield once
    finally:
        here.close()
        process.join()


@contextmanager
def in_this_process(side: str, task: Task, new_process: bool = False) -> Iterator[Callable[[Piece], float]]:
    """The same in this process, where no side can disturb another's time because no comparison uses it."""
    from benchmarks.sides.registry import SIDES

    pieces = SIDES[side].work(task)
    next(pieces)

    def once(piece: Piece) -> float:
        began = time.perf_counter()
        pieces.send(piece)
        return time.perf_counter() - began

    yield once
    pieces.close()


def _life(side: str, task: Task, piece: Piece) -> float:
    began = time.perf_counter()
    here, process = _started(side, task)
    try:
        _answer(here, side)
        here.send(piece)
        _answer(here, side)
    finally:
        here.close()
        process.join()
    return time.perf_counter() - began


def _started(side: str, task: Task) -> tuple[Connection, multiprocessing.process.BaseProcess]:
    here, there = SPAWN.Pipe()
    process = SPAWN.Process(target=_serve, args=(side, task, there), daemon=True)
    process.start()
    there.close()  # so that the end of the process is seen here
    return here, process


def _answer(here: Connection, side: str) -> float:
    try:
        answer = here.recv()
    except EOFError as error:
        raise SideFailed(side, "its process ended before its work was done") from error
    if isinstance(answer, str):
        raise SideFailed(side, answer)
    return float(answer)


def _serve(side: str, task: Task, calls: Connection) -> None:
    """Times the next piece of work whenever it is asked to, until the last request."""
    from benchmarks.sides.registry import SIDES

    with suppress(EOFError, BrokenPipeError):
        try:
            pieces = SIDES[side].work(task)
            next(pieces)  # up to the first yield: the session
            calls.send(0.0)
            while True:
                piece: Piece = calls.recv() or STEP
                began = time.perf_counter()
                pieces.send(piece)
                calls.send(time.perf_counter() - began)
            # A side's own children end with it, here as at the end of the calls.
        except EOFError:
            pieces.close()
        except Exception:
            calls.send(traceback.format_exc())
