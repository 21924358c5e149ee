"""A run of one pipeline: its request, its claim, and the batch that is due next.

A run claims the pipeline before it works. An older run that was taken for dead but still works can no longer prepare
anything, because the ledger refuses its rows. If the older run has already prepared a batch, either run publishes that
batch, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windowlib.batches.may_run import check_may_run, other_terms
from windowlib.batches.planning import ledger_of, next_plan, plan_again, rerun_plan
from windowlib.definition.definition import Definition
from windowlib.engines.tasks import task_progress
from windowlib.ledger.entries import Rows
from windowlib.ledger.history import batch_of_preview
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.ledger.rerun_request import Rerun, RerunAlreadyDone
from windowlib.ledger.rows import Claim, LedgerState, Plan, plan_row
from windowlib.ledger.set_aside_files import files_set_aside
from windowlib.runs.deadline import LOOKUP_ADVICE, within
from windowlib.runs.operation import Note, held, silent
from windowlib.source import listing as source
from windowlib.storage.at_once import both

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Doing = str | Callable[[], str]  # current step in words, or a call that returns it
Say = Callable[[Doing], None]  # shows the step in a line of progress
PLANS = 5  # plans of one batch in one run, if its files keep changing


@contextmanager
def saying(say: Say, what: str, spark: SparkSession) -> Iterator[None]:
    """Shows `what` and the engine's progress as the current step during the block, unless `say` is `silent`."""
    if say is silent:
        yield
        return
    with task_progress(spark) as progress_text:
        say(lambda: f"{what}{progress_text()}")
        yield


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Request of a run that reads everything new, or does one `rerun`. With `finish`, every window fires at the end.

    `look` lists the files of the source. `note` gets sentences for the operator. `say` gets the current step.
    """

    definition: Definition
    ledger: Ledger
    finish: bool = False
    rerun: Rerun | None = None
    look: source.Look = source.found_files
    note: Note = silent
    say: Say = silent

    @classmethod
    def of(
        cls,
        definition: Definition,
        clock: Clock = wall_clock_ms,
        *,
        finish: bool = False,
        rerun: Rerun | None = None,
        note: Note = silent,
        say: Say = silent,
    ) -> RunRequest:
        """Creates the request of a run that uses `clock`. Tables are opened when they are first read."""
        return cls(definition, ledger_of(definition, clock), finish, rerun, note=note, say=say)


@dataclass(frozen=True, slots=True)
class DueBatch:
    """A batch to do: its plan, and the state of the ledger from which it was planned or in which it is frozen."""

    plan: Plan
    state: LedgerState

    def frozen_with_claim(self, state: LedgerState) -> Rows:
        """Row that freezes the plan together with the claim. Empty if the ledger has changed since it was planned."""
        is_new = self.state.plan is None and self.state.version == state.version
        return [plan_row(self.plan)] if is_new else []


def first_due(run: RunRequest) -> DueBatch | None:
    """First batch to do; None if there is nothing to do. Needs no claim and freezes no plan.

    Raises the errors of `plan`, and `RerunAlreadyDone`.
    """
    state = run.ledger.state()
    check_may_run(run.definition, state)
    plan = state.plan or plan_of_next(run, state)
    return DueBatch(plan, state) if plan else None


def next_due(run: RunRequest, claim: Claim) -> DueBatch | None:
    """Batch with a frozen plan. If there is none, freezes the plan of the next batch; None if there is nothing to do.

    Replaces a plan that is not prepared if its terms or files have changed. The new plan lists the source again,
    because a listing shared by several pipelines may be as old as the plan.
    """
    due = _frozen(run)
    if due is None or due.state.prepared or (stale := _why_stale(run.definition, due.plan)) is None:
        return due

    now = replace(run, look=source.found_files)

    def make(state: LedgerState) -> Plan | None:
        return plan_again(run.definition, run.ledger.tables, state, due.plan, run.ledger.clock, now.look)

    state, plan = run.ledger.replace_plan(due.plan, make, claim.epoch)
    becomes = "is planned again" if plan else "is abandoned, as nothing is left to do"
    run.note(f"{run.definition.name}: batch {due.plan.batch_id} {stale}: it {becomes}")
    return DueBatch(plan, state) if plan else next_due(now, claim)


def _why_stale(definition: Definition, plan: Plan) -> str | None:
    """Reason why a plan must be made again; None if it still holds."""
    if changed := other_terms(definition, plan):
        return f"was planned under other terms ({changed})"
    aside, changed = both(
        lambda: files_set_aside(definition.store), lambda: source.change_of(definition.source, plan.files)
    )
    if chosen := [file.path for file in plan.files if file.path in aside]:
        return f"cannot be read as it was planned ({chosen[0]} is set aside)"
    if changed:
        return f"cannot be read as it was planned ({changed})"
    return None


def _frozen(run: RunRequest) -> DueBatch | None:
    state, plan = run.ledger.freeze(lambda state: plan_of_next(run, state))
    check_may_run(run.definition, state)
    return DueBatch(plan, state) if plan else None


def plan_of_next(run: RunRequest, state: LedgerState) -> Plan | None:
    """Plan of the next batch, from a state without a plan; None if there is nothing to do. Freezes nothing."""
    if run.rerun:
        return _rerun(run, run.rerun, state)
    return next_plan(run.definition, run.ledger.tables, state, run.ledger.clock, run.finish, run.look)


def _rerun(run: RunRequest, rerun: Rerun, state: LedgerState) -> Plan:
    """Plan of a rerun. Raises `RerunAlreadyDone` if a batch has already applied its preview."""
    if rerun.preview_id is not None and (batch_id := batch_of_preview(run.ledger.tables, rerun.preview_id)) is not None:
        raise RerunAlreadyDone(rerun.preview_id, batch_id)
    return rerun_plan(run.definition, run.ledger.tables, state, rerun, run.ledger.clock, run.look)


def looking(run: RunRequest) -> AbstractContextManager[None]:
    """Limits the search for the next batch to `batch_timeout`, because listing a source may hang."""
    return within(run.definition.batch_timeout_ms, "looking for the next batch", (), LOOKUP_ADVICE)


def due_in_time(run: RunRequest, claim: Claim) -> DueBatch | None:
    """Returns `next_due` within the time limit. Raises `TimedOut`."""
    with looking(run):
        return next_due(run, claim)


@contextmanager
def claimed_in_time(run: RunRequest, first: DueBatch) -> Iterator[Claim]:
    """Holds the pipeline within the block and yields its claim (`held`). Freezes the plan of `first` with the claim.

    Raises `TimedOut` if claiming takes longer than `batch_timeout` plus the longest wait for another run's heartbeat.
    """
    with ExitStack() as stack:
        limit_ms, waits_ms = run.definition.batch_timeout_ms, run.ledger.longest_lease_ms()
        with within(limit_ms, "claiming the pipeline", (), LOOKUP_ADVICE, waits_ms=waits_ms):
            pipeline = stack.enter_context(held(run.ledger, run.note, follow=first.frozen_with_claim))
        yield pipeline.claim
