"""Event of a results' asset: the figures of all batches of a run together.

Counts and seconds are added up. Failed checks are listed, each with its batch. Figures of the state (times, watermark,
rows of a table) come from the newest batch, and figures of the state before a batch from the oldest. Percentiles and
distinct values of several batches cannot be combined, so they are None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import AssetAlias

from windowlib.airflow.outcome import in_a_line, is_rerun, rows_changed
from windowlib.definition.toml.column_tests import DISTINCT

if TYPE_CHECKING:
    from windowlib.airflow.job import Record

OF_RERUNS = AssetAlias("windowlib_reruns")  # the DAG of reruns serves many pipelines; an event is about one of them
FIRST = ("_before", "watermark_in_ms")  # endings of the names of figures whose first value counts
NEWEST = ("_after", "_ms", "windows_open", "batch_id", "watermark")  # endings of names: the last value counts
UNKNOWN = ("late_by_p50_ms", "late_by_p95_ms", DISTINCT)  # endings of names: several batches have no value together
CHECKS = "failed_checks"


def extra_of(batches: Sequence[Record]) -> Record:
    """Extra of an event: the outcome in a line, the number of batches, and their figures together.

    batches: outcomes of the batches, oldest first

    >>> first = {"batch_id": 7, "rows_read": 5, "results_rows_before": 3, "failed_checks": [{"observed": "9"}]}
    >>> second = {"batch_id": 8, "rows_read": 9, "results_rows_before": 4, "watermark": "2026-03-05T12:00:00Z"}
    >>> del (extra := extra_of([first, second]))["outcome"]
    >>> extra  # doctest: +NORMALIZE_WHITESPACE
    {'batches': 2, 'batch_id': 8, 'rows_read': 14, 'results_rows_before': 3,
     'watermark': '2026-03-05T12:00:00Z', 'failed_checks': [{'batch_id': 7, 'observed': '9'}]}
    """
    names = dict.fromkeys(name for batch in batches for name in batch if name != CHECKS)
    figures = {
        name: _together(name, [batch[name] for batch in batches if batch.get(name) is not None]) for name in names
    }
    checks = [{"batch_id": batch.get("batch_id"), **check} for batch in batches for check in batch.get(CHECKS) or ()]
    return {"outcome": in_a_line(batches), "batches": len(batches), **figures, CHECKS: checks}


def changes_results(batches: Sequence[Record]) -> bool:
    """Tests if consumers of the results need an event about some batches. A rerun that changes no row needs none."""
    return any(not is_rerun(batch) or sum(rows_changed([batch])) for batch in batches)


def _together(name: str, values: Sequence[Any]) -> Any:
    """Figure of several batches, from its values in the batches that have the figure."""
    if not values or (name.endswith(UNKNOWN) and len(values) > 1):
        return None
    if name == "late_by_max_ms":
        return max(values)
    if name.endswith(FIRST):
        return values[0]
    return values[-1] if name.endswith(NEWEST) else round(sum(values), 3)
