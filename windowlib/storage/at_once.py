"""Several requests at once: on an object store they take as long as the slowest of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

THREADS = 16  # more than a pipeline has tables


def at_once(step: Callable[[T], R], items: Iterable[T], threads: int = THREADS) -> list[R]:
    """Calls `step` for each item, in at most `threads` threads. Returns the results in the order of the items.

    All calls have ended when this returns or raises. Raises the error of the first item in order that failed.

    >>> at_once(str.upper, ["a", "b", "c"])
    ['A', 'B', 'C']
    """
    chosen = list(items)
    if len(chosen) < 2:
        return [step(item) for item in chosen]
    with ThreadPoolExecutor(min(threads, len(chosen)), "windowlib-at-once") as pool:
        return [call.result() for call in [pool.submit(step, item) for item in chosen]]
