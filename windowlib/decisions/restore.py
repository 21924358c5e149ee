"""Operation `restore`: undoes the changes of another program in a pipeline's tables, table by table.

If `restore` is killed, the operator runs it again.
"""

from __future__ import annotations

from collections.abc import Iterator

from windowlib.batches.planning import ledger_of
from windowlib.decisions.forecast import DecisionForecast, NothingToDo
from windowlib.definition.definition import Definition
from windowlib.delta import commits as delta_commits
from windowlib.ledger import prepare
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.ledger.rows import LedgerState, abandon_row
from windowlib.publication.foreign_changes import ChangedTable, files_before, foreign_changes, rows_changed
from windowlib.runs.operation import held


def forecast_restore(definition: Definition, clock: Clock = wall_clock_ms) -> DecisionForecast:
    """Effect of `restore`. Raises `NothingToDo`, `CannotUndo`."""
    ledger = ledger_of(definition, clock)
    return ledger.settled(lambda state: _forecast_restore(ledger, state))


def _forecast_restore(ledger: Ledger, state: LedgerState) -> DecisionForecast:
    rows, notes = [], list[str]()
    for change in changed(ledger, state):
        rows.append(rows_changed(change.table, change.table.files(change.newest), files_before(change)))
        notes += change.in_words
    notes += [
        f"batch {row['batch_id']}, an adoption that is not finished, is abandoned"
        for row in _adoption_given_up(state, "", "")
    ]
    return DecisionForecast("take back what another program changed", tuple(rows), tuple(notes))


def restore(definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms) -> list[str]:
    """Undoes the changes of other programs, and returns the names of the changed tables.

    A waiting batch keeps waiting, but an unfinished adoption of these changes is abandoned. Raises `NothingToDo` or
    `CannotUndo` before any table is changed, and `Superseded` while a run is in progress.
    """
    ledger = ledger_of(definition, clock)
    ledger.settled(lambda state: changed(ledger, state))
    with held(ledger) as pipeline:
        state = pipeline.state
        changes = changed(ledger, state)
        for change in changes:
            files_before(change)
        rows = [{"kind": "restore", "who": who, "reason": reason}]
        ledger.write_together([*_adoption_given_up(state, who, reason), *rows], state, pipeline.claim.epoch)
        for change in changes:
            delta_commits.restore(change.table, change.newest, change.ours)
    return [change.name for change in changes]


def _adoption_given_up(state: LedgerState, who: str, reason: str) -> Iterator[dict[str, object]]:
    """Yields the row that abandons an unfinished adoption, because `restore` undoes the adopted changes."""
    if state.plan and state.plan.decision and state.plan.decision.kind == "adopt":
        yield abandon_row(state.plan.batch_id, who, f"restore: {reason}")


def changed(ledger: Ledger, state: LedgerState) -> list[ChangedTable]:
    """Changes of other programs since the newest batch. Raises `NothingToDo`."""
    prepared = prepare.read(ledger.store, state.prepared) if state.prepared else None
    changes = foreign_changes(ledger.tables, state.versions, prepared)
    if not changes:
        raise NothingToDo("no other program has changed a table since the newest batch: there is nothing to do")
    return changes
