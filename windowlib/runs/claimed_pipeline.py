"""A claimed pipeline, which begins and completes batch after batch.

    has_work -> claim -> (freeze a plan -> begin -> complete)* -> release

A batch is planned again if its files change meanwhile. It is computed again on a new session if its engine is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowlib.delta import disk
from windowlib.engines.connect import EngineLost
from windowlib.ledger.rows import Claim, Plan
from windowlib.publication.damage import losses_named
from windowlib.runs.attempt import Attempt, BatchReport, RerunAbandoned, begin, complete, explaining, roll_forward
from windowlib.runs.deadline import within
from windowlib.runs.run import PLANS, DueBatch, RunRequest, claimed_in_time, due_in_time, first_plan, looking
from windowlib.source.listed import SourceError
from windowlib.source.listing import FilesChanged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windowlib.batches.inputs import SharedInputs


OnLost = Callable[[], bool]
"""Called when an engine is lost. Returns True if the next session can be of another engine."""


def irreplaceable() -> bool:
    """Refuses another engine: the next run does the batch again."""
    return False


def has_work(run: RunRequest) -> bool:
    """Tests if there is anything to do. Needs no claim. Raises the errors of `plan`."""
    with losses_named(run.ledger.tables), looking(run):
        return first_plan(run) is not None


@contextmanager
def at_work(run: RunRequest, spark: Callable[[], SparkSession], on_lost: OnLost) -> Iterator[BegunBatch]:
    """Holds the claim of a pipeline within the block. Raises `Superseded` if another run holds it."""
    with causes_named(run), claimed_in_time(run) as claim:
        yield BegunBatch(run, claim, spark, on_lost)


@contextmanager
def causes_named(run: RunRequest) -> Iterator[None]:
    """Replaces errors of the block by their cause: a disk that refuses writes, or lost files of the tables."""
    with disk.refusals_named(run.ledger.root), losses_named(run.ledger.tables, SourceError):
        yield


@dataclass(slots=True)
class BegunBatch:
    """A claimed pipeline, and its begun batch: an attempt, or a batch that an earlier attempt has prepared.

    Calls `spark` for a session once per computed batch.
    """

    run: RunRequest
    claim: Claim
    spark: Callable[[], SparkSession]
    on_lost: OnLost
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
        """Begins the next batch. Returns False if nothing is left to do."""
        while due := due_in_time(self.run, self.claim):
            engines: list[SparkSession] = []
            with self._step(due, engines):
                if due.state.prepared is None:
                    engines.append(self.spark())
                    self.begun = begin(self.run, self.claim, due, engines[0])
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
                return roll_forward(self.run, self.claim, begun)
        with self._step(begun.due, [begun.inputs.spark]):
            report = complete(begun, shared)
            self.plans_left = PLANS
            return report
        return None

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
