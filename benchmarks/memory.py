"""How much memory the Python workers of a side take while it works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

SAMPLE_S = 0.05


@contextmanager
def largest_worker() -> Iterator[list[int]]:
    """The greatest resident set of one of Spark's Python workers below this process, in bytes, sampled meanwhile."""
    most, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(SAMPLE_S):
            for process in psutil.Process().children(recursive=True):
                try:
                    if "pyspark" in " ".join(process.cmdline()) and process.name().startswith("python"):
                        most[0] = max(most[0], process.memory_info().rss)
                except psutil.Error:
                    continue  # it has ended meanwhile

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield most
    finally:
        done.set()
        watcher.join()
