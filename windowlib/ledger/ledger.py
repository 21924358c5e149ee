"""The control plane: who may run, what a run will read, and which runs exist.

The ledger is one append-only Delta table whose every append is a compare-and-set, so that its rows are totally
ordered, on a local disk too. Two rules make a run safe to kill and safe to start twice:

* **A plan is frozen.** Before any work a `plan` row fixes the batch: files, watermark, plan time, and the terms under
  which it is computed. A retry finds that row and does the same work again, or, under other terms, replaces it.
* **A claim fences.** A `claim` row names its owner and raises the epoch; a writer whose epoch is not the highest any
  more is refused its next row (`Superseded`). A claim lives while its process is at work, or, where that cannot be
  seen, while heartbeats come in (`windowlib.ledger.owner`).

A `commit` row, written last, names the version of every table: from then on the run exists.
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
_FORGONE: set[tuple[Path, int]] = set()  # claims of this process, by their epoch, whose end could not be written


def wall_clock_ms() -> int:
    """The clock of the control plane. A run's own time is its plan's."""
    return time.time_ns() // 1_000_000


class Superseded(WindowError):
    """Another run holds this pipeline, or has taken it over."""


class DecidedMeanwhile(TryAgain):
    """Another command, which may be over by now, has planned or decided something since this one looked."""


class NothingToDecide(WindowError):
    """`approve` or `abandon`, but no batch waits for it."""


class Rejected(ExpectationsFailed):
    """The checks refused this batch; it waits for `windowlib approve` or `windowlib abandon`."""


class ApprovalPending(Rejected):
    """The checks refused a batch in an earlier run, and it still waits: nothing was done."""

    def __init__(self, sentence: str, batch_id: int) -> None:
        super().__init__(sentence)
        self.batch_id = batch_id


@dataclass(slots=True)
class Ledger:
    """The ledger of one pipeline, and its `tables`, which a run opens once and passes on.

    `root` is the pipeline's folder; `clock` stamps rows and judges leases. Several threads may write to one ledger.
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
        """What holds now."""
        with self._lock:
            table = self.tables[LEDGER.name]
            if table.version() != self._state.version:
                self._state = fold(table)
            return self._state

    def settled(self, look: Callable[[LedgerState], T]) -> T:
        """What `look` makes of what holds now, without a claim.

        Made again where others have gone on meanwhile and have deleted the prepared publication that the state names,
        or shortened a log past a version that it names.
        """
        while True:
            state = self.state()
            try:
                return look(state)
            except (Unreadable, CutLog):
                if self.state().version == state.version:
                    raise

    def claim(self, note: Callable[[str], None] = lambda what: None) -> tuple[LedgerState, Claim]:
        """Claims the pipeline; gives the state before. Raises `Superseded` when a run that is at work holds it.

        Where that run cannot be seen from here, this waits for a heartbeat of it, at most `lease_timeout`.
        """

        def claimed() -> tuple[LedgerState, Claim]:
            state = self.state()
            while state.claim and not state.claim.released and not self._is_free(state.claim, note):
                state = self.state()  # released meanwhile
            epoch = (state.claim.epoch if state.claim else 0) + 1
            mine = replace(owner.this_process(), lease_timeout_ms=self.lease_timeout_ms).to_json()
            self._append(state, {"kind": "claim", "epoch": epoch, "owner": mine})
            return state, Claim(epoch, mine, self.clock(), state.sequence + 1)

        return delta_commits.again_on_conflict(claimed)

    def forgo(self, claim: Claim) -> None:
        """Frees a claim whose release cannot be written: in this process at once, in others when it ends."""
        _FORGONE.add((self.root, claim.epoch))

    def write(self, row: Mapping[str, Any], epoch: int | None = None) -> None:
        """Appends a row. With `epoch`, only while no later claim exists: else raises `Superseded`."""
        self.decide(lambda state: row, epoch)

    def decide(self, make: Callable[[LedgerState], Mapping[str, Any]], epoch: int | None = None) -> None:
        """Appends the row that `make` gives for exactly the state that the row then follows. Raises as `write`."""

        def decided(state: LedgerState) -> tuple[Rows, None]:
            if epoch is not None:
                self.check(epoch)
            return [make(state)], None

        self._follow(decided)

    def write_together(self, rows: Rows, after: LedgerState, epoch: int) -> None:
        """Appends all of some rows or none, if nothing but heartbeats and plans of what is new came after a state, else
        `DecidedMeanwhile`.
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
        """No other thread of this process writes to the ledger in the block."""
        return self._lock

    def freeze(self, make: Callable[[LedgerState], Plan | None]) -> tuple[LedgerState, Plan | None]:
        """The plan to work on: the frozen one, or what `make` gives, frozen now; None when there is nothing to do."""

        def frozen(state: LedgerState) -> tuple[Rows, tuple[LedgerState, Plan | None]]:
            if state.plan:
                return [], (state, state.plan)
            plan = make(state)
            return [plan_row(plan)] if plan else [], (replace(state, plan=plan), plan)

        return self._follow(frozen)

    def replace_plan(
        self, stale: Plan, make: Callable[[LedgerState], Plan | None], epoch: int
    ) -> tuple[LedgerState, Plan | None]:
        """Freezes what `make` gives in the place of a plan that is not prepared, under the same batch id.

        Where `make` finds nothing to do any more, the batch is abandoned. Raises `Superseded` when a later claim
        exists.
        """

        def replaced(state: LedgerState) -> tuple[Rows, tuple[LedgerState, Plan | None]]:
            self.check(epoch)
            if state.plan != stale or state.prepared:
                return [], (state, state.plan)
            before = replace(state, plan=None, rejection=None, approved_by=None, last_batch_id=stale.batch_id - 1)
            plan = make(before)
            why = "planned under other terms; under those of now there is nothing to do"
            row = plan_row(plan) if plan else abandon_row(stale.batch_id, BY_ITSELF, why)
            return [row], (replace(before, plan=plan), plan)

        return self._follow(replaced)

    def _follow(self, make: Callable[[LedgerState], tuple[Rows, T]]) -> T:
        """Appends the rows that `make` gives for exactly the state that they follow; gives what it makes next to them.

        An operator, a planner or a heartbeat may be faster: then `make` looks again.
        """

        def step() -> T:
            with self._lock:
                state = self.state()
                rows, made = make(state)
                if rows:
                    self._append(state, *rows)
                return made

        return delta_commits.again_on_conflict(step)

    def _append(self, state: LedgerState, *rows: Mapping[str, Any]) -> None:
        """Appends rows in one commit, under the newest claim or their own. Raises `Conflict`, `disk.CannotWrite`."""
        table, version = self.tables[LEDGER.name], state.version
        with disk.refusals_named(self.root):
            if version is None:
                disk.create_folder(table.folder)  # before the ledger is there: later runs need not ask
                version = delta_commits.create(table, LEDGER.schema())
            common = {"epoch": state.claim.epoch if state.claim else 0, "at": utc(self.clock())}
            numbered = [{**common, "sequence": state.sequence + n, **with_format(row)} for n, row in enumerate(rows, 1)]
            small.append_rows(table, version, numbered)

    def holder(self, claim: Claim) -> str | None:
        """Who holds the claim, in words, or None when no run does any more. By the clocks: only to be shown."""
        by = Owner.of_json(claim.owner)
        match by.life():
            case ProcessState.AT_WORK:
                return str(by)
            case ProcessState.ENDED:
                return None
        age_ms = self.clock() - claim.alive_at_ms
        return None if age_ms >= by.lease_ms(self.lease_timeout_ms) else f"{by}, last heard of {age_ms // 1000} s ago"

    def longest_lease_ms(self) -> int:
        """For how long a claim may have to wait for a sign of the run that holds the pipeline."""
        claim = self.state().claim
        return Owner.of_json(claim.owner).lease_ms(self.lease_timeout_ms) if claim else self.lease_timeout_ms

    def _is_free(self, claim: Claim, note: Callable[[str], None]) -> bool:
        """Whether the run that made the claim has ended; False once it is released. Raises `Superseded`."""
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
            raise Superseded(f"another run holds this pipeline ({by}); it continues, this one leaves")
        return True


def _without_new_plan(state: LedgerState, after: LedgerState) -> LedgerState:
    """A state without the plan of what is new that came after another one: no run begins on it while a claim holds.

    A run plans before it claims, so where runs are scheduled every minute there is always such a plan.
    """
    plan = state.plan
    if plan is None or after.plan or state.prepared or plan.rerun or plan.decision:
        return state
    return replace(state, plan=None)


def _decides(state: LedgerState) -> tuple[object, ...]:
    """What of a state a decision about the tables depends on. What a commit row says may lose an erased key."""
    return state.plan, state.prepared, state.commit and state.commit.batch_id, state.kept_migration
