"""Incremental run: reads the new source files, up to a position fixed before work begins, batch after batch.

    plan -> claim -> (begin -> compute -> check -> commit -> plan)* -> release

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
from windowlib.runs.claimed_pipeline import OnLost, at_work, first_batch, irreplaceable
from windowlib.runs.operation import Note, silent
from windowlib.runs.run import DueBatch, RunRequest

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
    if first := first_batch(run):
        with closing(batches(run, first, spark, max_batches)) as reports:
            return list(reports)
    return []


def batches(
    run: RunRequest,
    first: DueBatch,
    spark: Callable[[], SparkSession],
    max_batches: int | None = None,
    on_lost: OnLost = irreplaceable,
) -> Generator[BatchReport]:
    """Yields the report of each batch when it is committed, from the planned batch `first` on.

    Close the generator to release the pipeline early.
    """
    check.preload()
    with at_work(run, first, spark, on_lost, max_batches) as work:
        while work.begins():
            if report := work.completes():
                yield report
