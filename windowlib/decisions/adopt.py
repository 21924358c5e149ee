"""Operation `adopt`: the changes of another program in a pipeline's tables become the newest batch."""

from __future__ import annotations

from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.forecast import DecisionForecast
from windowlib.decisions.restore import changed
from windowlib.decisions.table_target import TableTarget, forecast_target, own_files, publish_target, usable_ledger
from windowlib.definition.definition import Definition
from windowlib.ledger.decision import Decision
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.ledger.rows import LedgerState
from windowlib.publication.foreign_changes import CannotUndo, files_kept

CONSEQUENCES = {
    "results": "results: readers see the change at once, but result_changes does not have it. A late event or a rerun"
    " computes these windows again from their events",
    "open_windows": "open_windows: removed rows never fire, and their events are counted nowhere else",
    "source_files": "source_files: a file without a row is read again, and its events count twice",
    "watermarks": "watermarks: the watermark of the newest batch stays; an idle source uses the newest row",
    "seen_ids": "seen_ids: an event whose id was removed counts again if it arrives again",
}


def forecast_adopt(definition: Definition, clock: Clock = wall_clock_ms) -> DecisionForecast:
    """Effect of `adopt`. Raises `NothingToDo`, `CannotUndo`."""
    ledger = usable_ledger(definition, clock)
    return ledger.settled(lambda state: _forecast(ledger, state))


def _forecast(ledger: Ledger, state: LedgerState) -> DecisionForecast:
    changes, target = changed(ledger, state), _target(ledger, state)
    notes = [note for change in changes for note in (*change.in_words, CONSEQUENCES.get(change.name, ""))]
    return forecast_target(ledger, state, Decision("adopt", "", ""), target, [note for note in notes if note])


def adopt(definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Publishes the current rows of the tables as a new batch, and returns its id. Omits rows of an unfinished batch.

    Abandons a batch that is planned or waits. Raises `NothingToDo`, `CannotUndo`, `Superseded`.
    """
    return publish_target(usable_ledger(definition, clock), Decision("adopt", who, reason), _target)


def _target(ledger: Ledger, state: LedgerState) -> TableTarget:
    changes = {change.name: change for change in changed(ledger, state)}
    if state.commit is None:
        raise CannotUndo(
            f"no batch is committed yet, so nothing can be adopted: delete the tables in {ledger.store} and run again"
        )
    files = {}
    for name in COMMIT_ORDER:
        pinned = state.commit.versions.get(name)
        files[name] = files_kept(changes[name], pinned) if name in changes else own_files(ledger, name, pinned)
    return TableTarget(files, state.commit)
