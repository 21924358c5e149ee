"""Observation of a pipeline, and its state with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from windowlib.batches.may_run import decision_command
from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import of_tables
from windowlib.definition.toml.durations import UNITS, format_duration
from windowlib.delta.tables import Tables
from windowlib.inspection.status import Status, Unfinished
from windowlib.inspection.status import status as look
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.rows import LedgerState, Plan
from windowlib.notices.situations import standing_still
from windowlib.pages.newest_rows import RUNS_SHOWN, Tail, tail
from windowlib.quality.validations import Validated, stored_outcomes


class State(StrEnum):
    """States of a pipeline, the most urgent first."""

    FAILING = "failing"
    WAITING = "waiting for a decision"
    RUNNING = "running"
    READY = "ready to run"
    CURRENT = "up to date"
    NEW = "no run yet"


@dataclass(frozen=True, slots=True)
class ObservedPipeline:
    """A pipeline as observed at `now_ms`. Overviews and pages are computed from this state.

    `definition` has the key and columns of the tables. New columns are not included before a later batch adds them.
    """

    definition: Definition
    now_ms: int
    tables: Tables
    ledger: LedgerState
    status: Status
    tail: Tail
    checked: Sequence[Validated]
    still: Sequence[str]  # situations that time alone shows: silence, a watermark far behind

    @property
    def waiting(self) -> Plan | None:
        """Batch that waits for a decision."""
        return self.ledger.plan if self.ledger.is_refused else None

    @property
    def checked_in_force(self) -> Sequence[Validated]:
        """Checked batches that no rollback has undone."""
        in_force = {run.batch_id for run in self.tail.in_force}
        undone = {run.batch_id for run in self.tail.runs} - in_force
        return [batch for batch in self.checked if batch.batch_id not in undone]

    def commands(self, waiting: Plan) -> tuple[str, str]:
        """Commands to approve and to abandon the waiting batch, to paste."""
        approve, abandon = (
            decision_command(decision, self.definition.file, waiting) for decision in ("approve", "abandon")
        )
        return approve, abandon


def observe_pipeline(definition: Definition, now_ms: int, ledger: Ledger | None = None) -> ObservedPipeline:
    """Reads the state of a pipeline for its page. Reuses `ledger` and its open tables, if given.

    Raises `WindowError` if the tables cannot be read.
    """
    ledger = ledger or ledger_of(definition, lambda: now_ms)
    state = ledger.state()
    return ObservedPipeline(
        definition=of_tables(definition, state.commit.stored) if state.commit else definition,
        now_ms=now_ms,
        tables=ledger.tables,
        ledger=state,
        status=look(definition, now_ms, ledger, whole=False),
        tail=tail(ledger.tables, state.version),
        checked=stored_outcomes(definition.store, RUNS_SHOWN),
        still=[situation.sentence for situation in standing_still(definition, ledger, state, now_ms)],
    )


def state_of(observed: ObservedPipeline) -> tuple[State, str]:
    """State of a pipeline, with the reason."""
    status, unfinished = observed.status, observed.status.unfinished
    if not status.same_definition:
        return State.FAILING, "the definition was edited: it no longer matches the tables, and no run starts"
    if observed.waiting:
        return State.WAITING, f"batch {observed.waiting.batch_id} was refused by its checks"
    if unfinished and unfinished.running:
        return State.RUNNING, f"batch {unfinished.batch_id}: {unfinished.running}"
    if blocks := [*_blocks(observed, unfinished)]:
        return State.FAILING, "; ".join(blocks)
    if unfinished:
        return State.READY, _planned(observed, unfinished)
    if observed.ledger.commit is None:
        return State.NEW, _arrived(status.files_waiting) or "no run has committed a batch"
    if waits := _arrived(status.files_waiting):
        return State.READY, waits
    return State.CURRENT, "there is nothing left to read"


def _blocks(observed: ObservedPipeline, unfinished: Unfinished | None) -> Iterator[str]:
    """Yields reasons why the pipeline is blocked, apart from a pending decision."""
    if given_up := _unfinished_run(observed, unfinished):
        yield given_up
    if problem := observed.status.further_problem:
        yield problem
    if error := observed.status.error:
        yield error.words


def _unfinished_run(observed: ObservedPipeline, unfinished: Unfinished | None) -> str | None:
    """Sentence about a run that has begun a batch and ended without finishing it; None if there is no such run.

    A batch that no run has begun waits for the next run, whatever its age: the DAG may be paused, or the batch may have
    been planned by hand.
    """
    if unfinished is None or not observed.ledger.is_begun:
        return None
    return f"the run that worked on batch {unfinished.batch_id} ended without finishing it"


def _planned(observed: ObservedPipeline, unfinished: Unfinished) -> str:
    """Sentence about the batch that waits for a run. Has the waiting time if it is a minute or more."""
    approved = (action.at_ms for action in observed.tail.actions if action.kind == "approve" and unfinished.approved_by)
    since_ms = max(unfinished.planned_at_ms, next(approved, unfinished.planned_at_ms))
    waits_ms = (observed.now_ms - since_ms) // UNITS["m"] * UNITS["m"]
    ago = f" {format_duration(waits_ms)} ago" if waits_ms > 0 else ""
    if unfinished.approved_by:
        return f"batch {unfinished.batch_id} was approved by {unfinished.approved_by}{ago}: the next run publishes it"
    if ago:
        return f"batch {unfinished.batch_id} was planned{ago}, and no run has begun it yet"
    return f"batch {unfinished.batch_id} is planned: no run has begun it yet"


def _arrived(files: int | None) -> str:
    """Sentence about new files; empty if there are none."""
    return f"{files:,} new {'file waits' if files == 1 else 'files wait'} for the next run" if files else ""
