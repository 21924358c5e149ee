"""Incremental run: reads the new source files, up to a position fixed before work begins, batch after batch.

    claim -> (freeze a plan -> begin -> compute -> check -> commit)* -> release

The schedule only starts the run. The frozen plan decides what is read. `windowlib run` uses this module.
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
    """Runs batches until nothing is left to do, at most `max_batches`. Returns the report of each batch.

    With a `rerun`, finishes the batch of a dead run, then does the rerun, and reads no new file. Calls `spark` for a
    session once per computed batch. `on_note` gets sentences for the operator. Raises the errors of `plan`, and
    `Superseded` if another run is at work.
    """
    run = RunRequest.of(definition, clock, finish=finish, rerun=rerun, note=on_note)
    with closing(batches(run, spark, max_batches)) as reports:
        return list(reports)


def batches(
    run: RunRequest, spark: Callable[[], SparkSession], max_batches: int | None = None, on_lost: OnLost = irreplaceable
) -> Generator[BatchReport]:
    """Yields the report of each batch when it is committed. Close the generator to release the pipeline early."""
    if not has_work(run):
        return
    check.preload()
    with at_work(run, spark, on_lost) as work:
        batches_left = max_batches
        while batches_left != 0 and work.begins():
            plan = work.plan
            if report := work.completes():
                batches_left = batches_left and batches_left - 1
                yield report
                if run.rerun and plan and run.rerun.is_same_as(plan.rerun):
                    return
