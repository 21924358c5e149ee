"""What an operator says: publish a batch in spite of its checks; give it up; this machine's clock is right."""

from __future__ import annotations

import shutil

from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.tables import prepare
from windowlib.tables.lease import lease
from windowlib.tables.ledger import Clock, NothingToDecide, wall_clock_ms
from windowlib.tables.publish import staging_folder
from windowlib.tables.standing import give_up


def approve(definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Lets the rejected batch be committed by the next run, in spite of its checks. Gives its id."""
    ledger = ledger_of(definition, clock)
    state = ledger.state()
    if state.plan is None or state.rejection is None:
        raise NothingToDecide("no batch of this pipeline waits for approval")
    ledger.write({"kind": "approve", "batch_id": state.plan.batch_id, "who": who, "reason": reason})
    return state.plan.batch_id


def abandon(definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Abandons the frozen batch: tables go back to the newest commit, the next run makes a new plan. Returns its id."""
    ledger = ledger_of(definition, clock)
    before, claim = ledger.claim()
    with lease(ledger, claim):
        frozen = before.plan
        if frozen is None:
            raise NothingToDecide("no batch of this pipeline is planned: there is nothing to abandon")
        row = {"kind": "abandon", "batch_id": frozen.batch_id, "who": who, "reason": reason}
        ledger.write(row, claim.epoch)
        # Should this process die here, the next run does it: `windowlib.tables.standing`.
        if before.prepared:
            made = prepare.read(ledger.root, before.prepared)
            give_up(ledger.tables, before.commit.versions if before.commit else {}, made)
            prepare.drop(ledger.root, made)
    for folder in staging_folder(definition.root).glob(f"{frozen.batch_id}-*"):
        shutil.rmtree(folder, ignore_errors=True)
    return frozen.batch_id


def accept_clock(definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Lets batches be planned by this machine's clock, however far it is from the newest one. Gives its time, in ms."""
    ledger, now_ms = ledger_of(definition, clock), clock()
    ledger.write({"kind": "clock", "plan_time_ms": now_ms, "who": who, "reason": reason})
    return now_ms
