"""A pipeline at work: it holds its claim, and begins and completes batch after batch.

    has_work -> claim -> (freeze a plan -> begin -> complete)* -> release

A batch whose files change under it is planned again, and one whose engine is lost is done again, on the next engine.
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
"""Called when an engine is lost; whether the next session may be of another one."""


def irreplaceable() -> bool:
    """No other engine: what was lost is for the next run."""
    return False


def has_work(run: RunRequest) -> bool:
    """Whether there is anything to do. Needs no claim; raises as `plan` does."""
    with losses_named(run.ledger.tables), looking(run):
        return first_plan(run) is not None


@contextmanager
def at_work(run: RunRequest, spark: Callable[[], SparkSession], on_lost: OnLost) -> Iterator[BegunBatch]:
    """Holds the claim of a pipeline within the block. Raises `Superseded` when another run holds it."""
    with named(run), claimed_in_time(run) as claim:
        yield BegunBatch(run, claim, spark, on_lost)


@contextmanager
def named(run: RunRequest) -> Iterator[None]:
    """Raises what the block fails at by the name of a disk that refuses, or of files that the tables have lost."""
    with disk.refusals_named(run.ledger.root), losses_named(run.ledger.tables, SourceError):
        yield


@dataclass(slots=True)
class BegunBatch:
    """A pipeline that is claimed, and the batch that it has begun: an attempt, or what an earlier one has prepared.

    `spark` is asked for a session once for each batch that is computed.
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
        """The plan of the batch that it has begun."""
        due = self.begun.due if isinstance(self.begun, Attempt) else self.begun
        return None if due is None else due.plan

    @property
    def attempt(self) -> Attempt | None:
        """The attempt that it has begun, if there is anything to compute."""
        return self.begun if isinstance(self.begun, Attempt) else None

    def begins(self) -> bool:
        """Whether it begins a batch; False where nothing is left to do."""
        while due := due_in_time(self.run, self.claim):
            used: list[SparkSession] = []
            with self._step(due, used):
                if due.state.prepared is None:
                    used.append(self.spark())
                    self.begun = begin(self.run, self.claim, due, used[0])
                else:
                    self.begun = due
                return True
        return False

    def completes(self, shared: SharedInputs | None = None) -> BatchReport | None:
        """The report of the batch that it has begun; None where that is to be begun again."""
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
        """Raises what the block fails at as what it means, unless the batch is to be planned or done once more."""
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
            self.run.say("the engine was lost in the middle of a batch: doing that batch again")
