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
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from functools import partial
from itertools import takewhile
from pathlib import Path

from windowlib.batches.planning import check_fingerprint, ledger_of
from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of, utc
from windowlib.definition.kept import Kept
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.plans.partitions import DAY_MS
from windowlib.reruns import previews
from windowlib.runs.decided import Decided, fixed
from windowlib.runs.publication import publish
from windowlib.runs.run import Run, claimed
from windowlib.tables import checkpoints, compaction, delta, disk, erasures, kept, maintained, prepare, sweep
from windowlib.tables.compaction import Partition
from windowlib.tables.data_files import DataFile
from windowlib.tables.decision import Decision
from windowlib.tables.ledger import Clock, Ledger, Superseded, wall_clock_ms
from windowlib.tables.ledger_rows import Claim, Commit, LedgerState
from windowlib.tables.lost import check_there, losses_named
from windowlib.tables.maintained import Maintained
from windowlib.tables.meaning import COMMIT_ORDER, FORGET, LEDGER, OUTSIDE, RESULT_CHANGES
from windowlib.tables.migration import switched
from windowlib.tables.prepare import Publication, TableChange
from windowlib.tables.publish import staging_folder
from windowlib.tables.standing import COUNTED, check_counts, standing
from windowlib.tables.sweep import Unneeded

LOGS_KEPT_MS = 90 * DAY_MS  # tracebacks of unexpected errors
UNFINISHED_MS = DAY_MS  # of what a dead process has left next to tables


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
class Report:
    """What a maintenance has done, or would do: of tables only those that it concerns.

    `batch_id` is the batch that put files together, None without one. `others` counts what went next to the tables;
    `notes` are what an operator should know.
    """

    batch_id: int | None
    kept_from: int | None
    cuts: str
    tables: tuple[TableReport, ...]
    others: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def bytes_deleted(self) -> int:
        return sum(one.bytes_deleted for one in self.tables)


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is to do. `told` are the files by which followers were told of keys that were erased long ago.

    A checkpoint is written where the last is `worth` entries back.
    """

    kept_from: Commit
    groups: Mapping[str, list[list[DataFile]]]
    told: Sequence[DataFile]
    unneeded: Sequence[Unneeded]
    logs: Mapping[str, list[Path]]
    others: Mapping[str, list[Path]]
    live: Mapping[str, int]
    of_ledger: Sequence[Sequence[DataFile]]
    worth: int

    @property
    def all_groups(self) -> Mapping[str, Sequence[Sequence[DataFile]]]:
        """The files that are put together, by table: of those that batches publish, and of the ledger."""
        return {**self.groups, LEDGER.name: self.of_ledger} if self.of_ledger else self.groups


def forecast(definition: Definition, clock: Clock = wall_clock_ms) -> Report:
    """What `maintain` would do now; touches nothing."""
    ledger = ledger_of(definition, clock)
    return ledger.settled(lambda state: _forecast(definition, ledger, state, clock()))


def _forecast(definition: Definition, ledger: Ledger, state: LedgerState, now_ms: int) -> Report:
    check_fingerprint(definition, state.commit)
    if state.commit is None:
        return _nothing(definition)
    versions = {name: version for name in COMMIT_ORDER if (version := delta.version(ledger.tables[name])) is not None}
    found = _look(definition, ledger, state, versions, now_ms)
    notes = [*_waits(state)]
    if state.claim and not state.claim.released and (holder := ledger.holder(state.claim)):
        notes.append(f"a run is in progress ({holder}): files that it is writing are counted among those to delete")
    return _report(definition, found, None, notes)


def maintain(definition: Definition, who: str, clock: Clock = wall_clock_ms, *, only_newest: bool = False) -> Report:
    """Does it. Raises `Superseded` while a run is in progress; before any change `ForeignChange`, `LostRows`.

    With `only_newest` no cut but the newest is kept, and nobody is waited for who may be reading an older one.
    """
    state = ledger_of(definition, clock).state()
    check_fingerprint(definition, state.commit)
    if state.commit is None:
        return _nothing(definition)
    run = Run.of(definition, clock)
    ledger, now_ms = run.ledger, clock()
    with disk.refusals_named(ledger.root), losses_named(ledger.tables), claimed(run) as claim, _superseded():
        state = ledger.state()
        assert state.commit is not None, "there was a batch"
        batch_id = None
        versions: Mapping[str, int] = state.commit.versions
        if state.plan is None:
            versions = standing(ledger.tables, state.commit.versions, lambda: ledger.check(claim.epoch))
            check_counts(ledger.tables, versions, state.commit)
        found = _look(definition, ledger, state, versions, now_ms, only_newest=only_newest)
        ledger.put_together(claim.epoch, _attempt(state, claim))
        if found.groups or found.told:
            made = _compacted(ledger, claim, state, found, versions, who)
            publish(ledger, claim, made)
            batch_id = made.batch_id
        cuts = str(Kept(batches=1)) if only_newest else str(definition.retention.cuts)
        _delete(ledger, claim, found, _kept(cuts, found, batch_id, who, now_ms))
    return _report(definition, found, batch_id, [*_waits(state)])


@contextmanager
def _superseded() -> Iterator[None]:
    try:
        yield
    except delta.Conflict as error:
        raise Superseded(f"another run or program has changed a table meanwhile ({error}): look again") from error


def _nothing(definition: Definition) -> Report:
    return Report(None, None, str(definition.retention.cuts), (), {}, ("no batch is committed yet",))


def _waits(state: LedgerState) -> Iterator[str]:
    if state.plan:
        what = "waits for a decision" if state.rejection else "is planned"
        yield f"batch {state.plan.batch_id} {what}: its files stay, and small files are put together after it"


# -- what there is to do ----------------------------------------------------------------------------------------------


def _look(
    definition: Definition,
    ledger: Ledger,
    state: LedgerState,
    versions: Mapping[str, int],
    now_ms: int,
    *,
    only_newest: bool = False,
) -> _Found:
    tables, waiting = ledger.tables, prepare.read(ledger.root, state.prepared) if state.prepared else None
    assert state.commit is not None, "there is a batch"
    kept_from = state.commit if only_newest else _kept_from(definition, ledger, now_ms)
    worth = 1 if erasures.erasures(ledger.root) else checkpoints.ENTRIES  # statistics of entries name keys
    there = [name for name in COMMIT_ORDER if name in versions]
    oldest = {name: kept_from.versions.get(name) for name in there}
    outside = [name for name in OUTSIDE if delta.version(tables[name]) is not None]
    unneeded = [sweep.unneeded(tables[name], oldest[name], waiting, now_ms) for name in there]
    unneeded += [sweep.outside(tables[name], now_ms, at_once=only_newest) for name in outside]
    return _Found(
        kept_from,
        {} if state.plan else dict(_groups(definition, ledger, state, versions)),
        () if state.plan else _told(ledger, versions, kept_from),
        [one for one in unneeded if one.files],
        {
            name: files
            for name, files in _logs(ledger, oldest, outside, now_ms, worth, at_once=only_newest).items()
            if files
        },
        {name: files for name, files in _others(ledger.root, now_ms).items() if files},
        {name: len(delta.files(tables[name], delta.version(tables[name]))) for name in (*there, *outside)},
        ledger.to_put_together(),
        worth,
    )


def _told(ledger: Ledger, versions: Mapping[str, int], kept_from: Commit) -> list[DataFile]:
    """The files of removals of erased keys, where no cut is kept that still had the key."""
    name = RESULT_CHANGES.name
    files = delta.files(ledger.tables[name], versions.get(name))
    return [
        file for file in files if file.partition["cause"] == FORGET and int(file.high["batch_id"]) <= kept_from.batch_id
    ]


def _kept_from(definition: Definition, ledger: Ledger, now_ms: int) -> Commit:
    """The oldest batch whose cut stays: never one before that which an earlier maintenance, or a log, has left."""
    before = maintained.last(ledger.root)
    commits = [one for one in ledger.commits() if before is None or one.batch_id >= before.kept_from]
    chosen = kept.first_kept(commits, definition.retention.cuts, now_ms)
    if (done := switched(ledger)) and (base := kept.undone_to(commits, done[0], now_ms)):
        chosen = min(chosen, base, key=lambda one: one.batch_id)
    for one in commits[commits.index(chosen) :]:
        if all(checkpoints.can_open(ledger.root / name, version) for name, version in one.versions.items()):
            return one
    return commits[-1]


def _groups(
    definition: Definition, ledger: Ledger, state: LedgerState, versions: Mapping[str, int]
) -> Iterator[tuple[str, list[list[DataFile]]]]:
    assert state.commit is not None, "there is a batch"
    watermark_ms = state.commit.watermark_out_ms
    passed_ms = (MIN_WATERMARK if watermark_ms is None else watermark_ms) - definition.window.allowed_lateness_ms

    def is_closed(partition: Partition) -> bool:
        day = partition["window_day"]
        return isinstance(day, date) and time_of(datetime.combine(day, time())) + DAY_MS <= passed_ms

    bucket_ms = max(definition.dedup_horizon_ms // 4, 1)
    for name in COMMIT_ORDER:
        if name in compaction.SORTED and name in versions:
            files = delta.files(ledger.tables[name], versions[name])
            if found := list(compaction.groups(name, files, is_closed, bucket_ms)):
                yield name, found


def _logs(
    ledger: Ledger,
    oldest: Mapping[str, int | None],
    outside: Sequence[str],
    now_ms: int,
    worth: int,
    *,
    at_once: bool,
) -> dict[str, list[Path]]:
    """The log files that no kept version needs. A table that no batch publishes is read as it is: those of the time
    that a reader may take are kept."""
    kept_versions = {name: version for name, version in oldest.items() if version is not None}
    found = {name: checkpoints.superfluous(ledger.root / name, at, worth) for name, at in kept_versions.items()}
    for name in outside:
        newest = delta.version(ledger.tables[name])
        assert newest is not None, "the table exists"
        old = checkpoints.superfluous(ledger.root / name, newest, worth)
        is_old = (lambda path: True) if at_once else partial(_is_older, now_ms - kept.READING_MS)
        found[name] = list(takewhile(is_old, old))
    return found


def _is_older(than_ms: int, path: Path) -> bool:
    return path.stat().st_mtime_ns // 1_000_000 < than_ms


def _others(root: Path, now_ms: int) -> dict[str, list[Path]]:
    """What lies next to the tables and is of no use any more, by what it is."""
    shown = {one.preview_id for one in previews.previews(root) if now_ms - one.at_ms <= previews.KEPT_DAYS * DAY_MS}

    def old(folder: str, pattern: str, than_ms: int) -> list[Path]:
        paths = sorted((root / folder).glob(pattern))
        return [path for path in paths if now_ms - path.stat().st_mtime_ns // 1_000_000 > than_ms]

    unfinished = [*old("checks", "*.[0-9]*", UNFINISHED_MS), *old(staging_folder(root).name, "*", UNFINISHED_MS)]
    return {
        "previews": [one for one in old(previews.FOLDER, "*", UNFINISHED_MS) if one.name not in shown],
        "unfinished work": unfinished,
        "old tracebacks": old("logs", "*.log", LOGS_KEPT_MS),
    }


# -- what is done -----------------------------------------------------------------------------------------------------


def _compacted(
    ledger: Ledger, claim: Claim, state: LedgerState, found: _Found, versions: Mapping[str, int], who: str
) -> Publication:
    """Writes the larger files, and fixes the batch that puts them in the place of the small ones."""
    assert state.commit is not None, "there is a batch"
    attempt = _attempt(state, claim)
    for name, chosen in found.groups.items():
        check_there(ledger.tables[name], [file for files in chosen for file in files])
    changes = tuple(
        compaction.change(ledger.tables[name], versions[name], found.groups.get(name, ()), attempt)
        if name in versions
        else TableChange(name, None)
        for name in COMMIT_ORDER
    )
    before, after = (sum(len(getattr(one, what)) for one in changes) for what in ("remove", "add"))
    changes = tuple(_without(one, found.told) if one.name == RESULT_CHANGES.name else one for one in changes)
    told = f", {len(found.told)} that told of erased keys dropped" if found.told else ""
    decision = Decision("maintain", who, f"{before} small files put together into {after}{told}")
    left = {figure: state.commit.counts[figure] for figure in COUNTED.values() if figure in state.commit.counts}
    return fixed(ledger, claim, state, Decided(decision, state.commit, changes, left, of_rows=False))


def _attempt(state: LedgerState, claim: Claim) -> str:
    """What files are called that are written here."""
    return f"{state.last_batch_id + 1}-{claim.epoch}"


def _without(change: TableChange, files: Sequence[DataFile]) -> TableChange:
    return replace(change, remove=(*change.remove, *map(delta.logged, files)))


def _kept(cuts: str, found: _Found, batch_id: int | None, who: str, now_ms: int) -> Maintained:
    return Maintained(
        utc(now_ms),
        who,
        batch_id,
        found.kept_from.batch_id,
        cuts,
        {name: sum(map(len, files)) for name, files in found.all_groups.items()},
        {one.table: len(one.files) for one in found.unneeded},
        sum(one.size_bytes for one in found.unneeded),
    )


def _delete(ledger: Ledger, claim: Claim, found: _Found, made: Maintained) -> None:
    """Says what is kept, then deletes what is not. A run that takes the pipeline over needs none of it either."""
    maintained.keep(ledger.root, made)
    ledger.check(claim.epoch)  # who has claimed before it has not seen that row, and may go back to what it gives up
    for one in found.unneeded:
        sweep.delete(one)
    for name in (*COMMIT_ORDER, *OUTSIDE):
        oldest = found.kept_from.versions.get(name)
        newest = delta.version(ledger.tables[name])
        if newest is not None:
            checkpoints.checkpoint(ledger.tables[name], newest if oldest is None else oldest, found.worth)
    for files in found.logs.values():
        checkpoints.delete(files)
    for files in found.others.values():
        for path in files:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _report(definition: Definition, found: _Found, batch_id: int | None, notes: Sequence[str]) -> Report:
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
    cuts = str(definition.retention.cuts)
    return Report(batch_id, found.kept_from.batch_id, cuts, tuple(rows), others, tuple(notes))
