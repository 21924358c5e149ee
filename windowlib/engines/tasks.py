"""How far an engine has come with what it computes: for lines of progress, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Far = Callable[[], str]


@contextmanager
def followed(spark: SparkSession) -> Iterator[Far]:
    """A call, for the block, that gives the words to add to what is being done: ", 40 of 200 tasks".

    They are of the stages at work. The text is empty where none is, or where the engine does not say: Sail.
    """
    from pyspark.errors import PySparkAttributeError

    try:
        tracker = spark.sparkContext.statusTracker()
    except PySparkAttributeError:  # of Spark Connect
        yield from _of_connect(spark)
        return

    def far() -> str:
        with suppress(Exception):  # the JVM may be ending: a line of progress must not end the run
            infos = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
            return in_words(sum(info.numCompletedTasks for info in infos), sum(info.numTasks for info in infos))
        return ""

    yield far


def _of_connect(spark: SparkSession) -> Iterator[Far]:
    tasks = [0, 0]

    def heard(*, stages: Sequence[Any] | None = None, done: bool = False, **_: object) -> None:
        at_work = [] if done else [one for one in stages or () if not one.done]
        tasks[:] = [sum(one.num_completed_tasks for one in at_work), sum(one.num_tasks for one in at_work)]

    spark.registerProgressHandler(heard)  # type: ignore[arg-type]
    try:
        yield lambda: in_words(*tasks)
    finally:
        spark.removeProgressHandler(heard)  # type: ignore[arg-type]


def in_words(done: int, tasks: int) -> str:
    """
    >>> in_words(40, 200), in_words(0, 0)
    (', 40 of 200 tasks', '')
    """
    return f", {done:,} of {tasks:,} tasks" if tasks else ""
