"""Progress of an engine's tasks, for progress lines only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ProgressText = Callable[[], str]


@contextmanager
def task_progress(spark: SparkSession) -> Iterator[ProgressText]:
    """Yields a function that returns the progress of the running stages, such as ", 40 of 200 tasks".

    The string is appended to the name of a step. It is empty if no stage runs, or if the engine, like Sail, reports no
    stages.
    """
    from pyspark.errors import PySparkAttributeError

    try:
        tracker = spark.sparkContext.statusTracker()
    except PySparkAttributeError:  # over Spark Connect
        yield from _connect_progress(spark)
        return

    def progress_text() -> str:
        with suppress(Exception):  # the JVM may be ending: a line of progress must not end the run
            infos = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
            return in_words(sum(info.numCompletedTasks for info in infos), sum(info.numTasks for info in infos))
        return ""

    yield progress_text


def _connect_progress(spark: SparkSession) -> Iterator[ProgressText]:
    tasks = [0, 0]

    def handle(*, stages: Sequence[Any] | None = None, done: bool = False, **_: object) -> None:
        running = [] if done else [stage for stage in stages or () if not stage.done]
        tasks[:] = [sum(stage.num_completed_tasks for stage in running), sum(stage.num_tasks for stage in running)]

    spark.registerProgressHandler(handle)  # type: ignore[arg-type]
    try:
        yield lambda: in_words(*tasks)
    finally:
        spark.removeProgressHandler(handle)  # type: ignore[arg-type]


def in_words(done: int, tasks: int) -> str:
    """Phrase with the number of finished tasks; empty without tasks.

    >>> in_words(40, 200), in_words(0, 0)
    (', 40 of 200 tasks', '')
    """
    return f", {done:,} of {tasks:,} tasks" if tasks else ""
