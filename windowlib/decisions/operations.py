"""What an operator makes the newest batch: what another program changed, or an earlier one. Each can be forecast first.

`adopt` and `rollback` are batches that compute nothing: a plan, a prepared publication of files that are there already,
and a commit row with the `Decision`. Their rows are written together, so that a process which dies before has done
nothing, and one that dies later is finished by the next run. What takes changes back: `windowlib.decisions.restore`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from windowlib.batches.may_run import check_fingerprint
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.decided import DecisionBatch, fixed
from windowlib.decisions.restore import DecisionForecast, NothingToDo, changed
from windowlib.definition.commands import THIS, WHY, to_paste
from windowlib.definition.definition import Definition
from windowlib.delta import disk, log
from windowlib.delta.data_files import DataFile, without
from windowlib.delta.table_change import logged
from windowlib.ledger.decision import Decision
from windowlib.ledger.history import commits_of
from windowlib.ledger.lease import deciding
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.ledger.migration import switched
from windowlib.ledger.prepare import TableChange
from windowlib.ledger.retained_batches import check_kept
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.publication.foreign_changes import CannotUndo, check_files_exist, files_kept, rows_changed
from windowlib.publication.roll_forward import check_adoptable, is_ours
from windowlib.publication.start_versions import COUNTED, changes_since, fence
from windowlib.runs.publication import publish


@dataclass(frozen=True, slots=True)
class _Target:
    """What a decision makes of the tables: the files of each, and the commit whose place it takes."""

    files: Mapping[str, list[DataFile]]
    commit: Commit


MEANS = {
    "results": "results: readers see the change at once; result_changes does not have it, and a late event or a rerun"
    " computes such windows again from their events",
    "open_windows": "open_windows: rows that are gone never fire, and their events are counted nowhere else",
    "source_files": "source_files: a file that is no longer named is read again, and its events count twice",
    "watermarks": "watermarks: the watermark of the newest batch stays; an idle source uses the newest row",
    "seen_ids": "seen_ids: an event whose id is gone counts again if it comes again",
}


def _ledger_of(definition: Definition, clock: Clock) -> Ledger:
    """The ledger; raises `StateMismatch` where its tables were written by another definition."""
    ledger = ledger_of(definition, clock)
    check_fingerprint(definition, ledger.state().commit)
    return ledger


def forecast_adopt(definition: Definition, clock: Clock = wall_clock_ms) -> DecisionForecast:
    """What `adopt` keeps. Raises `NothingToDo`, `CannotUndo`."""
    ledger = _ledger_of(definition, clock)
    return ledger.settled(lambda state: _forecast_adopt(ledger, state))


def _forecast_adopt(ledger: Ledger, state: LedgerState) -> DecisionForecast:
    found, target = changed(ledger, state), _adopted(ledger, state)
    notes = [note for change in found for note in (*change.in_words, MEANS.get(change.name, ""))]
    return _forecast(ledger, state, Decision("adopt", "", ""), target, [note for note in notes if note])


def adopt(definition: Definition, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Makes what the tables hold now the newest batch, without what an unfinished batch had committed. Returns its id.

    A batch that is planned or waits is abandoned. Raises `NothingToDo`, `CannotUndo`, `Superseded`.
    """
    return _do(definition, Decision("adopt", who, reason), _adopted, clock)


def forecast_rollback(definition: Definition, to_batch_id: int, clock: Clock = wall_clock_ms) -> DecisionForecast:
    """What `rollback` undoes. Raises as it does."""
    ledger = _ledger_of(definition, clock)
    state, decision = ledger.state(), Decision("rollback", "", "", to_batch_id=to_batch_id)
    target = _rolled_back(to_batch_id)(ledger, state)
    assert state.commit is not None, "there is a batch to roll back to"
    undone = [one.batch_id for one in commits_of(ledger.tables, to_batch_id + 1)]
    again = state.commit.to_sequence - target.commit.to_sequence
    notes = [
        f"undone: {'batch' if len(undone) == 1 else 'batches'} {', '.join(map(str, undone))}",
        f"{max(again, 0)} source file{'' if again == 1 else 's'} will be read again by the next run",
        "who follows result_changes by batch_id must start again: its rows of undone batches are gone",
    ]
    return _forecast(ledger, state, decision, target, notes)


def rollback(definition: Definition, to_batch_id: int, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Brings every table back to what batch `to_batch_id` left, as a new batch. Returns its id.

    The next run reads the files of the undone batches again. A batch that is planned or waits is abandoned. Raises
    `NothingToDo`, `CannotUndo` where files are deleted, `CutExpired`, `ForeignChange`, `Superseded`.
    """
    decision = Decision("rollback", who, reason, to_batch_id=to_batch_id)
    return _do(definition, decision, _rolled_back(to_batch_id), clock)


def _adopted(ledger: Ledger, state: LedgerState) -> _Target:
    found = {change.name: change for change in changed(ledger, state)}
    if state.commit is None:
        raise CannotUndo(f"no batch is committed yet: delete the tables in {ledger.root} and run again")
    files = {}
    for name in COMMIT_ORDER:
        pinned = state.commit.versions.get(name)
        files[name] = files_kept(found[name], pinned) if name in found else _own_files(ledger, name, pinned)
    return _Target(files, state.commit)


def _rolled_back(to_batch_id: int) -> Callable[[Ledger, LedgerState], _Target]:
    def target(ledger: Ledger, state: LedgerState) -> _Target:
        known = {commit.batch_id: commit for commit in commits_of(ledger.tables)}
        if to_batch_id not in known:
            ids = ", ".join(map(str, sorted(known)[-5:])) or "none"
            raise NothingToDo(f"no batch {to_batch_id} is committed; the newest are: {ids}")
        if state.commit is not None and state.commit.batch_id == to_batch_id:
            raise NothingToDo(f"batch {to_batch_id} is the newest: there is nothing to undo")
        _check_between(ledger, to_batch_id, known)
        check_kept(ledger.root, to_batch_id, f"no way back to batch {to_batch_id}")
        for name in COMMIT_ORDER:
            _own_files(ledger, name, state.pinned(name))
        commit = known[to_batch_id]
        files = {name: ledger.tables[name].files(commit.versions.get(name)) for name in COMMIT_ORDER}
        for name, wanted in files.items():
            check_files_exist(ledger.tables[name], wanted, f"no way back to batch {to_batch_id}: of table {name}")
        return _Target(files, commit)

    return target


def _check_between(ledger: Ledger, to_batch_id: int, known: Mapping[int, Commit]) -> None:
    """Raises `CannotUndo` where a migration or an erasure lies between a batch and now."""
    for number in sorted((one for one in known if one > to_batch_id), reverse=True):
        decision = known[number].decision
        if decision is None or not (decision.switches or decision.kind == "forget"):
            continue
        back = f" `{to_paste('rollback', THIS, '--to-batch', str(number), *WHY)}` goes back to it."
        back = "" if number == max(known) else back
        if decision.switches:
            undo = f" `{to_paste('migrate', THIS, '--undo', *WHY)}` takes the newest migration back."
            raise CannotUndo(
                f"batch {number} lies between, a migration ({decision.title}): a rollback does not go across it."
                f"{undo if switched(ledger) else ''}{back}"
            )
        raise CannotUndo(
            f"batch {number} lies between, by which a key was erased: a rollback does not go across it, as the key"
            f" would be back.{back} A rerun recomputes a range of time before it"
        )


def _own_files(ledger: Ledger, name: str, pinned: int | None) -> list[DataFile]:
    """The files of a table without those of an unfinished batch. Raises `ForeignChange`."""
    table = ledger.tables[name]
    newest = table.version()
    if newest is None:
        return []
    since = changes_since(table, pinned, newest)
    check_adoptable(table.folder, (one for one in since if not is_ours(one)))
    return table.files(pinned if any(map(is_ours, since)) else newest)


def _forecast(
    ledger: Ledger, state: LedgerState, decision: Decision, target: _Target, notes: list[str]
) -> DecisionForecast:
    rows = []
    for name in COMMIT_ORDER:
        table, before = ledger.tables[name], state.pinned(name)
        now = table.files(table.version()) if decision.kind == "rollback" else table.files(before)
        if {f.path for f in now} != {f.path for f in target.files[name]}:
            rows.append(rows_changed(table, now, target.files[name]))
    if state.plan:
        notes = [*notes, f"batch {state.plan.batch_id}, which is not finished, is abandoned first"]
    return DecisionForecast(decision.title, tuple(one for one in rows if one.added or one.removed), tuple(notes))


def _do(
    definition: Definition, decision: Decision, find: Callable[[Ledger, LedgerState], _Target], clock: Clock
) -> int:
    ledger = _ledger_of(definition, clock)
    ledger.settled(lambda state: find(ledger, state))
    before, claim = ledger.claim()
    with deciding(ledger, claim):
        if before.left_by_a_dead_run or before.prepared:
            fence(ledger.tables, before.versions)  # a run may only be slow, and still roll a batch forward
        state = ledger.state()
        target = find(ledger, state)
        disk.sync(_of_others(ledger, state, target), ledger.root)
        made = fixed(ledger, claim, state, _decided(ledger, decision, target))
        publish(ledger, claim, made)
        if state.prepared:
            (ledger.root / state.prepared.path).unlink(missing_ok=True)
    return made.batch_id


def _decided(ledger: Ledger, decision: Decision, target: _Target) -> DecisionBatch:
    counts = {figure: sum(file.rows for file in target.files[name]) for name, figure in COUNTED.items()}
    at = target.commit.versions if decision.kind == "rollback" else {}
    changes = tuple(_table_change(ledger, name, target.files[name], at.get(name)) for name in COMMIT_ORDER)
    return DecisionBatch(decision, target.commit, changes, counts)


def _of_others(ledger: Ledger, state: LedgerState, target: _Target) -> Iterator[Path]:
    """The files and log entries that came since the newest batch and are kept: perhaps they are not on the disk yet."""
    for name in COMMIT_ORDER:
        table, pinned = ledger.tables[name], state.pinned(name)
        newest = table.version()
        if newest is not None and newest != pinned:
            for version in range(0 if pinned is None else pinned + 1, newest + 1):
                yield from log.written_by(table.folder, version)
            yield from (table.folder / file.path for file in target.files[name])


def _table_change(ledger: Ledger, name: str, wanted: list[DataFile], at: int | None) -> TableChange:
    """What makes `wanted` the files of a table; it gets the columns that it had at a version back, if one is given."""
    table = ledger.tables[name]
    newest = table.version()
    columns = None if at is None else table.at(at).schema()
    have = table.files(newest)
    return TableChange(
        name,
        newest,
        add=tuple(map(logged, without(wanted, have))),
        remove=tuple(map(logged, without(have, wanted))),
        columns=columns.to_json() if columns and newest is not None and columns != table.at(newest).schema() else None,
    )
