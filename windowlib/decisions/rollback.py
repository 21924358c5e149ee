"""Operation `rollback`: returns the tables, the watermark and the source position to an earlier batch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.forecast import DecisionForecast, NothingToDo
from windowlib.decisions.table_target import TableTarget, forecast_target, own_files, publish_target, usable_ledger
from windowlib.definition.commands import THIS, WHY, to_paste
from windowlib.definition.definition import Definition
from windowlib.ledger.decision import Decision
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.ledger.migration import switched
from windowlib.ledger.retained_batches import check_kept
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.publication.foreign_changes import CannotUndo, check_files_exist


def forecast_rollback(definition: Definition, to_batch_id: int, clock: Clock = wall_clock_ms) -> DecisionForecast:
    """Effect of `rollback`. Raises the errors of `rollback`."""
    ledger = usable_ledger(definition, clock)
    state, decision = ledger.state(), Decision("rollback", "", "", to_batch_id=to_batch_id)
    target = _target(to_batch_id, ledger, state)
    assert state.commit is not None, "there is a batch to roll back to"
    undone = [commit.batch_id for commit in commits_of(ledger.tables, to_batch_id + 1)]
    again = state.commit.to_sequence - target.commit.to_sequence
    notes = [
        f"undone: {'batch' if len(undone) == 1 else 'batches'} {', '.join(map(str, undone))}",
        f"{max(again, 0)} source file{'' if again == 1 else 's'} will be read again by the next run",
        "consumers that read result_changes by batch_id must resync: it has no rows of undone batches any more",
    ]
    return forecast_target(ledger, state, decision, target, notes)


def rollback(definition: Definition, to_batch_id: int, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Publishes the tables of batch `to_batch_id` again, as a new batch. Returns its id.

    The next run reads the files of the undone batches again. A planned or waiting batch is abandoned. Raises
    `NothingToDo`, `CannotUndo` if files are deleted or a migration or an erasure lies between, `CutExpired`,
    `ForeignChange`, `Superseded`.
    """
    decision = Decision("rollback", who, reason, to_batch_id=to_batch_id)
    return publish_target(usable_ledger(definition, clock), decision, partial(_target, to_batch_id))


def _target(to_batch_id: int, ledger: Ledger, state: LedgerState) -> TableTarget:
    commits = {commit.batch_id: commit for commit in commits_of(ledger.tables)}
    if to_batch_id not in commits:
        ids = ", ".join(map(str, sorted(commits)[-5:])) or "none"
        raise NothingToDo(f"no batch {to_batch_id} is committed; the newest are: {ids}")
    if state.commit is not None and state.commit.batch_id == to_batch_id:
        raise NothingToDo(f"batch {to_batch_id} is the newest: there is nothing to undo")
    _check_between(ledger, to_batch_id, commits)
    check_kept(ledger.store, to_batch_id, f"no way back to batch {to_batch_id}")
    for name in COMMIT_ORDER:
        own_files(ledger, name, state.pinned(name))
    commit = commits[to_batch_id]
    files = {name: ledger.tables[name].files(commit.versions.get(name)) for name in COMMIT_ORDER}
    for name, wanted in files.items():
        check_files_exist(ledger.tables[name], wanted, f"no way back to batch {to_batch_id}")
    return TableTarget(files, commit)


def _check_between(ledger: Ledger, to_batch_id: int, commits: Mapping[int, Commit]) -> None:
    """Raises `CannotUndo` if a batch after `to_batch_id` is a migration or an erasure."""
    for batch_id in sorted((batch_id for batch_id in commits if batch_id > to_batch_id), reverse=True):
        decision = commits[batch_id].decision
        if decision is None or not (decision.switches or decision.kind == "forget"):
            continue
        back = f" `{to_paste('rollback', THIS, '--to-batch', str(batch_id), *WHY)}` rolls back to batch {batch_id}."
        back = "" if batch_id == max(commits) else back
        if decision.switches:
            undo = f" `{to_paste('migrate', THIS, '--undo', *WHY)}` undoes the newest migration."
            raise CannotUndo(
                f"batch {batch_id} is a migration ({decision.title}), and a rollback cannot cross it."
                f"{undo if switched(ledger) else ''}{back}"
            )
        raise CannotUndo(
            f"batch {batch_id} erased a key, and a rollback cannot cross it: the key would be back.{back}"
            " A rerun recomputes a time range before the erasure"
        )
