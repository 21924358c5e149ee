"""Frame of every operation that changes a pipeline: a run, maintenance, a migration, an erasure, or a decision.

    with held(ledger, note) as pipeline:    # claim, fence, settle
        changes = ...                       # decide: the part that differs between operations
        pipeline.publish(publication)       # publish, while no later claim exists

The claim is released at the end, even if the operation fails. An older run may be slow instead of dead: then it still
publishes its prepared batch.

**Fencing rule**: an empty commit to every table makes the next commit of an older run fail. Fencing is needed if the
older run could publish anything that this operation does not build on. There are two such cases:

* The last run or command did not release its claim. It may have died while it abandoned a batch.
* This operation abandons a prepared batch (`Settlement.GIVE_UP`). `abandon` needs no fence, because it commits to every
  table anyway (`windowlib.publication.start_versions.give_up`).

A batch that stays prepared needs no fence either, because every run publishes exactly that batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from windowlib.ledger import prepare
from windowlib.ledger.entries import Follow
from windowlib.ledger.lease import explained_lease
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.prepare import Publication
from windowlib.ledger.rows import Claim, Commit, LedgerState
from windowlib.publication.start_versions import check_counts, fence, standing
from windowlib.runs import leftovers
from windowlib.runs.publication import publish

Note = Callable[[str], None]  # receives a sentence for the operator


def silent(note: object) -> None:
    """Drops a note. The ledger also records the event that the note describes."""


class Settlement(Enum):
    """Treatment of a batch that was prepared but not published before an operation."""

    KEEP = "it stays as it was prepared"
    PUBLISH = "it is published first, unless its checks refuse it"
    GIVE_UP = "it is abandoned by the operation"


@dataclass(frozen=True, slots=True)
class HeldPipeline:
    """A pipeline that this process has claimed. Runs with older claims can no longer write to its ledger.

    `state` is the ledger's state after fencing and after the `Settlement` of a prepared batch. `settled` is True if the
    settlement published that batch.
    """

    ledger: Ledger
    claim: Claim
    state: LedgerState
    settled: bool = False

    @property
    def commit(self) -> Commit:
        """Newest batch. It exists, because the operation has checked this before its claim."""
        assert self.state.commit is not None, "the operation has checked it before the claim"
        return self.state.commit

    def check(self) -> None:
        """Raises `Superseded` if a later claim exists."""
        self.ledger.check(self.claim.epoch)

    def attempt(self, batch_id: int) -> str:
        """Prefix of the files that this operation writes for a batch."""
        return f"{batch_id}-{self.claim.epoch}"

    def standing(self) -> dict[str, int]:
        """Version of each table at which it holds the rows of the newest batch.

        Undoes the commits of abandoned batches. Raises `ForeignChange`, `LostRows`, `Superseded`.
        """
        versions = standing(self.ledger.tables, self.commit.versions, self.check)
        check_counts(self.ledger.tables, versions, self.commit)
        return versions

    def publish(self, publication: Publication) -> None:
        """Rolls forward a publication that the ledger has fixed. Raises `Superseded`, `Overtaken`, `ForeignChange`."""
        publish(self.ledger, self.claim, publication)


@contextmanager
def held(
    ledger: Ledger, note: Note = silent, settlement: Settlement = Settlement.KEEP, follow: Follow = None
) -> Iterator[HeldPipeline]:
    """Claims the pipeline, fences and settles it, holds it during the block, and releases it.

    Appends the rows of `follow` with the claim (`Ledger.claim`). Removes the files of attempts that are over. Raises
    `Superseded` if another run holds the pipeline or takes it over, and `Overtaken` if other programs commit to a table
    first in every attempt.
    """
    before, claim = ledger.claim(note, follow)
    with explained_lease(ledger, claim):
        if before.left_by_a_dead_run or (before.prepared and settlement is Settlement.GIVE_UP):
            fence(ledger.tables, before.versions)
        leftovers.remove(ledger, claim, also_in_tables=before.left_by_a_dead_run)
        state, settled = ledger.last_state, False
        if settlement is Settlement.PUBLISH and state.prepared and not state.is_refused:
            publish(ledger, claim, prepare.read(ledger.store, state.prepared))
            state, settled = ledger.state(), True
        yield HeldPipeline(ledger, claim, state, settled)
