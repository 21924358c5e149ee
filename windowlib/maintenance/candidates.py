"""Work of `windowlib maintain`: files to compact, and files that no kept cut of the tables needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from itertools import takewhile
from pathlib import Path

from windowlib.contract.result_tables import FORGET, RESULT_CHANGES
from windowlib.contract.tables import COMMIT_ORDER, LEDGER, OUTSIDE
from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of
from windowlib.definition.toml.retention import RetentionPeriod
from windowlib.delta import checkpoints
from windowlib.delta.data_files import DataFile
from windowlib.ledger import erasures, prepare
from windowlib.ledger import maintenances as maintained
from windowlib.ledger import retained_batches as kept
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.migration import finished, given_up, switched
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.maintenance import compaction, sweep
from windowlib.maintenance.compaction import Partition
from windowlib.maintenance.ledger_compaction import groups_of_history
from windowlib.maintenance.sweep import UnneededFiles
from windowlib.plans.partitions import DAY_MS
from windowlib.publication.publish import staging_folder
from windowlib.reruns import previews

LOGS_KEPT_MS = 90 * DAY_MS  # tracebacks of unexpected errors
UNFINISHED_MS = DAY_MS  # age from which files next to tables count as orphaned by a dead process
PUT_INTO = (".", "checks", "pages")  # folders of a pipeline into which `disk.put` writes


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """Files to compact, to delete and to keep, by table.

    `announcements` are the files of `result_changes` that told consumers about keys erased before the oldest kept cut.
    `worth` is the number of log entries since the last checkpoint that justify a new checkpoint. `counted_from_ms` is
    the current time, from which ages are counted back. `live` counts the current files by table.
    """

    kept_from: Commit
    counted_from_ms: int
    groups: Mapping[str, list[list[DataFile]]]
    announcements: Sequence[DataFile]
    unneeded: Sequence[UnneededFiles]
    logs: Mapping[str, list[Path]]
    others: Mapping[str, list[Path]]
    live: Mapping[str, int]
    of_ledger: Sequence[Sequence[DataFile]]
    worth: int

    @property
    def all_groups(self) -> Mapping[str, Sequence[Sequence[DataFile]]]:
        """Groups of files to compact, by table. Includes the tables that batches publish and the ledger."""
        return {**self.groups, LEDGER.name: self.of_ledger} if self.of_ledger else self.groups


def look(
    definition: Definition,
    ledger: Ledger,
    state: LedgerState,
    versions: Mapping[str, int],
    now_ms: int,
    *,
    only_newest: bool = False,
) -> MaintenancePlan:
    """Plans the maintenance of a pipeline that has committed a batch. Changes nothing."""
    tables, waiting = ledger.tables, prepare.read(ledger.root, state.prepared) if state.prepared else None
    assert state.commit is not None, "there is a batch"
    now_ms = kept.trusted_now_ms(state.time_ms, now_ms)
    kept_from = state.commit if only_newest else _kept_from(definition.retention.cuts, ledger, now_ms)
    worth = 1 if erasures.erasures(ledger.root) else checkpoints.ENTRIES  # statistics in log entries contain keys
    existing = [name for name in COMMIT_ORDER if name in versions]
    oldest = {name: kept_from.versions.get(name) for name in existing}
    outside = [name for name in OUTSIDE if tables[name].version() is not None]
    unneeded = [sweep.unneeded(tables[name], oldest[name], waiting, now_ms) for name in existing]
    unneeded += [sweep.outside(tables[name], now_ms, at_once=only_newest) for name in outside]
    return MaintenancePlan(
        kept_from,
        now_ms,
        {} if state.plan else dict(_groups(definition.dedup_horizon_ms, ledger, state, versions)),
        () if state.plan else _announcements(ledger, versions, kept_from),
        [table for table in unneeded if table.files],
        _non_empty(_logs(ledger, oldest, outside, now_ms, worth, at_once=only_newest)),
        _non_empty(_others(ledger, now_ms)),
        {name: len(tables[name].files(tables[name].version())) for name in (*existing, *outside)},
        groups_of_history(ledger.tables),
        worth,
    )


def _non_empty(files: Mapping[str, list[Path]]) -> dict[str, list[Path]]:
    return {name: paths for name, paths in files.items() if paths}


def _announcements(ledger: Ledger, versions: Mapping[str, int], kept_from: Commit) -> list[DataFile]:
    """Files with removal rows of keys that were erased at or before the oldest kept cut."""
    name = RESULT_CHANGES.name
    files = ledger.tables[name].files(versions.get(name))
    return [
        file for file in files if file.partition["cause"] == FORGET and int(file.high["batch_id"]) <= kept_from.batch_id
    ]


def _kept_from(cuts: RetentionPeriod, ledger: Ledger, now_ms: int) -> Commit:
    """Oldest batch whose cut is kept and can be opened. It is never older than in an earlier maintenance."""
    commits = commits_of(ledger.tables, maintained.kept_from(ledger.root))
    chosen = kept.first_kept(commits, cuts, now_ms)
    if (done := switched(ledger)) and (base := kept.undo_target(commits, done[0], now_ms)):
        chosen = min(chosen, base, key=lambda commit: commit.batch_id)
    for commit in commits[commits.index(chosen) :]:
        if all(checkpoints.can_open(ledger.tables[name].store, version) for name, version in commit.versions.items()):
            return commit
    return commits[-1]


def _groups(
    dedup_horizon_ms: int | None, ledger: Ledger, state: LedgerState, versions: Mapping[str, int]
) -> Iterator[tuple[str, list[list[DataFile]]]]:
    assert state.commit is not None, "there is a batch"
    passed_ms = state.commit.late_out_ms

    def is_closed(partition: Partition) -> bool:
        day = partition["window_day"]
        return isinstance(day, date) and time_of(datetime.combine(day, time())) + DAY_MS <= passed_ms

    bucket_ms = max((dedup_horizon_ms or DAY_MS) // 4, 1)
    for name in COMMIT_ORDER:
        if name in compaction.SORTED and name in versions:
            files = ledger.tables[name].files(versions[name])
            if groups := list(compaction.groups(name, files, is_closed, bucket_ms)):
                yield name, groups


def _logs(
    ledger: Ledger, oldest: Mapping[str, int | None], outside: Sequence[str], now_ms: int, worth: int, *, at_once: bool
) -> dict[str, list[Path]]:
    """Log files that no kept version needs, by table.

    Readers of a table that no batch publishes open its newest version. Log files of such a table are kept for the time
    that a read may take, unless `at_once`.
    """
    kept_versions = {name: version for name, version in oldest.items() if version is not None}
    logs = {name: checkpoints.superfluous(ledger.tables[name].store, at, worth) for name, at in kept_versions.items()}
    for name in outside:
        newest = ledger.tables[name].version()
        assert newest is not None, "the table exists"
        old = checkpoints.superfluous(ledger.tables[name].store, newest, worth)
        logs[name] = list(takewhile(lambda path: at_once or sweep.age_ms(path, now_ms) > kept.READING_MS, old))
    return logs


def _others(ledger: Ledger, now_ms: int) -> dict[str, list[Path]]:
    """Unused files next to the tables, by category: previews, unfinished work, old tracebacks, finished migrations."""
    root = ledger.root
    shown = {
        preview.preview_id
        for preview in previews.previews(root)
        if now_ms - preview.at_ms <= previews.KEPT_DAYS * DAY_MS
    }

    def old(folder: str, pattern: str, than_ms: int) -> list[Path]:
        return [path for path in sorted((root / folder).glob(pattern)) if sweep.age_ms(path, now_ms) > than_ms]

    unfinished = [path for folder in PUT_INTO for path in old(folder, "*.[0-9]*", UNFINISHED_MS)]
    unfinished += old(staging_folder(root).name, "*", UNFINISHED_MS)
    return {
        "previews": [path for path in old(previews.FOLDER, "*", UNFINISHED_MS) if path.name not in shown],
        "unfinished work": unfinished,
        "old tracebacks": old("logs", "*.log", LOGS_KEPT_MS),
        "finished migrations": [*(migration.folder(root) for migration in finished(ledger)), *given_up(root)],
    }
