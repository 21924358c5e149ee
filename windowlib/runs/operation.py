"""Frame of every operation that changes a pipeline: a run, maintenance, a migration, an erasure, or a decision.

    with held(ledger, note) as pipeline:    # claim, fence, settle
        changes = ...                       # decide: all that is particular to the operation
        pipeline.publish(publication)       # publish, while no later claim exists

The claim is released at the end, however the operation ends. An older run can be slow instead of dead: then it still
publishes what was prepared. **Fencing rule**: an empty commit to every table makes its next commit fail, where what it
publishes is not what this operation goes on from. There are two such cases:

* The last run or command did not release its claim. It may have died while it gave up a batch.
* This operation gives up a batch that is prepared (`Settlement.GIVE_UP`). `abandon` needs no fence for that: it moves
  every table on as it takes the batch back (`windowlib.publication.start_versions.give_up`).

A batch that stays prepared needs none either, as every run publishes exactly that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from windowlib.ledger import prepare
from windowlib.ledger.lease import deciding
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.prepare import Publication
from windowlib.ledger.rows import Claim, Commit, LedgerState
from windowlib.publication.start_versions import check_counts, fence, standing
from windowlib.runs.leftovers import Leftovers
from windowlib.runs.publication import publish

Note = Callable[[str], None]  # gets a sentence that an operator should know


def silent(note: object) -> None:
    """Drops a note; the ledger holds what it is about."""


class Settlement(Enum):
    """Treatment of a batch that was prepared and not published before an operation."""

    KEEP = "it stays as it was prepared"
    PUBLISH = "it is published first, unless its checks refuse it"
    GIVE_UP = "it is given up by the operation"


@dataclass(frozen=True, slots=True)
class HeldPipeline:
    """A pipeline that this process has claimed: no older claim can write to its ledger any more.

    `state` is what the ledger says once the pipeline is fenced and settled; `settled` says that a batch was published
    for that.
    """

    ledger: Ledger
    claim: Claim
    state: LedgerState
    settled: bool = False

    @property
    def commit(self) -> Commit:
        """The newest batch. The operation has checked before its claim that there is one."""
        assert self.state.commit is not None, "it was looked for before the claim"
        return self.state.commit

    def check(self) -> None:
        """Raises `Superseded` where a later claim exists."""
        self.ledger.check(self.claim.epoch)

    def attempt(self, batch_id: int) -> str:
        """Prefix of the files that this operation writes for a batch."""
        return f"{batch_id}-{self.claim.epoch}"

    def standing(self) -> dict[str, int]:
        """Version of each table, with the rows that the newest batch left.

        Takes back the commits of batches that were given up. Raises `ForeignChange`, `LostRows`, `Superseded`.
        """
        versions = standing(self.ledger.tables, self.commit.versions, self.check)
        check_counts(self.ledger.tables, versions, self.commit)
        return versions

    def publish(self, publication: Publication) -> None:
        """Rolls forward a publication that the ledger has fixed. Raises `Superseded`, `Overtaken`, `ForeignChange`."""
        publish(self.ledger, self.claim, publication)


@contextmanager
def held(ledger: Ledger, note: Note = silent, settlement: Settlement = Settlement.KEEP) -> Iterator[HeldPipeline]:
    """Claims the pipeline, fences and settles it, holds it while the block works, and releases it.

    Removes the files that attempts which are over have left. Raises `Superseded` where another run holds the pipeline
    or takes it over, `Overtaken` where another program is faster with a table again and again.
    """
    leftovers = Leftovers.before_a_claim(ledger.root)
    before, claim = ledger.claim(note)
    with deciding(ledger, claim):
        if before.left_by_a_dead_run or (before.prepared and settlement is Settlement.GIVE_UP):
            fence(ledger.tables, before.versions)
        leftovers.remove(ledger, claim, also_in_tables=before.left_by_a_dead_run)
        state, settles = ledger.state(), False
        if settlement is Settlement.PUBLISH and state.prepared and not state.is_refused:
            publish(ledger, claim, prepare.read(ledger.root, state.prepared))
            state, settles = ledger.state(), True
        yield HeldPipeline(ledger, claim, state, settles)
