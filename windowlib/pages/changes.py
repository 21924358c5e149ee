"""What became of results since a moment: rows added, changed and removed, by window day and by cause.

Counted in the log of `result_changes`, whose entries say how many rows each file has: no file is opened.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from windowlib.definition.durations import UNITS
from windowlib.pages.newest import Run
from windowlib.tables import log
from windowlib.tables.meaning import ADDED, CHANGED, REMOVED
from windowlib.tables.opened import Tables

DAY_MS = UNITS["d"]
COMMITS_READ = 1_500  # entries of the log
FIRST_FIRING = "firing"


@dataclass(frozen=True, slots=True)
class DayChange:
    """Rows of one window day that changed for one cause; None: of the global window."""

    day: date | None
    cause: str
    added: int
    changed: int
    removed: int


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened since `since_ms` (inclusive): `days` newest first; `first_firings` are rows that fired first."""

    since_ms: int
    batches: int
    first_firings: int
    days: Sequence[DayChange]

    def total(self, what: str) -> int:
        """All rows added, changed or removed of results that were there before, or by other causes than firing."""
        return sum(getattr(one, what) for one in self.days)


def changes(tables: Tables, runs: Sequence[Run], now_ms: int) -> Changes | None:
    """Since a day ago, of batches newest first; None where the log is no longer there."""
    since_ms = now_ms - DAY_MS
    recent = [run for run in runs if run.at_ms >= since_ms]
    if not recent:
        return Changes(since_ms, 0, 0, ())
    older = runs[len(recent)].versions if len(runs) > len(recent) else {}
    before, newest = older.get("result_changes", 0), recent[0].versions.get("result_changes")
    if newest is None:
        return Changes(since_ms, len(recent), 0, ())
    try:
        rows = _rows(tables, max(before, newest - COMMITS_READ), newest)
    except log.DamagedLog:
        return None
    first = sum(count for (_, cause, change), count in rows.items() if (cause, change) == (FIRST_FIRING, ADDED))
    return Changes(since_ms, len(recent), first, _days(rows))


def _rows(tables: Tables, after: int, up_to: int) -> Counter[tuple[date | None, str, str]]:
    """Rows by window day, cause and change, of files that were added and are still there."""
    live: dict[str, Mapping[str, Any]] = {}
    for version in range(after + 1, up_to + 1):
        for action in log.actions(tables["result_changes"].folder, version):
            if (added := action.get("add")) and added.get("dataChange", True):
                live[added["path"]] = added
            elif (removed := action.get("remove")) and removed.get("dataChange", True):
                live.pop(removed["path"], None)  # a rollback
    rows: Counter[tuple[date | None, str, str]] = Counter()
    for added in live.values():
        of = added["partitionValues"]
        day = date.fromisoformat(of["window_day"]) if of.get("window_day") else None
        rows[day, of["cause"], of["change"]] += json.loads(added["stats"])["numRecords"]
    return rows


def _days(rows: Counter[tuple[date | None, str, str]]) -> list[DayChange]:
    found = {(day, cause) for day, cause, change in rows if (cause, change) != (FIRST_FIRING, ADDED)}
    ordered = sorted(found, key=lambda one: (one[0] is None, one[0] or date.min, one[1]), reverse=True)
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
