"""Entry points of commands: runs, reruns and previews on the Spark session that the definition names.

A `RunRequest` holds the request and its listeners. `on_batch` is called with each batch when it is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from windowlib.definition.definition import Definition
from windowlib.ledger.ledger import Superseded, wall_clock_ms
from windowlib.ledger.rerun_request import Rerun
from windowlib.reruns.dry_run import dry_run
from windowlib.reruns.previews import Preview
from windowlib.runs.advance import batches
from windowlib.runs.attempt import BatchReport
from windowlib.runs.claimed_pipeline import first_batch
from windowlib.runs.deadline import LOOKUP_ADVICE, bounded, within
from windowlib.runs.operation import Note
from windowlib.runs.run import RunRequest, Say, saying
from windowlib.runs.spark_errors import explained
from windowlib.runs.spark_sessions import spark_sessions
from windowlib.runs.together import OnBatch, RunOutcome, advance_together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
LOOK_AGAIN_S = 2  # pause between tests if another run has ended


def run(
    request: RunRequest,
    *,
    on_batch: Callable[[BatchReport], None] = lambda report: None,
    max_batches: int | None = None,
) -> list[BatchReport]:
    """Runs `windowlib.runs.advance.advance` on the definition's own Spark session.

    If an engine is lost during a batch, the run does that batch once more, as the next run would. Raises the errors of
    `advance`, and `EngineLost`.
    """
    spark, reports = spark_sessions(request.definition), list[BatchReport]()
    announced = _announced(spark, request.definition.engine, request.say)
    try:
        if first := first_batch(request):
            spark.prepare(first.plan)
            with closing(batches(request, first, announced, max_batches, spark.replace)) as committed:
                for report in committed:
                    reports.append(report)
                    on_batch(report)
                    request.say(f"looking for more after batch {report.batch_id}")
    finally:
        spark.close()
    return reports


def rerun(
    request: RunRequest, *, wait_ms: int = 0, on_batch: Callable[[BatchReport], None] = lambda report: None
) -> BatchReport:
    """Does the requested rerun, after finishing the batch of a dead run. Returns the report of the rerun.

    Waits up to `wait_ms` while another run is in progress. Raises `RerunRefused`, `Superseded`, and the errors of
    `run`.
    """
    return waiting(lambda: run(request, on_batch=on_batch)[-1], wait_ms, request.say)


def preview(definition: Definition, requested: Rerun, say: Say) -> Preview:
    """Makes a dry run of a rerun on the definition's own Spark session. Starts it only if the rerun is allowed.

    Raises `RerunRefused`, `TimedOut`, and the errors of `plan`.
    """
    with within(definition.batch_timeout_ms, "planning the rerun", (), LOOKUP_ADVICE):
        planned = dry_run(definition, requested, wall_clock_ms)
    return with_spark(definition, "the preview", planned.preview, say)


def waiting(work: Callable[[], T], wait_ms: int, say: Note) -> T:
    """Returns the result of `work`. Tries again while another run is at work, for at most `wait_ms`.

    Raises `Superseded` if the other run is still at work then.
    """
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
    """Runs `windowlib.runs.together.advance_together` on the Spark session that all the definitions name.

    If an engine is lost during a batch, does that batch once more, as `run` does.
    """
    first = runs[0]
    spark = spark_sessions(*(request.definition for request in runs))
    try:
        announced = _announced(spark, first.definition.engine, first.say)
        return advance_together(runs, announced, on_batch=on_batch, max_batches=max_batches, on_lost=spark.replace)
    finally:
        spark.close()


def with_spark(definition: Definition, what: str, work: Callable[[SparkSession], T], say: Say) -> T:
    """Returns the result of `work` on the definition's Spark session, outside of any batch.

    Limits the work to `batch_timeout`. `what` names the work in the error (`TimedOut`). Errors of Spark are explained
    as in a run (`windowlib.runs.spark_errors`).
    """

    def within_the_limit(spark: SparkSession) -> T:
        with bounded(definition.batch_timeout_ms, what, spark):
            return work(spark)

    return with_spark_for_long(definition, within_the_limit, say)


def with_spark_for_long(definition: Definition, work: Callable[[SparkSession], T], say: Say) -> T:
    """Returns the result of `work` as `with_spark` does, but without a time limit.

    For work that waits for other runs or makes many batches, and limits its own parts.
    """
    engine = spark_sessions(definition)
    try:
        with explained(definition.file, definition.expressions, definition.computed_by, of_a_batch=False):
            spark = _announced(engine, definition.engine, say)()
            with saying(say, "computing", spark):
                return work(spark)
    finally:
        engine.close()


def _announced(spark: Callable[[], SparkSession], engine: str, say: Say) -> Callable[[], SparkSession]:
    """Returns `spark` with a line of progress before and after it starts the session."""

    def started() -> SparkSession:
        say(f"starting {engine.capitalize()}")
        session = spark()
        say("computing")
        return session

    return started
