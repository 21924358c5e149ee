"""Several requests at once: on an object store they take as long as the slowest of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from typing import TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")

THREADS = 16  # more than a pipeline has tables


def at_once(step: Callable[[T], R], items: Iterable[T], threads: int = THREADS) -> list[R]:
    """Calls `step` for each item, in at most `threads` threads. Returns the results in the order of the items.

    All calls have ended when this returns or raises. Raises the error of the first item in order that failed.

    The calling thread takes part. So short calls, as those of a disk, seldom wait for another thread, and calls within
    calls always go on.

    >>> at_once(str.upper, ["a", "b", "c"])
    ['A', 'B', 'C']
    """
    chosen = list(items)
    waiting, results, errors = iter(range(len(chosen))), dict[int, R](), dict[int, BaseException]()

    def work() -> None:
        for number in waiting:
            try:
                results[number] = step(chosen[number])
            except BaseException as error:
                errors[number] = error
                if not isinstance(error, Exception):  # the process is to end
                    return

    helpers = [_pool(os.getpid()).submit(work) for _ in range(min(threads, len(chosen)) - 1)]
    try:
        work()
    finally:
        wait([helper for helper in helpers if not helper.cancel()])
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(chosen))]


def both(first: Callable[[], T], second: Callable[[], R]) -> tuple[T, R]:
    """Calls two functions at once, and returns their results. Raises as `at_once`.

    >>> both(lambda: 1, lambda: "a")
    (1, 'a')
    """
    steps: list[Callable[[], object]] = [first, second]
    one, other = at_once(lambda step: step(), steps)
    return cast(T, one), cast(R, other)


@lru_cache(maxsize=1)
def _pool(_process: int) -> ThreadPoolExecutor:
    """Threads of this process. Those of the process that it was forked from do not exist here."""
    return ThreadPoolExecutor(THREADS, "windowlib-at-once")
