"""Operation `move`: copies a pipeline's tables to another storage, and lets the pipeline continue there.

    mark -> claim -> copy, compare, count -> release -> close (`move` row) -> copy the rest -> copy the ledger's log

Before the `move` row, the old place is the pipeline, and a run may continue there if the move is killed. After the row,
the old place accepts no row of the ledger, so that two copies cannot both advance. The log of the ledger without that
row makes the new place the pipeline. It is copied in an order in which each part of it is no log, or a damaged log.
`windowlib.ledger.moves` names both cases. A later attempt continues after any kill.

The old tables are kept as they are. Their readers see the batches from before the move.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import LEDGER
from windowlib.definition.definition import Definition
from windowlib.delta import log
from windowlib.ledger import moves
from windowlib.ledger.entries import Row
from windowlib.ledger.ledger import Clock, Ledger, Superseded, wall_clock_ms
from windowlib.ledger.rows import LedgerState
from windowlib.model.errors import InvalidSpec
from windowlib.moves import copying
from windowlib.moves.copying import Copied
from windowlib.moves.rows import TableRows, counted_rows, require_files, versions_of
from windowlib.moves.target import is_goal_of, is_open, require_free, require_ours, target_of
from windowlib.publication.publish import STAGING
from windowlib.runs.operation import held, silent
from windowlib.runs.run import Say
from windowlib.storage import probe
from windowlib.storage.store import Store

LOG = f"{LEDGER.name}/{log.FOLDER}/"
NOT_COPIED = (LOG, f"{STAGING}/", f"{probe.FOLDER}/", moves.MARK)


@dataclass(frozen=True, slots=True)
class MoveReport:
    """Outcome of a move. `objects` and `tables` are what was compared and counted after the old place was closed.

    Both are empty if an earlier command has finished the move (`done_already`).
    """

    pipeline: str
    moved_from: str
    moved_to: str
    warehouse: str
    objects: int = 0
    size_bytes: int = 0
    tables: tuple[TableRows, ...] = ()
    done_already: bool = False


def move(
    definition: Definition, warehouse: str, who: str, reason: str, say: Say = silent, clock: Clock = wall_clock_ms
) -> MoveReport:
    """Moves the tables to another warehouse, or finishes a move that was killed.

    Raises InvalidSpec if they cannot be moved there, `Moved` if they were moved elsewhere, `Superseded` during a run,
    and `LostFiles` if a file of a table is missing.
    """
    source, target, ledger = definition.store, target_of(definition, warehouse), ledger_of(definition, clock)
    state = ledger.state()
    if state.version is None:
        raise InvalidSpec(f"{source} has no tables yet: set `warehouse` in {definition.file} instead of moving them")
    about = MoveReport(definition.name, source.url, target.url, target.url.removesuffix(f"/{definition.name}"))
    if state.moved_to is None:
        require_ours(source, target)
        require_free(target)
        state = _closed(ledger, target, who, reason, say)
    elif not is_goal_of(state.moved_to, target):
        moves.require_stays(state.moved_to)
    elif moves.moving_from(target) is None and is_open(target):
        return _already(about)
    else:
        require_ours(source, target)
    return _opened(ledger, state, target, about, say)


def _already(about: MoveReport) -> MoveReport:
    return MoveReport(about.pipeline, about.moved_from, about.moved_to, about.warehouse, done_already=True)


def _closed(ledger: Ledger, target: Store, who: str, reason: str, say: Say) -> LedgerState:
    """Copies the tables while no run is at work, then closes the old place. Returns the state of its ledger."""
    with held(ledger, say) as pipeline:
        versions = versions_of(ledger.tables, pipeline.state)
        require_files(ledger.tables, versions)
        copying.copy(ledger.store, target, _is_copied, _is_kept, say)
        say("counting the rows of the copied tables")
        counted_rows(ledger.tables, versions, target)
        pipeline.check()

    def closing(state: LedgerState) -> Row:
        if state.claim is None or state.claim.epoch != pipeline.claim.epoch:
            raise Superseded("a run began before the move was complete: move again when that run has ended")
        to = json.dumps({"to": target.url})
        return {"kind": moves.KIND, "decision": to, "who": who, "reason": reason or None}

    ledger.decide(closing)
    return ledger.state()


def _opened(ledger: Ledger, state: LedgerState, target: Store, about: MoveReport, say: Say) -> MoveReport:
    """Copies what was written before the old place was closed, and last the log of the ledger without its last row."""
    assert state.version is not None, "the last row closed the old place"
    copied, tables = Copied(0, 0), tuple[TableRows, ...]()
    if not is_open(target):  # else a run may be at work there
        copied = copying.copy(ledger.store, target, _is_copied, _is_kept, say)
        versions = {**versions_of(ledger.tables, state), LEDGER.name: state.version - 1}
        say("counting the rows of the copied tables")
        tables = counted_rows(ledger.tables, versions, target)
    if (other := copying.create(ledger.store, target, [*_log(ledger.store, state.version)])) is not None:
        raise InvalidSpec(
            f"{target} became the place of another pipeline during the move ({other} differs): delete {target}, then"
            " move again"
        )
    target.delete([moves.MARK])
    return MoveReport(
        about.pipeline, about.moved_from, about.moved_to, about.warehouse, copied.objects, copied.size_bytes, tables
    )


def _log(source: Store, end: int) -> Iterator[str]:
    """Paths of the ledger's log before the version `end`, in the order of copying.

    Readers find an incomplete log until the first object from which a log can begin: entry 0, or a checkpoint.
    """
    files = [(version, kind, file.path) for version, kind, file in log.numbered(source.below(LEDGER.name))]
    before = sorted((file for file in files if file[0] < end and file[1] != "unfinished"), reverse=True)
    beginnings = [file for file in before if not file[0] or file[1] != "json"]
    for _, _, path in (*(file for file in before if file not in beginnings), *beginnings):
        yield f"{LEDGER.name}/{path}"


def _is_copied(path: str) -> bool:
    return not path.startswith(NOT_COPIED)


def _is_kept(path: str) -> bool:
    """Tests if an object of the new place is not deleted, although the old place does not have it."""
    return path.startswith((LOG, moves.MARK))
