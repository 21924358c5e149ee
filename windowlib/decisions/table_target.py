"""Files of every table after a decision: the current files, or the files of an earlier batch.

`adopt` and `rollback` differ only in these target files. The files exist already, so nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from windowlib.batches.may_run import check_fingerprint
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.decision_batch import DecisionBatch, publish_decision
from windowlib.decisions.forecast import DecisionForecast
from windowlib.definition.definition import Definition
from windowlib.delta import log
from windowlib.delta.data_files import DataFile, without
from windowlib.delta.table_change import logged
from windowlib.ledger.decision import Decision
from windowlib.ledger.ledger import Clock, Ledger
from windowlib.ledger.prepare import TableChange
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.publication.foreign_changes import rows_changed
from windowlib.publication.roll_forward import check_adoptable, is_ours
from windowlib.publication.start_versions import COUNTED, changes_since
from windowlib.runs.operation import Settlement, held
from windowlib.source import marker


@dataclass(frozen=True, slots=True)
class TableTarget:
    """Files of each table after a decision, and the commit whose definition and source position the pipeline gets."""

    files: Mapping[str, list[DataFile]]
    commit: Commit


def usable_ledger(definition: Definition, clock: Clock) -> Ledger:
    """Ledger of a pipeline. Raises `StateMismatch` if another definition wrote its tables."""
    ledger = ledger_of(definition, clock)
    check_fingerprint(definition, ledger.state().commit)
    return ledger


def own_files(ledger: Ledger, name: str, pinned: int | None) -> list[DataFile]:
    """Files of a table, without files of an unfinished batch. Raises `ForeignChange`."""
    table = ledger.tables[name]
    newest = table.version()
    if newest is None:
        return []
    since = changes_since(table, pinned, newest)
    check_adoptable(table, (entry for entry in since if not is_ours(entry)))
    return table.files(pinned if any(map(is_ours, since)) else newest)


def forecast_target(
    ledger: Ledger, state: LedgerState, decision: Decision, target: TableTarget, notes: list[str]
) -> DecisionForecast:
    """Effect of replacing the files of each table by the target's files: the rows that the table gains and loses."""
    rows = []
    for name in COMMIT_ORDER:
        table, before = ledger.tables[name], state.pinned(name)
        now = table.files(table.version()) if decision.kind == "rollback" else table.files(before)
        if {file.path for file in now} != {file.path for file in target.files[name]}:
            rows.append(rows_changed(table, now, target.files[name]))
    if state.plan:
        notes = [*notes, f"batch {state.plan.batch_id}, which is not finished, is abandoned first"]
    changed = tuple(change for change in rows if change.added or change.removed)
    return DecisionForecast(decision.title, changed, tuple(notes))


def publish_target(ledger: Ledger, decision: Decision, find: Callable[[Ledger, LedgerState], TableTarget]) -> int:
    """Publishes the target that `find` returns as the newest batch, and returns its id.

    Abandons an unfinished batch. Calls `find` before the claim, too, so that its errors are raised without a claim.
    """
    ledger.settled(lambda state: find(ledger, state))
    with held(ledger, settlement=Settlement.GIVE_UP) as pipeline:
        state = pipeline.state
        target = find(ledger, state)
        ledger.store.sync(_files_of_others(ledger, state, target))
        batch_id = publish_decision(pipeline, _batch(ledger, decision, target))
        if state.prepared:
            ledger.store.delete([state.prepared.path])
    return batch_id


def _batch(ledger: Ledger, decision: Decision, target: TableTarget) -> DecisionBatch:
    is_rollback = decision.kind == "rollback"
    counts = {figure: sum(file.rows for file in target.files[name]) for name, figure in COUNTED.items()}
    at = target.commit.versions if is_rollback else {}
    changes = tuple(_table_change(ledger, name, target.files[name], at.get(name)) for name in COMMIT_ORDER)
    commit = replace(target.commit, definition=marker.without(target.commit.definition))
    return DecisionBatch(decision, commit, changes, counts, plan_time_ms=commit.plan_time_ms if is_rollback else None)


def _files_of_others(ledger: Ledger, state: LedgerState, target: TableTarget) -> Iterator[str]:
    """Paths of target files and log entries since the newest batch, which other programs may not have synced."""
    for name in COMMIT_ORDER:
        table, pinned = ledger.tables[name], state.pinned(name)
        newest = table.version()
        if newest is not None and newest != pinned:
            for version in range(0 if pinned is None else pinned + 1, newest + 1):
                yield from (f"{name}/{path}" for path in log.written_by(table.store, version))
            yield from (f"{name}/{file.path}" for file in target.files[name])


def _table_change(ledger: Ledger, name: str, wanted: list[DataFile], at: int | None) -> TableChange:
    """Change that makes `wanted` the files of a table. With `at`, it also restores the columns of that version."""
    table = ledger.tables[name]
    newest = table.version()
    columns = None if at is None else table.schema(at)
    have = table.files(newest)
    return TableChange(
        name,
        newest,
        add=tuple(map(logged, without(wanted, have))),
        remove=tuple(map(logged, without(have, wanted))),
        columns=columns.to_json() if columns and newest is not None and columns != table.schema(newest) else None,
    )
