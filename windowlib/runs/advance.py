"""One incremental run: everything new up to a position that is fixed before work begins, batch after batch.

    claim -> (freeze a plan -> begin -> compute -> check -> commit)* -> release

The schedule only says when to look; the frozen plan says what is read. `windowlib run` does this.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import TYPE_CHECKING

from windowlib.definition.definition import Definition
from windowlib.quality import check
from windowlib.runs.attempt import BatchReport, GivenUp, begin, complete, explaining, roll_forward
from windowlib.runs.deadline import within
from windowlib.runs.run import PLANS, Note, Run, claimed_in_time, due_in_time, first_plan, looking, silent
from windowlib.source.found import SourceError
from windowlib.source.listing import FilesChanged
from windowlib.tables import disk
from windowlib.tables.ledger import Clock, wall_clock_ms
from windowlib.tables.lost import losses_named
from windowlib.tables.rerun import Rerun

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
    run = Run.of(definition, clock, finish=finish, rerun=rerun, note=on_note)
    with closing(batches(run, spark, max_batches)) as reports:
        return list(reports)


def batches(run: Run, spark: Callable[[], SparkSession], max_batches: int | None = None) -> Generator[BatchReport]:
    """The batches of a run, each when it is committed. Close it to release the pipeline before the last."""
    with losses_named(run.ledger.tables), looking(run):
        if first_plan(run) is None:
            return
        check.preload()
    used: list[SparkSession] = []
    limit_ms = run.definition.batch_timeout_ms

    def started() -> SparkSession:
        used[:] = [spark()]
        return used[0]

    with (
        disk.refusals_named(run.ledger.root),
        losses_named(run.ledger.tables, SourceError),
        claimed_in_time(run) as claim,
    ):
        left, plans_left = max_batches, PLANS
        while left != 0 and (due := due_in_time(run, claim)):
            try:
                with explaining(run, claim, due), within(limit_ms, f"batch {due.plan.batch_id}", used):
                    prepared = due.state.prepared is not None
                    report = roll_forward(run, claim, due) if prepared else complete(begin(run, claim, due, started()))
            except FilesChanged:
                if (plans_left := plans_left - 1) == 0:
                    raise
                continue  # the next look plans the batch again
            except GivenUp:
                continue
            left, plans_left = left and left - 1, PLANS
            yield report
            if run.rerun and run.rerun.is_that_of(due.plan.rerun):
                return
