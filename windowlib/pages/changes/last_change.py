"""Time of the last change of results."""

from __future__ import annotations

from collections.abc import Sequence

from windowlib.pages.newest_rows import RecentRun

REPLACING = ("rollback", "adopt")  # decisions that change results without rows in `result_changes`


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
