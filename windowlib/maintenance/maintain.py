"""`windowlib maintain`: small files put together, and deleted what no kept cut of the tables needs.

    claim -> compact (a batch that computes nothing) -> say from where on cuts are kept -> delete -> shorten the logs

Putting files together is a batch like `adopt` and `rollback`: prepared, then rolled forward, by commits that change no
row (`dataChange` is false). Killed before its plan is in the ledger it has done nothing, later the next run finishes
it. Files are deleted only after what makes them superfluous is on the disk, and each deletion may be repeated. While a
batch is planned or waits, nothing is put together, since that would be a batch of its own; the rest is done.
"""

from __future__ import annotations

import shutil
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
from windowlib.delta import checkpoints, disk
from windowlib.delta.table_change import logged
from windowlib.ledger import maintenances as maintained
from windowlib.ledger.decision import Decision
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.ledger.maintenances import MaintenanceRecord
from windowlib.ledger.prepare import TableChange
from windowlib.ledger.rows import LedgerState
from windowlib.maintenance import compaction, sweep
from windowlib.maintenance.candidates import MaintenancePlan, look
from windowlib.maintenance.ledger_compaction import put_together
from windowlib.publication.damage import check_exist, losses_named
from windowlib.publication.start_versions import COUNTED
from windowlib.runs.operation import HeldPipeline, held


@dataclass(frozen=True, slots=True)
class TableReport:
    """What became of one table: its live files before, how many of them others take the place of, what was deleted."""

    table: str
    files: int
    compacted: int
    into: int
    deleted: int
    bytes_deleted: int
    log_entries: int


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """What a maintenance has done, or would do: of tables only those that it concerns.

    `batch_id` is the batch that put files together, None without one. `others` counts what went next to the tables;
    `notes` are what an operator should know. `dry_run`: nothing was done.
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
        return sum(one.bytes_deleted for one in self.tables)

    def json_fields(self) -> dict[str, Any]:
        """Keys and values of its JSON."""
        return {**asdict(self), "bytes_deleted": self.bytes_deleted}


def forecast(definition: Definition, clock: Clock = wall_clock_ms) -> MaintenanceReport:
    """What `maintain` would do now; touches nothing."""
    ledger = ledger_of(definition, clock)
    return replace(ledger.settled(lambda state: _forecast(definition, ledger, state, clock())), dry_run=True)


def _forecast(definition: Definition, ledger: Ledger, state: LedgerState, now_ms: int) -> MaintenanceReport:
    check_fingerprint(definition, state.commit)
    if state.commit is None:
        return _nothing(definition.retention.cuts)
    versions = {name: version for name in COMMIT_ORDER if (version := ledger.tables[name].version()) is not None}
    found = look(definition, ledger, state, versions, now_ms)
    notes = [*_waits(state), *_far_ahead(definition.file, found, now_ms)]
    if state.claim and not state.claim.released and (holder := ledger.holder(state.claim)):
        notes.append(f"a run is in progress ({holder}): files that it is writing are counted among those to delete")
    return _report(definition.retention.cuts, found, None, notes)


def maintain(
    definition: Definition, who: str, clock: Clock = wall_clock_ms, *, only_newest: bool = False
) -> MaintenanceReport:
    """Does it. Raises `Superseded` while a run is in progress; before any change `ForeignChange`, `LostRows`.

    With `only_newest` no cut but the newest is kept, and readers of an older one are not waited for.
    """
    ledger, now_ms = ledger_of(definition, clock), clock()
    commit = ledger.state().commit
    check_fingerprint(definition, commit)
    if commit is None:
        return _nothing(definition.retention.cuts)
    with disk.refusals_named(ledger.root), losses_named(ledger.tables), held(ledger) as pipeline:
        state, batch_id = pipeline.state, None
        versions = pipeline.standing() if state.plan is None else pipeline.commit.versions
        found = look(definition, ledger, state, versions, now_ms, only_newest=only_newest)
        put_together(ledger, pipeline.claim.epoch, _attempt(pipeline))
        if found.groups or found.announcements:
            batch_id = publish_decision(pipeline, _compacted(pipeline, found, versions, who))
        cuts = RetentionPeriod(batches=1) if only_newest else definition.retention.cuts
        _delete(pipeline, found, _kept(str(cuts), found, batch_id, who, now_ms))
    notes = [*_waits(state), *_far_ahead(definition.file, found, now_ms)]
    return _report(definition.retention.cuts, found, batch_id, notes)


def _nothing(cuts: RetentionPeriod) -> MaintenanceReport:
    return MaintenanceReport(None, None, str(cuts), (), {}, ("no batch is committed yet",))


def _waits(state: LedgerState) -> Iterator[str]:
    if state.plan:
        what = "waits for a decision" if state.rejection else "is planned"
        yield f"batch {state.plan.batch_id} {what}: its files stay, and small files are put together after it"


def _far_ahead(file: Path, found: MaintenancePlan, now_ms: int) -> Iterator[str]:
    if now_ms != found.counted_from_ms:
        yield (
            f"this machine's clock says {instant(now_ms)}, far ahead of the newest batch: nothing is deleted by it,"
            f" ages are counted from {instant(found.counted_from_ms)}. If it is right, say so:"
            f" {to_paste('accept-clock', file, *WHY)}"
        )


# -- what is done -----------------------------------------------------------------------------------------------------


def _compacted(pipeline: HeldPipeline, found: MaintenancePlan, versions: Mapping[str, int], who: str) -> DecisionBatch:
    """Writes the larger files, and gives the batch that puts them in the place of the small ones."""
    ledger, commit, attempt = pipeline.ledger, pipeline.commit, _attempt(pipeline)
    for name, chosen in found.groups.items():
        check_exist(ledger.tables[name], [file for files in chosen for file in files])
    changes = tuple(
        compaction.change(ledger.tables[name], versions[name], found.groups.get(name, ()), attempt)
        if name in versions
        else TableChange(name, None)
        for name in COMMIT_ORDER
    )
    before, after = (sum(len(getattr(one, what)) for one in changes) for what in ("remove", "add"))
    forgotten = tuple(map(logged, found.announcements))
    changes = tuple(
        replace(one, remove=(*one.remove, *forgotten)) if one.name == RESULT_CHANGES.name else one for one in changes
    )
    dropped = f", {len(found.announcements)} that announced erased keys dropped" if found.announcements else ""
    decision = Decision("maintain", who, f"{before} small files put together into {after}{dropped}")
    left = {figure: commit.counts[figure] for figure in COUNTED.values() if figure in commit.counts}
    return DecisionBatch(decision, commit, changes, left, of_rows=False)


def _attempt(pipeline: HeldPipeline) -> str:
    """What files are called that are written here."""
    return pipeline.attempt(pipeline.state.last_batch_id + 1)


def _kept(cuts: str, found: MaintenancePlan, batch_id: int | None, who: str, now_ms: int) -> MaintenanceRecord:
    return MaintenanceRecord(
        utc(now_ms),
        who,
        batch_id,
        found.kept_from.batch_id,
        cuts,
        {name: sum(map(len, files)) for name, files in found.all_groups.items()},
        {one.table: len(one.files) for one in found.unneeded},
        sum(one.size_bytes for one in found.unneeded),
    )


def _delete(pipeline: HeldPipeline, found: MaintenancePlan, made: MaintenanceRecord) -> None:
    """Says what is kept, then deletes what is not. A run that takes the pipeline over needs none of it either."""
    ledger = pipeline.ledger
    maintained.keep(ledger.root, made)
    pipeline.check()  # who has claimed before it has not seen that row, and may go back to what it gives up
    for one in found.unneeded:
        sweep.delete(one)
    for name in (*COMMIT_ORDER, *OUTSIDE):
        oldest = found.kept_from.versions.get(name)
        newest = ledger.tables[name].version()
        if newest is not None:
            checkpoints.add_missing_settings(ledger.tables[name])
            checkpoints.checkpoint(ledger.tables[name], newest if oldest is None else oldest, found.worth)
    for files in found.logs.values():
        checkpoints.delete(files)
    for files in found.others.values():
        for path in files:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _report(
    cuts: RetentionPeriod, found: MaintenancePlan, batch_id: int | None, notes: Sequence[str]
) -> MaintenanceReport:
    gone = {one.table: one for one in found.unneeded}
    rows = []
    for name in (*COMMIT_ORDER, *OUTSIDE):
        groups, logs = found.all_groups.get(name, []), found.logs.get(name, [])
        if groups or logs or name in gone:
            files, size_bytes = (len(gone[name].files), gone[name].size_bytes) if name in gone else (0, 0)
            row = TableReport(
                name, found.live.get(name, 0), sum(map(len, groups)), len(groups), files, size_bytes, len(logs)
            )
            rows.append(row)
    others = {name: len(files) for name, files in found.others.items()}
    return MaintenanceReport(batch_id, found.kept_from.batch_id, str(cuts), tuple(rows), others, tuple(notes))
