"""What an operator says about a batch that waits: commit it in spite of its checks, or give it up."""

from __future__ import annotations

import shutil

from jobs import attempts
from jobs.definition import Definition
from jobs.lease import lease
from jobs.ledger import Clock, NothingToDecide, wall_clock_ms
from jobs.planning import ledger_of
from jobs.publish import staging_folder


def approve(definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Lets the rejected batch be committed by the next run, in spite of its checks. Gives its id."""
    ledger = ledger_of(definition, clock)
    state = ledger.state()
    if state.plan is None or state.rejection is None:
        raise NothingToDecide("no batch of this pipeline waits for approval")
    ledger.write({"kind": "approve", "batch_id": state.plan.batch_id, "who": who, "reason": reason})
    return state.plan.batch_id


def abandon(definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Gives the frozen batch up: tables go back to the newest commit, and the next run plans anew. Gives its id."""
    ledger = ledger_of(definition, clock)
    before, claim = ledger.claim()
    if before.left_by_a_dead_run:
        attempts.fence(definition.root)
    with lease(ledger, claim):
        frozen = before.plan
        if frozen is None:
            raise NothingToDecide("no batch of this pipeline is planned: there is nothing to abandon")
        row = {"kind": "abandon", "batch_id": frozen.batch_id, "who": who, "reason": reason}
        ledger.write(row, claim.epoch)
        # Should this process die here, the next run does it: `attempts.begin`.
        attempts.give_up(definition.root, before.commit.versions if before.commit else {})
    shutil.rmtree(staging_folder(definition.root), ignore_errors=True)
    return frozen.batch_id
