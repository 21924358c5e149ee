"""Control plane of a pipeline: claims, plans, commits and decisions.

The ledger is one append-only Delta table. Every append is a compare-and-set, so its rows are totally ordered, also on a
local disk. Two rules make it safe to kill a run and to start it twice:

* **A plan is frozen.** Before any work, a `plan` row fixes the files, watermark, plan time and terms of the batch. A
  retry finds that row and repeats the same work. If the terms have changed, it replaces the plan.
* **A claim fences.** A `claim` row names its owner and raises the epoch. A writer whose epoch is not the highest any
  more cannot append (`Superseded`). A claim lives while its process is at work. If the process cannot be seen, the
  claim lives while heartbeats arrive (`windowlib.ledger.owner`).

A `commit` row is written last and names the version of every table. From then on the batch exists.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from windowlib.contract.tables import LEDGER
from windowlib.definition.instants import utc
from windowlib.delta import commits as delta_commits
from windowlib.delta import disk
from windowlib.delta import small_tables as small
from windowlib.delta.log import CutLog
from windowlib.delta.tables import Tables
from windowlib.ledger import owner
from windowlib.ledger.owner import Owner, ProcessState, shows_life
from windowlib.ledger.prepare import Unreadable
from windowlib.ledger.reading import fold
from windowlib.ledger.rows import BY_ITSELF, Claim, LedgerState, Plan, abandon_row, plan_row, with_format
from windowlib.model.errors import ExpectationsFailed, TryAgain, WindowError

Clock = Callable[[], int]  # milliseconds since the epoch
Rows = Sequence[Mapping[str, Any]]
T = TypeVar("T")
_FORGONE: set[tuple[Path, int]] = set()  # claims of this process (folder, epoch) whose release could not be written


def wall_clock_ms() -> int:
    """Current time of the control plane, in ms since the epoch. A run uses the time of its plan instead."""
    return time.time_ns() // 1_000_000


class Superseded(WindowError):
    """Another run holds this pipeline, or has taken it over."""


class DecidedMeanwhile(TryAgain):
    """Another command has planned or decided something since this one read the ledger. It may have ended already."""


class NothingToDecide(WindowError):
    """`approve` or `abandon` was called, but no batch waits for a decision."""


class Rejected(ExpectationsFailed):
    """The checks refused this batch. It waits for `windowlib approve` or `windowlib abandon`."""


class ApprovalPending(Rejected):
    """A batch that the checks refused in an earlier run still waits. Nothing was done."""

    def __init__(self, sentence: str, batch_id: int) -> None:
        super().__init__(sentence)
        self.batch_id = batch_id


@dataclass(slots=True)
class Ledger:
    """The ledger of one pipeline, with its `tables`, which a run opens once and passes on.

    `root` is the pipeline's folder. `clock` stamps rows and judges leases. Several threads may write to one ledger.
    """

    root: Path
    clock: Clock
    lease_timeout_ms: int = 120_000
    tables: Tables = field(init=False)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _state: LedgerState = field(default_factory=LedgerState)  # as it was last read

    def __post_init__(self) -> None:
        self.tables = Tables(self.root)

    def state(self) -> LedgerState:
        """Current state of the ledger."""
        with self._lock:
            table = self.tables[LEDGER.name]
            if table.version() != self._state.version:
                self._state = fold(table)
            return self._state

    def settled(self, look: Callable[[LedgerState], T]) -> T:
        """Returns `look(state)` for the current state, without a claim.

        Repeats it if other processes have meanwhile deleted a prepared publication of the state, or shortened a log
        past one of its versions.
        """
        while True:
            state = self.state()
            try:
                return look(state)
            except (Unreadable, CutLog):
                if self.state().version == state.version:
                    raise

    def claim(self, note: Callable[[str], None] = lambda what: None) -> tuple[LedgerState, Claim]:
        """Claims the pipeline and returns the state before. Raises `Superseded` if a run that is at work holds it.

        If that run cannot be seen from here, waits for a heartbeat of it, at most `lease_timeout`.
        """

        def claimed() -> tuple[LedgerState, Claim]:
            state = self.state()
            while state.claim and not state.claim.released and not self._is_free(state.claim, note):
                state = self.state()  # the claim was released meanwhile
            epoch = (state.claim.epoch if state.claim else 0) + 1
            mine = replace(owner.this_process(), lease_timeout_ms=self.lease_timeout_ms).to_json()
            self._append(state, {"kind": "claim", "epoch": epoch, "owner": mine})
            return state, Claim(epoch, mine, self.clock(), state.sequence + 1)

        return delta_commits.again_on_conflict(claimed)

    def mark_forgone(self, claim: Claim) -> None:
        """Frees a claim whose release cannot be written: in this process at once, for other processes when this one
        ends.
        """
        _FORGONE.add((self.root, claim.epoch))

    def write(self, row: Mapping[str, Any], epoch: int | None = None) -> None:
        """Appends a row. With `epoch`, raises `Superseded` if a later claim exists."""
        self.decide(lambda state: row, epoch)

    def decide(self, make: Callable[[LedgerState], Mapping[str, Any]], epoch: int | None = None) -> None:
        """Appends the row that `make` returns for the state directly before that row. Raises the errors of `write`."""

        def decided(state: LedgerState) -> tuple[Rows, None]:
            if epoch is not None:
                self.check(epoch)
            return [make(state)], None

        self._follow(decided)

    def write_together(self, rows: Rows, after: LedgerState, epoch: int) -> None:
        """Appends all rows in one commit, or none.

        Raises `DecidedMeanwhile` if anything but heartbeats and plans of new files was appended since the state
        `after`.
        """

        def unless_decided(state: LedgerState) -> tuple[Rows, None]:
            self.check(epoch)
            if _decides(_without_new_plan(state, after)) != _decides(after):
                raise DecidedMeanwhile("the pipeline was planned or decided about meanwhile: look again")
            return rows, None

        self._follow(unless_decided)

    def check(self, epoch: int) -> None:
        """Raises `Superseded` unless the claim with this epoch is the newest."""
        claim = self.state().claim
        if claim is None or claim.epoch != epoch:
            raise Superseded(
                f"another run took this pipeline over (claim {claim.epoch if claim else 0}, this run has {epoch})"
            )

    def alone(self) -> AbstractContextManager[object]:
        """Keeps the other threads of this process from writing to the ledger during the block."""
        return self._lock

    def freeze(self, make: Callable[[LedgerState], Plan | None]) -> tuple[LedgerState, Plan | None]:
        """Returns the frozen plan. If there is none, freezes the plan that `make` returns; None if there is nothing to
        do.
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

        Abandons the batch if `make` finds nothing to do any more. Raises `Superseded` if a later claim exists.
        """

        def replaced(state: LedgerState) -> tuple[Rows, tuple[LedgerState, Plan | None]]:
            self.check(epoch)
            if state.plan != stale or state.prepared:
                return [], (state, state.plan)
            before = replace(state, plan=None, rejection=None, approved_by=None, last_batch_id=stale.batch_id - 1)
            plan = make(before)
            why = "planned under other terms; under the current terms there is nothing to do"
            row = plan_row(plan) if plan else abandon_row(stale.batch_id, BY_ITSELF, why)
            return [row], (replace(before, plan=plan), plan)

        return self._follow(replaced)

    def _follow(self, make: Callable[[LedgerState], tuple[Rows, T]]) -> T:
        """Appends the rows that `make` returns for the state directly before them. Returns the second value of `make`.

        If an operator, a planner or a heartbeat is faster, calls `make` again with the new state.
        """

        def step() -> T:
            with self._lock:
                state = self.state()
                rows, outcome = make(state)
                if rows:
                    self._append(state, *rows)
                return outcome

        return delta_commits.again_on_conflict(step)

    def _append(self, state: LedgerState, *rows: Mapping[str, Any]) -> None:
        """Appends rows in one commit, under the newest claim or their own epoch. Raises `Conflict` and
        `disk.CannotWrite`.
        """
        table, version = self.tables[LEDGER.name], state.version
        with disk.refusals_named(self.root):
            if version is None:
                disk.create_folder(table.folder)  # before the ledger exists, so later runs need not check
                version = delta_commits.create(table, LEDGER.schema())
            common = {"epoch": state.claim.epoch if state.claim else 0, "at": utc(self.clock())}
            numbered = [{**common, "sequence": state.sequence + n, **with_format(row)} for n, row in enumerate(rows, 1)]
            small.append_rows(table, version, numbered)

    def holder(self, claim: Claim) -> str | None:
        """The process that holds the claim, in words; None if no process does any more. Judged by clocks, so only for
        display.
        """
        by = Owner.of_json(claim.owner)
        match by.life():
            case ProcessState.AT_WORK:
                return str(by)
            case ProcessState.ENDED:
                return None
        age_ms = self.clock() - claim.alive_at_ms
        return None if age_ms >= by.lease_ms(self.lease_timeout_ms) else f"{by}, last heard of {age_ms // 1000} s ago"

    def longest_lease_ms(self) -> int:
        """The longest wait for a sign of life of the run that holds the pipeline."""
        claim = self.state().claim
        return Owner.of_json(claim.owner).lease_ms(self.lease_timeout_ms) if claim else self.lease_timeout_ms

    def _is_free(self, claim: Claim, note: Callable[[str], None]) -> bool:
        """Tests if the run that made the claim has ended. Returns False if the claim was released meanwhile.

        Raises `Superseded` if the run is still at work.
        """
        by = Owner.of_json(claim.owner)
        if by.is_same(owner.this_process()) and (self.root, claim.epoch) in _FORGONE:
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
            raise Superseded(f"another run holds this pipeline ({by}); it continues, this one ends")
        return True


def _without_new_plan(state: LedgerState, after: LedgerState) -> LedgerState:
    """Returns `state` without a plan of new files that was frozen after the state `after`.

    No run starts such a plan while the claim holds. A run plans before it claims, so a pipeline that is scheduled every
    minute always has one.
    """
    plan = state.plan
    if plan is None or after.plan or state.prepared or plan.rerun or plan.decision:
        return state
    return replace(state, plan=None)


def _decides(state: LedgerState) -> tuple[object, ...]:
    """The parts of a state that a decision about the tables depends on. Of the commit only its batch counts, because an
    erasure may rewrite the rest.
    """
    return state.plan, state.prepared, state.commit and state.commit.batch_id, state.kept_migration
