"""Outcome of a task in a line: its return value, and part of the event of the results' asset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windowlib.definition.plurals import counted
from windowlib.quality.firings import windows_fired


def in_a_line(batches: Sequence[dict[str, Any]]) -> str:
    """Summary of batches in a line, oldest first. Reads the JSON of their reports (`BatchReport.json_fields`).

    >>> batch = {"windows_fired_on_time": 5_000, "rows_late": 2, "watermark": "2026-03-05T12:00Z", "failed_checks": []}
    >>> in_a_line([batch, batch | {"windows_fired_late": 8, "failed_checks": [{}]}])
    '2 batches, 10,008 results, 4 late, watermark 2026-03-05T12:00Z, 1 check failed'
    >>> in_a_line([{"rerun_from_ms": 0, "windows_added": 1, "windows_removed": 0, "windows_changed": 2}])
    '1 batch, of a rerun: 1 result added, 0 removed, 2 changed, watermark none yet'
    """
    failed = sum(len(batch.get("failed_checks") or ()) for batch in batches)
    late = sum(int(batch.get("rows_late") or 0) for batch in batches)
    reruns = [batch for batch in batches if is_rerun(batch)]
    added, removed, changed = rows_changed(reruns)
    parts = [
        counted(len(batches), "batch"),
        counted(results_of(batches), "result") if len(reruns) < len(batches) else "",
        f"of a rerun: {counted(added, 'result')} added, {removed:,} removed, {changed:,} changed" if reruns else "",
        f"{late:,} late" if late else "",
        f"watermark {batches[-1].get('watermark') or 'none yet'}",
        f"{counted(failed, 'check')} failed" if failed else "",
    ]
    return ", ".join(filter(None, parts))


def results_of(batches: Sequence[dict[str, Any]]) -> int:
    """Number of results that some batches published: windows that fired early, on time, or because of late events."""
    return sum(map(windows_fired, batches))


def is_rerun(batch: Mapping[str, Any]) -> bool:
    """Tests if a batch recomputed windows of a past range, by its outcome."""
    return "rerun_from_ms" in batch


def rows_changed(batches: Sequence[Mapping[str, Any]]) -> tuple[int, int, int]:
    """Numbers of rows that some batches added to the results, removed from them, and changed."""
    added, removed, changed = (
        sum(int(batch.get(f"windows_{kind}") or 0) for batch in batches) for kind in ("added", "removed", "changed")
    )
    return added, removed, changed
