"""Work of `windowlib maintain`: files to compact, and files that no kept cut of the tables needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from itertools import chain, takewhile
from typing import TypeVar

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
from windowlib.ledger.migration import finished, leftovers, switched
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.maintenance import compaction, sweep
from windowlib.maintenance.compaction import Partition
from windowlib.maintenance.ledger_compaction import groups_of_history
from windowlib.maintenance.sweep import UnneededFiles
from windowlib.plans.partitions import DAY_MS
from windowlib.publication.publish import STAGING
from windowlib.reruns import previews
from windowlib.storage.at_once import at_once
from windowlib.storage.store import UNFINISHED, ObjectInfo

T = TypeVar("T")

LOGS_KEPT_MS = 90 * DAY_MS  # tracebacks of unexpected errors
UNFINISHED_MS = DAY_MS  # age from which files next to tables count as orphaned by a dead process


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """Files to compact, to delete and to keep, by table.

    `announcements` are the files of `result_changes` that told consumers about keys erased before the oldest kept cut.
    `worth` is the number of log entries since the last checkpoint that justify a new checkpoint. `counted_from_ms` is
    the current time, from which ages are counted back. `live` counts the current files by table. `others` are paths
    below the pipeline's store, by category.
    """

    kept_from: Commit
    counted_from_ms: int
    groups: Mapping[str, list[list[DataFile]]]
    announcements: Sequence[DataFile]
    unneeded: Sequence[UnneededFiles]
    logs: Mapping[str, list[ObjectInfo]]
    others: Mapping[str, list[str]]
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
    tables, waiting = ledger.tables, prepare.read(ledger.store, state.prepared) if state.prepared else None
    assert state.commit is not None, "there is a batch"
    now_ms = kept.trusted_now_ms(state.time_ms, now_ms)
    kept_from = state.commit if only_newest else _kept_from(definition.retention.cuts, ledger, now_ms)
    worth = 1 if erasures.erasures(ledger.store) else checkpoints.ENTRIES  # statistics in log entries contain keys
    existing = [name for name in COMMIT_ORDER if name in versions]
    oldest = {name: kept_from.versions.get(name) for name in existing}
    outside = [name for name in OUTSIDE if tables[name].version() is not None]
    listed = list(ledger.store.list())
    by_table = _by_folder(listed)

    def unneeded_of(name: str) -> UnneededFiles:
        table, files = tables[name], by_table.get(name, [])
        if name in outside:
            return sweep.outside(table, files, now_ms, only_newest=only_newest)
        return sweep.unneeded(table, files, oldest[name], waiting, now_ms)

    unneeded = at_once(unneeded_of, [*existing, *outside])
    return MaintenancePlan(
        kept_from,
        now_ms,
        {} if state.plan else dict(_groups(definition.dedup_horizon_ms, ledger, state, versions)),
        () if state.plan else _announcements(ledger, versions, kept_from),
        [table for table in unneeded if table.files],
        _non_empty(_logs(ledger, oldest, outside, now_ms, worth, only_newest=only_newest)),
        _non_empty(_others(ledger, listed, now_ms)),
        {name: len(tables[name].files(tables[name].version())) for name in (*existing, *outside)},
        groups_of_history(ledger.tables),
        worth,
    )


def _non_empty(files: Mapping[str, list[T]]) -> dict[str, list[T]]:
    return {name: paths for name, paths in files.items() if paths}


def _by_folder(files: Sequence[ObjectInfo]) -> dict[str, list[ObjectInfo]]:
    """Files by their topmost folder, with their paths in it. Leaves out files that are in no folder."""
    folders: dict[str, list[ObjectInfo]] = {}
    for file in files:
        folder, slash, path = file.path.partition("/")
        if slash:
            folders.setdefault(folder, []).append(replace(file, path=path))
    return folders


def _announcements(ledger: Ledger, versions: Mapping[str, int], kept_from: Commit) -> list[DataFile]:
    """Files with removal rows of keys that were erased at or before the oldest kept cut."""
    name = RESULT_CHANGES.name
    files = ledger.tables[name].files(versions.get(name))
    return [
        file for file in files if file.partition["cause"] == FORGET and int(file.high["batch_id"]) <= kept_from.batch_id
    ]


def _kept_from(cuts: RetentionPeriod, ledger: Ledger, now_ms: int) -> Commit:
    """Oldest batch whose cut is kept and can be opened. It is never older than in an earlier maintenance."""
    commits = commits_of(ledger.tables, maintained.kept_from(ledger.store))
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
    ledger: Ledger,
    oldest: Mapping[str, int | None],
    outside: Sequence[str],
    now_ms: int,
    worth: int,
    *,
    only_newest: bool,
) -> dict[str, list[ObjectInfo]]:
    """Log files that no kept version needs, by table.

    Readers of a table that no batch publishes open its newest version. Log files of such a table are kept for the time
    that a read may take, unless `only_newest`.
    """
    kept_versions = {name: version for name, version in oldest.items() if version is not None}
    logs = {name: checkpoints.superfluous(ledger.tables[name].store, at, worth) for name, at in kept_versions.items()}
    for name in outside:
        newest = ledger.tables[name].version()
        assert newest is not None, "the table exists"
        old = checkpoints.superfluous(ledger.tables[name].store, newest, worth)
        logs[name] = list(takewhile(lambda file: only_newest or sweep.age_ms(file, now_ms) > kept.READING_MS, old))
    return logs


def _others(ledger: Ledger, listed: Sequence[ObjectInfo], now_ms: int) -> dict[str, list[str]]:
    """Unused files next to the tables, by category: previews, unfinished work, old tracebacks, finished migrations."""
    shown = {
        preview.preview_id
        for preview in previews.previews(ledger.store)
        if now_ms - preview.at_ms <= previews.KEPT_DAYS * DAY_MS
    }

    def old(than_ms: int, chosen: Callable[[str], bool]) -> list[str]:
        return [file.path for file in listed if chosen(file.path) and sweep.age_ms(file, now_ms) > than_ms]

    staged = _abandoned(listed, STAGING, now_ms)
    stored = _abandoned(listed, previews.FOLDER, now_ms)
    unfinished = old(UNFINISHED_MS, lambda path: path.endswith(UNFINISHED))
    return {
        "previews": [path for name, paths in stored.items() if name not in shown for path in paths],
        "unfinished work": [*dict.fromkeys(chain(unfinished, *staged.values()))],
        "old tracebacks": old(LOGS_KEPT_MS, lambda path: path.startswith("logs/") and path.endswith(".log")),
        "finished migrations": leftovers([file.path for file in listed], finished(ledger)),
    }


def _abandoned(listed: Sequence[ObjectInfo], folder: str, now_ms: int) -> dict[str, list[str]]:
    """Paths of the files in a folder, by the name of its subfolder. Leaves out subfolders with recent files."""
    by_name: dict[str, list[ObjectInfo]] = {}
    for file in listed:
        if file.path.startswith(f"{folder}/"):
            by_name.setdefault(file.path.split("/")[1], []).append(file)
    return {
        name: [file.path for file in files]
        for name, files in by_name.items()
        if min(sweep.age_ms(file, now_ms) for file in files) > UNFINISHED_MS
    }
