"""What commands start: runs, reruns and previews on the Spark session that their definition asks for.

What is asked for, and who hears of it, is a `RunRequest`; `on_batch` is called with each batch when it is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from windowlib.definition.definition import Definition
from windowlib.engines.choice import check_engine
from windowlib.ledger.ledger import Superseded, wall_clock_ms
from windowlib.ledger.rerun_request import Rerun
from windowlib.reruns.dry_run import dry_run
from windowlib.reruns.previews import Preview
from windowlib.runs.advance import batches
from windowlib.runs.attempt import BatchReport
from windowlib.runs.deadline import OF_A_LOOK, bounded, within
from windowlib.runs.operation import Note
from windowlib.runs.run import RunRequest, Say, first_plan, saying
from windowlib.runs.spark_errors import explained
from windowlib.runs.spark_sessions import spark_sessions
from windowlib.runs.together import OnBatch, RunOutcome, advance_together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
LOOK_AGAIN_S = 2  # whether another run has ended


def run(
    asked: RunRequest, *, on_batch: Callable[[BatchReport], None] = lambda report: None, max_batches: int | None = None
) -> list[BatchReport]:
    """As `windowlib.runs.advance.advance`, on the definition's own Spark session.

    When an engine is lost in the middle of a batch, the run does that batch once more, as the next run would. Raises as
    `advance` does, and `EngineLost`.
    """
    spark, reports = spark_sessions(asked.definition), list[BatchReport]()
    announced = _announced(spark, asked.definition.engine, asked.say)
    try:
        if first := first_plan(asked):
            spark.prepare(first)
            with closing(batches(asked, announced, max_batches, spark.replace)) as made:
                for report in made:
                    reports.append(report)
                    on_batch(report)
                    asked.say(f"looking for more after batch {report.batch_id}")
    finally:
        spark.close()
    return reports


def rerun(
    asked: RunRequest, *, wait_ms: int = 0, on_batch: Callable[[BatchReport], None] = lambda report: None
) -> BatchReport:
    """Does the rerun that a run is asked for, after what a dead run has left; gives what it did.

    Waits up to `wait_ms` while another run is in progress. Raises `RerunRefused`, `Superseded`, and as `run` does.
    """
    return waiting(lambda: run(asked, on_batch=on_batch)[-1], wait_ms, asked.say)


def preview(definition: Definition, wanted: Rerun, say: Say) -> Preview:
    """A dry run of a rerun, on the definition's own Spark session, which is started once the rerun may be done.

    Raises `RerunRefused`, `TimedOut`, and as `plan` does.
    """
    with within(definition.batch_timeout_ms, "planning the rerun", (), OF_A_LOOK):
        planned = dry_run(definition, wanted, wall_clock_ms)
    return with_spark(definition, "the preview", planned.preview, say)


def waiting(work: Callable[[], T], wait_ms: int, say: Note) -> T:
    """What `work` makes; while another run is at work it is tried again, for `wait_ms` at most, then `Superseded`."""
    until = time.monotonic() + wait_ms / 1000
    while True:
        try:
            return work()
        except Superseded:
            if time.monotonic() >= until:
                raise
            say("another run is in progress: waiting for its end")
            time.sleep(LOOK_AGAIN_S)


def run_together(
    runs: Sequence[RunRequest], *, on_batch: OnBatch = lambda definition, report: None, max_batches: int | None = None
) -> list[RunOutcome]:
    """As `windowlib.runs.together.advance_together`, on the Spark session that all the definitions ask for.

    When an engine is lost in the middle of a batch, that batch is done once more, as by `run`.
    """
    first = runs[0]
    spark = spark_sessions(first.definition)
    for other in runs[1:]:
        check_engine(other.definition.engine, other.definition.source, other.definition.uses)
    try:
        announced = _announced(spark, first.definition.engine, first.say)
        return advance_together(runs, announced, on_batch=on_batch, max_batches=max_batches, on_lost=spark.replace)
    finally:
        spark.close()


def with_spark(definition: Definition, what: str, work: Callable[[SparkSession], T], say: Say) -> T:
    """What `work` makes on the Spark session that a definition asks for, outside any batch.

    It has `batch_timeout` for it, as a batch has: `what` names it where it takes longer (`TimedOut`). What Spark fails
    at is said as a run says it (`windowlib.runs.spark_errors`).
    """

    def within_the_limit(spark: SparkSession) -> T:
        with bounded(definition.batch_timeout_ms, what, spark):
            return work(spark)

    return with_spark_for_long(definition, within_the_limit, say)


def with_spark_for_long(definition: Definition, work: Callable[[SparkSession], T], say: Say) -> T:
    """As `with_spark`, where `work` waits for others or makes many batches: it bounds its parts itself."""
    engine = spark_sessions(definition)
    try:
        with explained(definition.file, definition.expressions, definition.computed_by, of_a_batch=False):
            spark = _announced(engine, definition.engine, say)()
            with saying(say, "computing", spark):
                return work(spark)
    finally:
        engine.close()


def _announced(spark: Callable[[], SparkSession], engine: str, say: Say) -> Callable[[], SparkSession]:
    """`spark`, with a line of progress before it starts and once it has."""

    def started() -> SparkSession:
        say(f"starting {engine.capitalize()}")
        found = spark()
        say("computing")
        return found

    return started
