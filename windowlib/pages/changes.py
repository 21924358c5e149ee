"""Changes of results in the last day: rows added, changed and removed, by window day and by cause.

The log of `result_changes` has the number of rows of each file, so no file is opened. It does not contain the effects
of rollbacks and adoptions. For these decisions, this module compares the versions of `results` before and after.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from deltalake.exceptions import DeltaError

from windowlib.contract.change import ADDED, CHANGED, REMOVED
from windowlib.definition.toml.durations import UNITS
from windowlib.delta import log
from windowlib.delta.tables import Table, Tables
from windowlib.model.errors import WindowError
from windowlib.pages.newest_rows import RecentRun
from windowlib.publication.foreign_changes import RowChange, rows_changed

DAY_MS = UNITS["d"]
COMMITS_READ = 1_500  # entries of the log
FIRST_FIRING = "firing"
REPLACING = ("rollback", "adopt")  # decisions that change results without rows in `result_changes`
ROWS_COMPARED = 100_000  # rows of results, for each rollback or adoption


@dataclass(frozen=True, slots=True)
class DayChange:
    """Rows of one window day that changed for one cause. `day` is None for the global window."""

    day: date | None
    cause: str
    added: int
    changed: int
    removed: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """A rollback or an adoption. `rows` counts the added and removed results. It is None if the number is no longer
    known.
    """

    batch_id: int
    title: str
    rows: RowChange | None


@dataclass(frozen=True, slots=True)
class RecentChanges:
    """Changes since `since_ms` (inclusive). `days` and `replaced` are newest first.

    `first_firings` counts rows of windows that fired for the first time. Undone changes are not in `first_firings` and
    `days`; `replaced` has the effects of rollbacks and adoptions. `is_cut`: `since_ms` is less than a day ago, because
    the day has too many changes to count.
    """

    since_ms: int
    batches: int
    first_firings: int
    days: Sequence[DayChange]
    is_cut: bool = False
    replaced: Sequence[Replaced] = ()

    def total(self, what: str) -> int:
        """Sum over `days`; `what` is added, changed or removed."""
        return sum(getattr(day, what) for day in self.days)


def changes(tables: Tables, runs: Sequence[RecentRun], now_ms: int, *, is_whole: bool = True) -> RecentChanges | None:
    """Changes in the last day, or None if the log was cleaned up.

    `runs` are newest first. `is_whole` is true if `runs` has all batches of the pipeline.
    """
    since_ms = now_ms - DAY_MS
    recent = [run for run in runs if run.at_ms >= since_ms]
    if not recent:
        return RecentChanges(since_ms, 0, 0, ())
    newest = recent[0].versions.get("result_changes")
    if newest is None:
        return RecentChanges(since_ms, len(recent), 0, ())
    counted, before = _counted(runs, len(recent), newest, is_whole=is_whole)
    is_cut = counted < len(recent)
    try:
        rows = _rows(tables, before, newest)
    except log.DamagedLog:
        return None
    first = sum(count for (_, cause, change), count in rows.items() if (cause, change) == (FIRST_FIRING, ADDED))
    if is_cut:
        since_ms = recent[counted - 1].at_ms if counted else now_ms
    return RecentChanges(since_ms, counted, first, _days(rows), is_cut, [*_replaced(tables["results"], runs, counted)])


def last_changed_ms(runs: Sequence[RecentRun]) -> int | None:
    """Time of the last change of results. `runs` are newest first. None if no run changed results."""
    for run, before in zip(runs, [*runs[1:], None], strict=False):
        if run.figures.get("changes_rows_written") or (_replaces(run) and before and _moved(before, run)):
            return run.at_ms
    return None


def _replaces(run: RecentRun) -> bool:
    return run.decision is not None and run.decision.kind in REPLACING


def _moved(before: RecentRun, run: RecentRun) -> bool:
    return before.versions.get("results") != run.versions.get("results")


def _replaced(results: Table, runs: Sequence[RecentRun], counted: int) -> Iterator[Replaced]:
    """Effects of the rollbacks and adoptions among the newest `counted` batches on results."""
    for run, before in zip(runs[:counted], [*runs[1:], None], strict=False):
        if run.decision and _replaces(run):
            yield Replaced(run.batch_id, run.decision.title, _compared(results, before, run))


def _compared(results: Table, before: RecentRun | None, run: RecentRun) -> RowChange | None:
    if before is None:
        return None
    try:
        then, now = (results.files(batch.versions.get("results")) for batch in (before, run))
    except (DeltaError, FileNotFoundError, WindowError):
        return None  # the log was cleaned up
    return rows_changed(results, then, now, ROWS_COMPARED)


def _counted(runs: Sequence[RecentRun], recent: int, newest: int, *, is_whole: bool) -> tuple[int, int]:
    """Number of recent batches that are counted, and the version of `result_changes` before these batches.

    The number is smaller than `recent` if the batches have over `COMMITS_READ` commits, or if the version before the
    oldest of `runs` is unknown. `is_whole` is True if no batch precedes `runs`.
    """
    counted = 0, newest
    for number in range(1, recent + 1):
        if number == len(runs) and not is_whole:
            break
        before = runs[number].versions.get("result_changes", 0) if number < len(runs) else 0
        if newest - before > COMMITS_READ:
            break
        counted = number, before
    return counted


def _rows(tables: Tables, after: int, up_to: int) -> Counter[tuple[date | None, str, str]]:
    """Rows by window day, cause and change, in files that versions `after` + 1 to `up_to` added and did not remove."""
    live: dict[str, Mapping[str, Any]] = {}
    for version in range(after + 1, up_to + 1):
        for action in log.actions(tables["result_changes"].store, version):
            if (added := action.get("add")) and added.get("dataChange", True):
                live[added["path"]] = added
            elif (removed := action.get("remove")) and removed.get("dataChange", True):
                live.pop(removed["path"], None)  # a rollback
    rows: Counter[tuple[date | None, str, str]] = Counter()
    for added in live.values():
        partition = added["partitionValues"]
        day = date.fromisoformat(partition["window_day"]) if partition.get("window_day") else None
        rows[day, partition["cause"], partition["change"]] += json.loads(added["stats"])["numRecords"]
    return rows


def _days(rows: Counter[tuple[date | None, str, str]]) -> list[DayChange]:
    groups = {(day, cause) for day, cause, change in rows if (cause, change) != (FIRST_FIRING, ADDED)}
    ordered = sorted(groups, key=lambda group: (group[0] is None, group[0] or date.min, group[1]), reverse=True)
    return [
        DayChange(
            day,
            cause,
            0 if cause == FIRST_FIRING else rows[day, cause, ADDED],
            rows[day, cause, CHANGED],
            rows[day, cause, REMOVED],
        )
        for day, cause in ordered
    ]
