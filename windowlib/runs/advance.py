"""One incremental run: everything new up to a position that is fixed before work begins, batch after batch.

    claim -> (freeze a plan -> begin -> compute -> check -> commit)* -> release

The schedule only says when to look; the frozen plan says what is read. `windowlib run` does this.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import TYPE_CHECKING

from windowlib.definition.definition import Definition
from windowlib.ledger.ledger import Clock, wall_clock_ms
from windowlib.ledger.rerun_request import Rerun
from windowlib.quality import check
from windowlib.runs.attempt import BatchReport
from windowlib.runs.claimed_pipeline import OnLost, at_work, has_work, irreplaceable
from windowlib.runs.operation import Note, silent
from windowlib.runs.run import RunRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def advance(
    definition: Definition,
    spark: Callable[[], SparkSession],
    *,
    clock: Clock = wall_clock_ms,
    max_batches: int | None = None,
    finish: bool = False,
    rerun: Rerun | None = None,
    on_note: Note = silent,
) -> list[BatchReport]:
    """Runs batch after batch until nothing is left, or `max_batches` of them; none when there is nothing to do.

    With a `rerun` nothing new is read: what is left of a run that died is finished, and then the rerun is done.
    `spark` is called only when there is work, once for each batch; `on_note` with what an operator should know. Raises
    as `plan` does, and `Superseded` when another run is at work.
    """
    run = RunRequest.of(definition, clock, finish=finish, rerun=rerun, note=on_note)
    with closing(batches(run, spark, max_batches)) as reports:
        return list(reports)


def batches(
    run: RunRequest, spark: Callable[[], SparkSession], max_batches: int | None = None, on_lost: OnLost = irreplaceable
) -> Generator[BatchReport]:
    """The batches of a run, each when it is committed. Close it to release the pipeline before the last."""
    if not has_work(run):
        return
    check.preload()
    with at_work(run, spark, on_lost) as work:
        left = max_batches
        while left != 0 and work.begins():
            plan = work.plan
            if report := work.completes():
                left = left and left - 1
                yield report
                if run.rerun and plan and run.rerun.is_that_of(plan.rerun):
                    return
