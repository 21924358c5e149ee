"""A run of one pipeline: what it is asked for, the claim that it holds, and the batch that is due next.

A run claims the pipeline before it works. Another that was taken for dead, and is not, can no longer prepare anything:
the ledger refuses its rows. What it had prepared, both publish, once.
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
from windowlib.ledger.history import batch_of_preview
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.ledger.rerun_request import Rerun, RerunAlreadyDone
from windowlib.ledger.rows import Claim, LedgerState, Plan
from windowlib.ledger.set_aside_files import files_set_aside
from windowlib.runs.deadline import OF_A_LOOK, within
from windowlib.runs.operation import Note, held, silent
from windowlib.source import listing as source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Doing = str | Callable[[], str]  # what is being done, or a call that gives it as it is now
Say = Callable[[Doing], None]  # shows it in a line of progress
PLANS = 5  # of one batch in one run, as its files change again and again


@contextmanager
def saying(say: Say, what: str, spark: SparkSession) -> Iterator[None]:
    """Says what the block does and how far the engine is with it, where progress is shown."""
    if say is silent:
        yield
        return
    with task_progress(spark) as progress_text:
        say(lambda: f"{what}{progress_text()}")
        yield


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run is asked for: everything new, with `finish` the end of the source, or else one `rerun`.

    `look` finds the files of the source that are there; `note` is called with what an operator should know, `say` with
    what is being done.
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
        """A run of a pipeline by a clock; its tables are opened when they are first read."""
        return cls(definition, ledger_of(definition, clock), finish, rerun, note=note, say=say)


@dataclass(frozen=True, slots=True)
class DueBatch:
    """A batch to be done: its frozen plan, and what the ledger says."""

    plan: Plan
    state: LedgerState


def first_plan(run: RunRequest) -> Plan | None:
    """The plan of the first batch; None when there is nothing to do. Needs no claim; raises as `plan` does.

    A rerun is not frozen before the run has claimed the pipeline. Raises `RerunAlreadyDone`.
    """
    if run.rerun is None:
        due = _frozen(run)
        return due.plan if due else None
    state = run.ledger.state()
    check_may_run(run.definition, state)
    return state.plan or _rerun(run, run.rerun, state)


def next_due(run: RunRequest, claim: Claim) -> DueBatch | None:
    """The batch whose plan is frozen, else the next one, frozen now; None when there is nothing to do.

    A plan that was made under other terms, or whose files have changed, and led to nothing that is prepared, is
    replaced, by what is there now: what `look` has kept for several pipelines is as old as the plan may be.
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
    """Why a plan must be made again, in words; None where it still holds."""
    if changed := other_terms(definition, plan):
        return f"was planned under other terms ({changed})"
    aside = files_set_aside(definition.root)
    if chosen := [file.path for file in plan.files if file.path in aside]:
        return f"cannot be read as it was planned ({chosen[0]} is set aside)"
    if changed := source.change_of(definition.source, plan.files):
        return f"cannot be read as it was planned ({changed})"
    return None


def _frozen(run: RunRequest) -> DueBatch | None:
    def make(state: LedgerState) -> Plan | None:
        if run.rerun:
            return _rerun(run, run.rerun, state)
        return next_plan(run.definition, run.ledger.tables, state, run.ledger.clock, run.finish, run.look)

    state, plan = run.ledger.freeze(make)
    check_may_run(run.definition, state)
    return DueBatch(plan, state) if plan else None


def _rerun(run: RunRequest, asked: Rerun, state: LedgerState) -> Plan:
    """The plan of a rerun. Raises `RerunAlreadyDone` where a batch has done what its dry run said."""
    if asked.preview_id is not None and (batch_id := batch_of_preview(run.ledger.tables, asked.preview_id)) is not None:
        raise RerunAlreadyDone(asked.preview_id, batch_id)
    return rerun_plan(run.definition, run.ledger.tables, state, asked, run.ledger.clock, run.look)


def looking(run: RunRequest) -> AbstractContextManager[None]:
    """What a run does before its batch has `batch_timeout` as the batch has: listing a source may hang, too."""
    return within(run.definition.batch_timeout_ms, "looking for the next batch", (), OF_A_LOOK)


def due_in_time(run: RunRequest, claim: Claim) -> DueBatch | None:
    """As `next_due`; raises `TimedOut`."""
    with looking(run):
        return next_due(run, claim)


@contextmanager
def claimed_in_time(run: RunRequest) -> Iterator[Claim]:
    """As `held`, which may wait for a sign of another run as long as that has time to give one.

    Raises `TimedOut` where it takes longer to get the claim.
    """
    with ExitStack() as stack:
        limit_ms, waits_ms = run.definition.batch_timeout_ms, run.ledger.longest_lease_ms()
        with within(limit_ms, "claiming the pipeline", (), OF_A_LOOK, waits_ms=waits_ms):
            pipeline = stack.enter_context(held(run.ledger, run.note))
        yield pipeline.claim
