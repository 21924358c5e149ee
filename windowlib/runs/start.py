"""What commands start: runs, reruns and previews on the Spark session that their definition asks for.

`say` is called with what is being done, for a line of progress; `on_batch` with each batch when it is committed;
`on_note` with what an operator should know.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from windowlib.definition.definition import Definition
from windowlib.engines.choice import check_engine
from windowlib.engines.connect import EngineLost
from windowlib.runs.advance import batches
from windowlib.runs.attempt import BatchReport
from windowlib.runs.deadline import bounded
from windowlib.runs.run import Note, Run, Say, first_plan, saying, silent
from windowlib.runs.spark_errors import explained
from windowlib.runs.spark_sessions import spark_sessions
from windowlib.runs.together import Ended, advance_together
from windowlib.tables.ledger import Clock, Superseded, wall_clock_ms
from windowlib.tables.rerun import Rerun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
LOOK_AGAIN_S = 2  # whether another run has ended


def run(
    definition: Definition,
    *,
    clock: Clock = wall_clock_ms,
    say: Say = silent,
    on_batch: Callable[[BatchReport], None] = lambda report: None,
    on_note: Note = silent,
    max_batches: int | None = None,
    finish: bool = False,
    rerun: Rerun | None = None,
) -> list[BatchReport]:
    """As `windowlib.runs.advance.advance`, on the definition's own Spark session.

    When a warm engine ends in the middle of a batch, the run does that batch once more, as the next run would. Raises
    as `advance` does, and `EngineLost`.
    """
    asked = Run.of(definition, clock, finish=finish, rerun=rerun, note=on_note, say=say)
    spark, reports = spark_sessions(definition), list[BatchReport]()
    for tries_left in reversed(range(spark.tries)):
        left = None if max_batches is None else max_batches - len(reports)
        try:
            if first := first_plan(asked):
                spark.prepare(first)
                with closing(batches(asked, _announced(spark, definition, say), left)) as made:
                    for report in made:
                        reports.append(report)
                        on_batch(report)
                        say(f"looking for more after batch {report.batch_id}")
            break
        except EngineLost:
            if not tries_left:
                raise
            say("the engine ended in the middle of a batch: retrying with another one")
        finally:
            spark.close()
    return reports


def rerun(
    definition: Definition,
    wanted: Rerun,
    *,
    clock: Clock = wall_clock_ms,
    wait_ms: int = 0,
    say: Say = silent,
    on_batch: Callable[[BatchReport], None] = lambda report: None,
    on_note: Note = silent,
) -> BatchReport:
    """Does a rerun, after what a dead run has left; gives what it did.

    Waits up to `wait_ms` while another run is in progress. Raises `RerunRefused`, `Superseded`, and as `run` does.
    """

    def once() -> BatchReport:
        return run(definition, clock=clock, say=say, on_batch=on_batch, on_note=on_note, rerun=wanted)[-1]

    return waiting(once, wait_ms, say)


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
    definitions: Sequence[Definition],
    *,
    clock: Clock = wall_clock_ms,
    say: Say = silent,
    on_batch: Callable[[Definition, BatchReport], None] = lambda definition, report: None,
    on_note: Note = silent,
    max_batches: int | None = None,
    finish: bool = False,
) -> list[Ended]:
    """As `windowlib.runs.together.advance_together`, on the Spark session that all the definitions ask for.

    When a warm engine ends, the batch at work and those still to come fail with `EngineLost`; the next run does them
    again.
    """
    spark = spark_sessions(definitions[0])
    for definition in definitions[1:]:
        check_engine(definition)
    try:
        return advance_together(
            definitions,
            _announced(spark, definitions[0], say),
            clock=clock,
            on_batch=on_batch,
            on_note=on_note,
            say=say,
            max_batches=max_batches,
            finish=finish,
        )
    finally:
        spark.close()


def with_spark(definition: Definition, what: str, work: Callable[[SparkSession], T], say: Say) -> T:
    """What `work` makes on the Spark session that a definition asks for, outside any batch.

    It has `batch_timeout` for it, as a batch has: `what` names it where it takes longer (`TimedOut`). What Spark fails
    at is said as a run says it (`windowlib.runs.spark_errors`).
    """

    def within_the_limit(spark: SparkSession) -> T:
        with bounded(definition, what, spark):
            return work(spark)

    return with_spark_for_long(definition, within_the_limit, say)


def with_spark_for_long(definition: Definition, work: Callable[[SparkSession], T], say: Say) -> T:
    """As `with_spark`, where `work` waits for others or makes many batches: it bounds its parts itself."""
    spark = spark_sessions(definition)
    try:
        with explained(definition, of_a_batch=False):
            session = _announced(spark, definition, say)()
            with saying(say, "computing", session):
                return work(session)
    finally:
        spark.close()


def _announced(spark: Callable[[], SparkSession], definition: Definition, say: Say) -> Callable[[], SparkSession]:
    """`spark`, with a line of progress before it starts and once it has."""

    def started() -> SparkSession:
        say(f"starting {definition.engine.capitalize()}")
        found = spark()
        say("computing")
        return found

    return started
