"""A claimed pipeline, which begins and completes batch after batch.

    plan -> claim -> (begin -> complete -> plan)* -> release

A batch is planned again if its files change meanwhile. It is computed again on a new session if its engine is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from windowlib.engines.connect import EngineLost
from windowlib.ledger.entries import Rows
from windowlib.ledger.rows import Claim, LedgerState, Plan, plan_row
from windowlib.publication.damage import losses_named
from windowlib.runs.attempt import Attempt, BatchReport, RerunAbandoned, begin, complete, explaining, roll_forward
from windowlib.runs.deadline import FAILED, within
from windowlib.runs.run import (
    PLANS,
    DueBatch,
    RunRequest,
    claimed_in_time,
    due_in_time,
    first_due,
    looking,
    plan_of_next,
)
from windowlib.source.listed import SourceError
from windowlib.source.listing import FilesChanged
from windowlib.storage import refusals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windowlib.batches.inputs import SharedInputs


OnLost = Callable[[], bool]
"""Called when an engine is lost. Returns True if the next session can be of another engine."""


def irreplaceable() -> bool:
    """Refuses another engine: the next run does the batch again."""
    return False


def first_batch(run: RunRequest) -> DueBatch | None:
    """First batch to do (`first_due`), within the time limit. Raises the errors of `plan`, and `TimedOut`."""
    with losses_named(run.ledger.tables), looking(run):
        return first_due(run)


@contextmanager
def at_work(
    run: RunRequest,
    first: DueBatch,
    spark: Callable[[], SparkSession],
    on_lost: OnLost,
    max_batches: int | None,
) -> Iterator[BegunBatch]:
    """Holds the claim of a pipeline within the block, whose batch `first` is planned.

    Raises `Superseded` if another run holds the pipeline.
    """
    with causes_named(run), claimed_in_time(run, first) as claim:
        yield BegunBatch(run, claim, spark, on_lost, max_batches)


@contextmanager
def causes_named(run: RunRequest) -> Iterator[None]:
    """Replaces errors of the block by their cause: a disk that refuses writes, or lost files of the tables."""
    with refusals.refusals_named(run.ledger.store), losses_named(run.ledger.tables, SourceError):
        yield


@dataclass(slots=True)
class BegunBatch:
    """A claimed pipeline, and its begun batch: an attempt, or a batch that an earlier attempt has prepared.

    Calls `spark` for a session once per computed batch. `is_over` is True once the claim is released with a batch,
    `has_committed` once a batch was committed under the claim.
    """

    run: RunRequest
    claim: Claim
    spark: Callable[[], SparkSession]
    on_lost: OnLost
    batches_left: int | None = None
    is_over: bool = False
    has_committed: bool = False
    begun: Attempt | DueBatch | None = None
    plans_left: int = PLANS
    replacements_left: int = 1

    @property
    def plan(self) -> Plan | None:
        """Plan of the begun batch."""
        due = self.begun.due if isinstance(self.begun, Attempt) else self.begun
        return None if due is None else due.plan

    @property
    def attempt(self) -> Attempt | None:
        """The begun attempt; None if there is nothing to compute."""
        return self.begun if isinstance(self.begun, Attempt) else None

    def begins(self) -> bool:
        """Begins the next batch. Returns False if nothing is left to do, or no batch may follow."""
        while not self.is_over and self.batches_left != 0 and (due := due_in_time(self.run, self.claim)):
            engines: list[SparkSession] = []
            with self._step(due, engines):
                if due.state.prepared is None:
                    engines.append(self.spark())
                    self.begun = begin(self.run, self.claim, due, engines[0], follows=self.has_committed)
                else:
                    self.begun = due
                return True
        return False

    def completes(self, shared: SharedInputs | None = None) -> BatchReport | None:
        """Completes the begun batch and returns its report; None if the batch must be begun again."""
        begun, self.begun = self.begun, None
        assert begun is not None, "a batch is begun"
        if isinstance(begun, DueBatch):
            with self._step(begun):
                return self._counted(roll_forward(self.run, self.claim, begun, partial(self._next, begun.plan)))
        with self._step(begun.due, [begun.inputs.spark]):
            report = complete(begun, partial(self._next, begun.due.plan), shared)
            self.plans_left = PLANS
            return self._counted(report)
        return None

    def _counted(self, report: BatchReport) -> BatchReport:
        self.batches_left, self.has_committed = self.batches_left and self.batches_left - 1, True
        return report

    def _next(self, done: Plan, state: LedgerState) -> Rows:
        """Rows in the entry that commits the batch `done`: the plan of the next batch, or the release of the claim.

        `state` is the state after the batch. Returns no row if planning fails: the next `begins` raises the error. This
        includes the end of the batch's time, because the batch must not wait for a source that hangs.
        """
        is_own = self.run.rerun is not None and self.run.rerun.is_same_as(done.rerun)
        self.is_over = is_own or self.batches_left == 1
        try:
            plan = None if self.is_over else plan_of_next(self.run, state)
        except FAILED:
            return ()
        self.is_over = plan is None
        return [{"kind": "release"} if plan is None else plan_row(plan)]

    @contextmanager
    def _step(self, due: DueBatch, engines: Sequence[SparkSession] = ()) -> Iterator[None]:
        """Replaces errors of the block by their cause. Suppresses errors after which the batch is begun again."""
        limit_ms, what = self.run.definition.batch_timeout_ms, f"batch {due.plan.batch_id}"
        try:
            with explaining(self.run, self.claim, due), within(limit_ms, what, engines):
                yield
        except RerunAbandoned:
            return
        except FilesChanged:
            self.plans_left -= 1
            if self.plans_left == 0:
                raise
        except EngineLost:
            if not (self.replacements_left and self.on_lost()):
                raise
            self.replacements_left -= 1
            self.run.say("the engine was lost during a batch: doing that batch again")
