"""A pipeline as it is found, and what it does: its state, with the sentence that says why."""

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
from windowlib.quality.validations import Validated, kept


class State(StrEnum):
    """What a pipeline does, the most urgent first."""

    FAILING = "failing"
    WAITING = "waiting for a decision"
    RUNNING = "running"
    PLANNED = "planned"
    IDLE = "idle"
    NEW = "no run yet"


@dataclass(frozen=True, slots=True)
class ObservedPipeline:
    """A pipeline as it was found at `now_ms`: what an overview, and more, is made from.

    `definition` has the key and the columns that the tables have; those that are new come with a later batch.
    """

    definition: Definition
    now_ms: int
    tables: Tables
    ledger: LedgerState
    status: Status
    tail: Tail
    checked: Sequence[Validated]
    still: Sequence[str]  # what time alone shows: silence, a watermark that is far behind

    @property
    def waiting(self) -> Plan | None:
        """The batch that waits for a decision."""
        return self.ledger.plan if self.ledger.is_refused else None

    @property
    def checked_in_force(self) -> Sequence[Validated]:
        """Those of `checked` that no rollback has undone."""
        in_force = {run.batch_id for run in self.tail.in_force}
        undone = {run.batch_id for run in self.tail.runs} - in_force
        return [one for one in self.checked if one.batch_id not in undone]

    def commands(self, waiting: Plan) -> tuple[str, str]:
        """What approves and what abandons a batch that waits, to be pasted."""
        approve, abandon = (decision_command(one, self.definition.file, waiting) for one in ("approve", "abandon"))
        return approve, abandon


def looked(definition: Definition, now_ms: int, ledger: Ledger | None = None) -> ObservedPipeline:
    """A pipeline as it is now; `ledger` is that of a caller who has its tables open. Raises `WindowError` where they
    cannot be read.
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
        checked=kept(definition.root, RUNS_SHOWN),
        still=[one.sentence for one in standing_still(definition, ledger, state, now_ms)],
    )


def state_of(found: ObservedPipeline) -> tuple[State, str]:
    """What a pipeline does, and why."""
    status, unfinished = found.status, found.status.unfinished
    if not status.same_definition:
        return State.FAILING, "the definition was edited: it is no longer that of the tables, and no run starts"
    if found.waiting:
        return State.WAITING, f"batch {found.waiting.batch_id} was refused by its checks"
    if unfinished and unfinished.running:
        return State.RUNNING, f"batch {unfinished.batch_id}: {unfinished.running}"
    if stands := [*_stands(found, unfinished)]:
        return State.FAILING, "; ".join(stands)
    if unfinished:
        return State.PLANNED, _planned(found, unfinished)
    if found.ledger.commit is None:
        return State.NEW, _arrived(status.files_waiting, "no run has committed a batch")
    return State.IDLE, _arrived(status.files_waiting, "there is nothing left to read")


def _stands(found: ObservedPipeline, unfinished: Unfinished | None) -> Iterator[str]:
    """Why nothing goes on, though no operator has to decide."""
    if given_up := _given_up(found, unfinished):
        yield given_up
    if problem := found.status.further_problem:
        yield problem
    if error := found.status.error:
        yield error.words


def _given_up(found: ObservedPipeline, unfinished: Unfinished | None) -> str | None:
    """That a run has begun a batch and ended; one that none has begun waits for the next, however long ago it was
    planned: its DAG may be paused, or its plan was made by hand."""
    if unfinished is None or not found.ledger.is_begun:
        return None
    return f"the run that worked on batch {unfinished.batch_id} ended without finishing it"


def _planned(found: ObservedPipeline, unfinished: Unfinished) -> str:
    """What waits for a run, and for how long, where that is a minute or more."""
    approved = (one.at_ms for one in found.tail.said if one.kind == "approve" and unfinished.approved_by)
    since_ms = max(unfinished.planned_at_ms, next(approved, unfinished.planned_at_ms))
    waits_ms = (found.now_ms - since_ms) // UNITS["m"] * UNITS["m"]
    ago = f" {format_duration(waits_ms)} ago" if waits_ms > 0 else ""
    if unfinished.approved_by:
        return f"batch {unfinished.batch_id} was approved by {unfinished.approved_by}{ago}: the next run publishes it"
    if ago:
        return f"batch {unfinished.batch_id} was planned{ago}, and no run has begun it yet"
    return f"batch {unfinished.batch_id} is planned: no run has begun it yet"


def _arrived(files: int | None, otherwise: str) -> str:
    if not files:
        return otherwise
    return f"{files:,} new {'file waits' if files == 1 else 'files wait'} for the next run"
