"""What the event of a results' asset says: what all batches of a run did together.

Counts are added up, and so are seconds; failed checks are listed, each with its batch. What says where things stand
(times, the watermark, rows of a table) is that of the first batch where it is from before it, else of the newest.
Medians of several batches are not those of their events: they are None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import AssetAlias

from windowlib.airflow.outcome import in_a_line, is_rerun, rows_changed

if TYPE_CHECKING:
    from windowlib.airflow.job import Record

OF_RERUNS = AssetAlias("windowlib_reruns")  # the DAG of reruns is of many pipelines: an event is of one of them
FIRST = ("_before", "watermark_in_ms")  # how figures end whose first value counts
NEWEST = ("_after", "_ms", "windows_open", "batch_id", "watermark")  # and those whose last does
UNKNOWN = ("late_by_p50_ms", "late_by_p95_ms")
CHECKS = "failed_checks"


def extra_of(batches: Sequence[Record]) -> Record:
    """The outcome in a line, how many batches, and their figures together; by their outcomes, oldest first.

    >>> one = {"batch_id": 7, "rows_read": 5, "results_rows_before": 3, "failed_checks": [{"observed": "9"}]}
    >>> two = {"batch_id": 8, "rows_read": 9, "results_rows_before": 4, "watermark": "2026-03-05T12:00:00Z"}
    >>> del (found := extra_of([one, two]))["outcome"]
    >>> found  # doctest: +NORMALIZE_WHITESPACE
    {'batches': 2, 'batch_id': 8, 'rows_read': 14, 'results_rows_before': 3,
     'watermark': '2026-03-05T12:00:00Z', 'failed_checks': [{'batch_id': 7, 'observed': '9'}]}
    """
    names = dict.fromkeys(name for one in batches for name in one if name != CHECKS)
    figures = {name: _together(name, [one[name] for one in batches if one.get(name) is not None]) for name in names}
    checks = [{"batch_id": one.get("batch_id"), **check} for one in batches for check in one.get(CHECKS) or ()]
    return {"outcome": in_a_line(batches), "batches": len(batches), **figures, CHECKS: checks}


def changes_results(batches: Sequence[Record]) -> bool:
    """Whether those who follow the results must know of some batches: not of a rerun that left all rows as they are."""
    return any(not is_rerun(one) or sum(rows_changed([one])) for one in batches)


def _together(name: str, known: Sequence[Any]) -> Any:
    """A figure of several batches, from its values in those that have one."""
    if not known or (name in UNKNOWN and len(known) > 1):
        return None
    if name == "late_by_max_ms":
        return max(known)
    if name.endswith(FIRST):
        return known[0]
    return known[-1] if name.endswith(NEWEST) else round(sum(known), 3)
