"""`windowlib maintain`: compacts small files, and deletes files that no kept cut of the tables needs.

    claim -> compact (a batch that computes nothing) -> record the oldest kept cut -> delete -> shorten the logs

Compaction is a batch like `adopt` and `rollback`: it is prepared, then rolled forward, by commits that change no row
(`dataChange` is false). If the command is killed before the plan is in the ledger, nothing has changed. If it is killed
later, the next run finishes the batch. Files are deleted only after the record of the oldest kept cut is on the disk.
Each deletion may be repeated. While another batch is planned or waits, `maintain` skips the compaction of the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from windowlib.batches.may_run import check_fingerprint
from windowlib.batches.planning import ledger_of
from windowlib.contract.result_tables import RESULT_CHANGES
from windowlib.contract.tables import COMMIT_ORDER, OUTSIDE
from windowlib.decisions.decision_batch import DecisionBatch, publish_decision
from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant, utc
from windowlib.definition.toml.retention import RetentionPeriod
from windowlib.delta import checkpoints
from windowlib.delta.table_change import logged
from windowlib.ledger import maintenances as maintained
from windowlib.ledger.decision import Decision
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.ledger.maintenances import MaintenanceRecord
from windowlib.ledger.prepare import TableChange
from windowlib.ledger.rows import LedgerState
from windowlib.maintenance import compaction
from windowlib.maintenance.candidates import MaintenancePlan, look
from windowlib.maintenance.ledger_compaction import compact_history
from windowlib.publication.damage import check_exist, losses_named
from windowlib.publication.start_versions import COUNTED
from windowlib.runs.operation import HeldPipeline, held
from windowlib.storage import refusals
from windowlib.storage.at_once import at_once


@dataclass(frozen=True, slots=True)
class TableReport:
    """Maintenance of one table: current files before, compacted files, merged files (`into`), deleted files and log
    entries.
    """

    table: str
    files: int
    compacted: int
    into: int
    deleted: int
    bytes_deleted: int
    log_entries: int


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """Effect of a maintenance. Lists only the tables that it changes.

    `batch_id` is the batch that compacted files, or None. `others` counts the deleted files next to the tables, by
    category. `notes` has sentences for the operator. `dry_run` is True if nothing was changed.
    """

    batch_id: int | None
    kept_from: int | None
    cuts: str
    tables: tuple[TableReport, ...]
    others: Mapping[str, int]
    notes: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def bytes_deleted(self) -> int:
        return sum(table.bytes_deleted for table in self.tables)

    def json_fields(self) -> dict[str, Any]:
        """Fields of the report in JSON."""
        return {**asdict(self), "bytes_deleted": self.bytes_deleted}


def forecast(definition: Definition, clock: Clock = wall_clock_ms) -> MaintenanceReport:
    """Effect of `maintain` at the current time. Changes nothing."""
    ledger = ledger_of(definition, clock)
    return replace(ledger.settled(lambda state: _forecast(definition, ledger, state, clock())), dry_run=True)


def _forecast(definition: Definition, ledger: Ledger, state: LedgerState, now_ms: int) -> MaintenanceReport:
    check_fingerprint(definition, state.commit)
    if state.commit is None:
        return _nothing(definition.retention.cuts)
    versions = {name: version for name in COMMIT_ORDER if (version := ledger.tables[name].version()) is not None}
    plan = look(definition, ledger, state, versions, now_ms)
    notes = [*_waits(state), *_far_ahead(definition.file, plan, now_ms)]
    if state.claim and not state.claim.released and (holder := ledger.holder(state.claim)):
        notes.append(f"a run is in progress ({holder}): the files that it writes are counted as files to delete")
    return _report(definition.retention.cuts, plan, None, notes)


def maintain(
    definition: Definition, who: str, clock: Clock = wall_clock_ms, *, only_newest: bool = False
) -> MaintenanceReport:
    """Maintains the tables. Raises `Superseded` during a run, and `ForeignChange` or `LostRows` before any change.

    With `only_newest`, keeps only the newest cut, even if readers still use an older cut.
    """
    ledger, now_ms = ledger_of(definition, clock), clock()
    commit = ledger.state().commit
    check_fingerprint(definition, commit)
    if commit is None:
        return _nothing(definition.retention.cuts)
    with refusals.refusals_named(ledger.store), losses_named(ledger.tables), held(ledger) as pipeline:
        state, batch_id = pipeline.state, None
        versions = pipeline.standing() if state.plan is None else pipeline.commit.versions
        plan = look(definition, ledger, state, versions, now_ms, only_newest=only_newest)
        compact_history(ledger, pipeline.claim.epoch, _attempt(pipeline))
        if plan.groups or plan.announcements:
            batch_id = publish_decision(pipeline, _compacted(pipeline, plan, versions, who))
        cuts = RetentionPeriod(batches=1) if only_newest else definition.retention.cuts
        _delete(pipeline, plan, _kept(str(cuts), plan, batch_id, who, now_ms))
    notes = [*_waits(state), *_far_ahead(definition.file, plan, now_ms)]
    return _report(definition.retention.cuts, plan, batch_id, notes)


def _nothing(cuts: RetentionPeriod) -> MaintenanceReport:
    return MaintenanceReport(None, None, str(cuts), (), {}, ("no batch is committed yet",))


def _waits(state: LedgerState) -> Iterator[str]:
    if state.plan:
        condition = "waits for a decision" if state.rejection else "is planned"
        yield f"batch {state.plan.batch_id} {condition}: its files stay, and small files are compacted after it"


def _far_ahead(file: Path, plan: MaintenancePlan, now_ms: int) -> Iterator[str]:
    if now_ms != plan.counted_from_ms:
        yield (
            f"this machine's clock shows {instant(now_ms)}, far ahead of the newest batch, so ages are counted from"
            f" {instant(plan.counted_from_ms)} instead. If the clock is right, accept it:"
            f" `{to_paste('accept-clock', file, *WHY)}`"
        )


# -- changes -----------------------------------------------------------------------------------------------------


def _compacted(pipeline: HeldPipeline, plan: MaintenancePlan, versions: Mapping[str, int], who: str) -> DecisionBatch:
    """Writes the merged files, and returns the batch that replaces the small files."""
    ledger, commit, attempt = pipeline.ledger, pipeline.commit, _attempt(pipeline)
    for name, chosen in plan.groups.items():
        check_exist(ledger.tables, name, [file for files in chosen for file in files])
    changes = tuple(
        compaction.change(ledger.tables[name], versions[name], plan.groups.get(name, ()), attempt)
        if name in versions
        else TableChange(name, None)
        for name in COMMIT_ORDER
    )
    before, after = (sum(len(getattr(table, side)) for table in changes) for side in ("remove", "add"))
    forgotten = tuple(map(logged, plan.announcements))
    changes = tuple(
        replace(table, remove=(*table.remove, *forgotten)) if table.name == RESULT_CHANGES.name else table
        for table in changes
    )
    dropped = f", and {len(plan.announcements)} about erased keys deleted" if plan.announcements else ""
    decision = Decision("maintain", who, f"{before} small files compacted into {after}{dropped}")
    left = {figure: commit.counts[figure] for figure in COUNTED.values() if figure in commit.counts}
    return DecisionBatch(decision, commit, changes, left, of_rows=False)


def _attempt(pipeline: HeldPipeline) -> str:
    """Prefix of the names of the files that this maintenance writes."""
    return pipeline.attempt(pipeline.state.last_batch_id + 1)


def _kept(cuts: str, plan: MaintenancePlan, batch_id: int | None, who: str, now_ms: int) -> MaintenanceRecord:
    return MaintenanceRecord(
        utc(now_ms),
        who,
        batch_id,
        plan.kept_from.batch_id,
        cuts,
        {name: sum(map(len, files)) for name, files in plan.all_groups.items()},
        {table.table: len(table.files) for table in plan.unneeded},
        sum(table.size_bytes for table in plan.unneeded),
    )


def _delete(pipeline: HeldPipeline, plan: MaintenancePlan, record: MaintenanceRecord) -> None:
    """Records the oldest kept cut. Then deletes files that no kept cut needs, and no run that takes over."""
    ledger = pipeline.ledger
    maintained.keep(ledger.store, record)
    pipeline.check()  # the holder of a later claim, made before the record, may still go back to an older cut
    ledger.store.delete([f"{gone.table}/{path}" for gone in plan.unneeded for path in gone.files])

    def shorten(name: str) -> None:
        table, oldest = ledger.tables[name], plan.kept_from.versions.get(name)
        newest = table.version()
        if newest is not None:
            checkpoints.add_missing_settings(table)
            checkpoints.checkpoint(table, newest if oldest is None else oldest, plan.worth)
        checkpoints.delete(table.store, plan.logs.get(name, []))

    at_once(shorten, (*COMMIT_ORDER, *OUTSIDE))
    ledger.store.delete([path for paths in plan.others.values() for path in paths])


def _report(
    cuts: RetentionPeriod, plan: MaintenancePlan, batch_id: int | None, notes: Sequence[str]
) -> MaintenanceReport:
    gone = {unneeded.table: unneeded for unneeded in plan.unneeded}
    rows = []
    for name in (*COMMIT_ORDER, *OUTSIDE):
        groups, logs = plan.all_groups.get(name, []), plan.logs.get(name, [])
        if groups or logs or name in gone:
            files, size_bytes = (len(gone[name].files), gone[name].size_bytes) if name in gone else (0, 0)
            row = TableReport(
                name, plan.live.get(name, 0), sum(map(len, groups)), len(groups), files, size_bytes, len(logs)
            )
            rows.append(row)
    others = {name: len(files) for name, files in plan.others.items()}
    return MaintenanceReport(batch_id, plan.kept_from.batch_id, str(cuts), tuple(rows), others, tuple(notes))
