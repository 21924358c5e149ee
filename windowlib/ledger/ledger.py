"""Control plane of a pipeline: claims, plans, commits and decisions.

The ledger is one append-only Delta table. Every append is a compare-and-set, so its rows are totally ordered, also on a
local disk. Two rules make it safe to kill a run and to start it twice:

* **A plan is frozen.** Before any work, a `plan` row fixes the files, watermark, plan time and terms of the batch. A
  retry finds that row and repeats the same work. If the terms have changed, it replaces the plan.
* **A claim fences.** A `claim` row names its owner and raises the epoch. A writer whose epoch is no longer the highest
  cannot append (`Superseded`). A claim lives while its process is at work. If the process is out of sight, the claim
  lives while heartbeats arrive (`windowlib.ledger.owner`).

A `commit` row is written last and names the version of every table. From then on the batch exists.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from windowlib.contract.tables import LEDGER
from windowlib.definition.commands import THIS, to_paste
from windowlib.delta import commits as delta_commits
from windowlib.delta import small_tables as small
from windowlib.delta.log import CutLog
from windowlib.delta.tables import Tables
from windowlib.ledger import entries, moves, owner
from windowlib.ledger.entries import Follow, Row, Rows
from windowlib.ledger.owner import Owner, ProcessState, shows_life
from windowlib.ledger.prepare import Unreadable
from windowlib.ledger.reading import fold
from windowlib.ledger.rows import BY_ITSELF, Claim, LedgerState, Plan, abandon_row, plan_row
from windowlib.model.errors import ExpectationsFailed, TryAgain, WindowError
from windowlib.storage import refusals
from windowlib.storage.store import Store

Clock = Callable[[], int]  # milliseconds since the epoch
T = TypeVar("T")
_FORGONE: set[tuple[str, int]] = set()  # claims of this process (address, epoch) whose release could not be written


def wall_clock_ms() -> int:
    """Current time of the control plane, in ms since the epoch. A run uses the time of its plan instead."""
    return time.time_ns() // 1_000_000


class Superseded(WindowError):
    """Another run holds this pipeline, or has taken it over."""


class DecidedMeanwhile(TryAgain):
    """Another command planned or decided something after this command read the ledger."""


class NothingToDecide(WindowError):
    """`approve` or `abandon` was called, but no batch waits for a decision."""


class Rejected(ExpectationsFailed):
    """The checks refused this batch. It waits for `windowlib approve` or `windowlib abandon`."""


class ApprovalPending(Rejected):
    """A batch that the checks refused in an earlier run still waits for a decision. This run did nothing."""

    def __init__(self, sentence: str, batch_id: int) -> None:
        super().__init__(sentence)
        self.batch_id = batch_id


@dataclass(slots=True)
class Ledger:
    """Ledger of one pipeline. It opens the pipeline's `tables` once for a whole run.

    `store` holds all tables of the pipeline. `clock` gives the times of rows. Several threads may write to one ledger.
    """

    store: Store
    clock: Clock
    lease_timeout_ms: int = 120_000
    tables: Tables = field(init=False)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _state: LedgerState = field(default_factory=LedgerState)  # as it was last read or written

    def __post_init__(self) -> None:
        self.tables = Tables(self.store)

    def state(self) -> LedgerState:
        """Current state of the ledger."""
        with self._lock, moves.explained(self.store):
            table = self.tables[LEDGER.name]
            if (newest := table.version()) != self._state.version:
                self._state = fold(table, newest)
            return self._state

    @property
    def last_state(self) -> LedgerState:
        """State of the ledger as this process has last read or written it."""
        return self._state

    def settled(self, look: Callable[[LedgerState], T]) -> T:
        """Returns `look(state)` for the current state, without a claim.

        Calls `look` again with the new state if another process has deleted a file that `look` needs: the prepared
        publication of the state, or log entries of a table version that the state names.
        """
        while True:
            state = self.state()
            try:
                return look(state)
            except (Unreadable, CutLog):
                if self.state().version == state.version:
                    raise

    def claim(
        self, note: Callable[[str], None] = lambda what: None, follow: Follow = None
    ) -> tuple[LedgerState, Claim]:
        """Claims the pipeline. Returns the state before the claim, and the claim.

        Appends the rows that `follow` returns for the state after the claim, in the same commit.

        Raises `Superseded` if a run at work holds the pipeline. If the process of that run is out of sight, calls
        `note` and waits for its heartbeat, at most `lease_timeout`.
        """

        def claimed() -> tuple[LedgerState, Claim]:
            state = self.state()
            while state.claim and not state.claim.released and not self._is_free(state.claim, note):
                state = self.state()  # the claim was released meanwhile
            epoch = (state.claim.epoch if state.claim else 0) + 1
            mine = replace(owner.this_process(), lease_timeout_ms=self.lease_timeout_ms).to_json()
            row = {"kind": "claim", "epoch": epoch, "owner": mine}
            self._append(state, *self._followed(state, row, follow))
            return state, Claim(epoch, mine, self.clock(), state.sequence + 1)

        return delta_commits.again_on_conflict(claimed)

    def mark_forgone(self, claim: Claim) -> None:
        """Frees a claim whose release cannot be written. This process can claim the pipeline again at once, other
        processes after this process has ended.
        """
        _FORGONE.add((self.store.url, claim.epoch))

    def write(self, row: Row, epoch: int | None = None, follow: Follow = None) -> None:
        """Appends a row, and the rows that `follow` returns for the state after it, in one commit.

        With `epoch`, raises `Superseded` unless the claim with this epoch holds.
        """
        self.decide(lambda state: row, epoch, follow)

    def decide(self, make: Callable[[LedgerState], Row], epoch: int | None = None, follow: Follow = None) -> None:
        """Appends the row that `make` returns for the newest state, as `write` does. Raises the errors of `write`."""

        def decided(state: LedgerState) -> tuple[Rows, None]:
            if epoch is not None:
                self.check(epoch, state)
            return self._followed(state, make(state), follow), None

        self._follow(decided)

    def write_together(self, rows: Rows, after: LedgerState, epoch: int) -> None:
        """Appends all rows in one commit, or none.

        Raises `DecidedMeanwhile` if anything but heartbeats and plans of new files was appended since `after`.
        """

        def unless_decided(state: LedgerState) -> tuple[Rows, None]:
            self.check(epoch, state)
            if entries.decided_since(state, after):
                raise DecidedMeanwhile(f"another command planned or decided first: see `{to_paste('status', THIS)}`")
            return rows, None

        self._follow(unless_decided)

    def check(self, epoch: int, state: LedgerState | None = None) -> None:
        """Raises `Superseded` unless the claim with this epoch is the newest and is not released.

        `state` is the newest state if it was just read.
        """
        claim = (state or self.state()).claim
        if claim is None or claim.epoch != epoch or claim.released:
            raise Superseded(
                f"another run took this pipeline over (claim {claim.epoch if claim else 0}, this run has {epoch})"
            )

    def alone(self) -> AbstractContextManager[object]:
        """Keeps the other threads of this process from writing to the ledger during the block."""
        return self._lock

    def freeze(self, make: Callable[[LedgerState], Plan | None]) -> tuple[LedgerState, Plan | None]:
        """Returns the state and its frozen plan. If there is no frozen plan, freezes the plan that `make` returns.

        The plan is None if `make` finds nothing to do.
        """

        def frozen(state: LedgerState) -> tuple[Rows, tuple[LedgerState, Plan | None]]:
            if state.plan:
                return [], (state, state.plan)
            plan = make(state)
            return [plan_row(plan)] if plan else [], (replace(state, plan=plan), plan)

        return self._follow(frozen)

    def replace_plan(
        self, stale: Plan, make: Callable[[LedgerState], Plan | None], epoch: int
    ) -> tuple[LedgerState, Plan | None]:
        """Replaces an unprepared plan by the plan that `make` returns, under the same batch id.

        Abandons the batch if `make` finds nothing to do. Raises `Superseded` if a later claim exists.
        """

        def replaced(state: LedgerState) -> tuple[Rows, tuple[LedgerState, Plan | None]]:
            self.check(epoch, state)
            if state.plan != stale or state.prepared:
                return [], (state, state.plan)
            before = replace(state, plan=None, rejection=None, approved_by=None, last_batch_id=stale.batch_id - 1)
            plan = make(before)
            why = "planned under other terms; under the current terms there is nothing to do"
            row = plan_row(plan) if plan else abandon_row(stale.batch_id, BY_ITSELF, why)
            return [row], (replace(before, plan=plan), plan)

        return self._follow(replaced)

    def _follow(self, make: Callable[[LedgerState], tuple[Rows, T]]) -> T:
        """Appends the rows that `make` returns for the newest state. Returns the second value of `make`.

        If an operator, a planner or a heartbeat appends a row first, calls `make` again with the new state.
        """

        def step() -> T:
            with self._lock:
                state = self.state()
                rows, outcome = make(state)
                if rows:
                    self._append(state, *rows)
                return outcome

        return delta_commits.again_on_conflict(step)

    def _append(self, state: LedgerState, *rows: Row) -> None:
        """Appends rows in one commit. The state after them is known without reading.

        Raises `Conflict` and `refusals.CannotWrite`, and the errors of reading before anything is written.
        """
        table, version = self.tables[LEDGER.name], state.version
        with self._lock, refusals.refusals_named(self.store):
            written = entries.entry(state, rows, self.clock())
            after = entries.after(state, written)
            if version is None:
                moves.require_new_place(self.store)
                version = delta_commits.create(table, LEDGER.schema())
            self._state = replace(after, version=small.append_rows(table, version, written))

    def _followed(self, state: LedgerState, row: Row, follow: Follow) -> Rows:
        """The row, and the rows that follow it in its commit."""
        after = entries.after(state, entries.entry(state, [row], self.clock()))
        return [row, *(follow(after) if follow else ())]

    def holder(self, claim: Claim) -> str | None:
        """Description of the process that holds the claim; None if the process has ended or its lease has expired.

        Only for display, because the test of the lease compares the clocks of two machines.
        """
        by = Owner.of_json(claim.owner)
        if (life := by.life()) is ProcessState.AT_WORK:
            return str(by)
        age_ms = self.clock() - claim.alive_at_ms
        is_over = life is ProcessState.ENDED or age_ms >= by.lease_ms(self.lease_timeout_ms)
        return None if is_over else f"{by}, last heard of {age_ms // 1000} s ago"

    def longest_lease_ms(self) -> int:
        """Longest time in ms to wait for a heartbeat of the run that holds the pipeline, by the last state."""
        claim = self._state.claim
        return Owner.of_json(claim.owner).lease_ms(self.lease_timeout_ms) if claim else self.lease_timeout_ms

    def _is_free(self, claim: Claim, note: Callable[[str], None]) -> bool:
        """Tests if the run that made the claim has ended. Returns False if the run releases the claim meanwhile.

        Raises `Superseded` if the run is still at work.
        """
        by = Owner.of_json(claim.owner)
        if by.is_same(owner.this_process()) and (self.store.url, claim.epoch) in _FORGONE:
            return True
        life = by.life()
        if life is ProcessState.OUT_OF_SIGHT:
            lease_ms = by.lease_ms(self.lease_timeout_ms)
            note(f"waiting up to {lease_ms // 1000} s for a heartbeat of {by}, which holds this pipeline")
            if shows_life(lambda: self.state().claim, lease_ms):
                if (now := self.state().claim) is None or now.released:
                    return False
                life = ProcessState.AT_WORK
        if life is ProcessState.AT_WORK:
            raise Superseded(f"another run holds this pipeline ({by}); that run continues, and this run ends")
        return True
