"""What a batch's source files hold, by the footers of its Parquet files alone.

Where the footers rule out that any row is refused (no null among keys and times, every time in bounds) they tell all
that must be known before time can move, and no job needs to pass over the rows for it. Spans of time they tell only
coarsely: one per row group.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.intake import FileFigures, Newest, Seen
from jobs.ledger import SourceFile
from jobs.reach import Bucket
from windowlib.assigners import Global, Session, Sliding, Tumbling
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS, REASONS, Admission

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS_PER_MS = {"ms": 1, "us": 1000}


def look(folder: Path, files: Sequence[SourceFile], admission: Admission) -> Seen | None:
    """What the files hold; None where their footers do not tell, so that the rows themselves must be looked at."""
    assigner = admission.assigner
    by_calendar = isinstance(assigner, Session | Tumbling | Sliding | Global) and admission.by_event_time
    if not by_calendar or admission.has_holes:
        return None
    latest_ms = MAX_TIMESTAMP_MS if admission.future_after_ms is None else admission.future_after_ms
    seen = Seen(reasons=dict.fromkeys(REASONS, 0))
    newest: tuple[SourceFile, int] | None = None
    for file in sorted(files, key=lambda file: file.path):
        spans = _spans(folder / file.path, admission)
        if spans is None:
            return None
        for group, rows, low_ms, high_ms in spans:
            if low_ms < MIN_TIMESTAMP_MS or high_ms > min(latest_ms, MAX_TIMESTAMP_MS):
                return None
            seen.rows += rows
            seen.files[file.path] = seen.files.get(file.path, FileFigures()).with_bucket(rows, low_ms, high_ms)
            first_end_ms, last_end_ms = (assigner.assign(time_ms)[-1].end_ms for time_ms in (low_ms, high_ms))
            seen.buckets.append(Bucket(low_ms, high_ms, last_end_ms))
            seen.may_be_late |= first_end_ms - 1 <= admission.late_up_to_ms
            if seen.newest is None or high_ms > seen.newest.timestamp_ms:
                seen.newest, newest = Newest(high_ms, file.path, 0), (file, group)
    seen.admitted, seen.row_groups = seen.rows, len(seen.buckets)
    if newest is not None and seen.newest is not None:
        row = _newest_row(folder / newest[0].path, newest[1], admission.timestamp)
        seen.newest = Newest(seen.newest.timestamp_ms, newest[0].path, row)
    return seen


def _spans(path: Path, admission: Admission) -> list[tuple[int, int, int, int]] | None:
    """Number, rows, least and greatest event time of each row group; None where a footer does not tell as much."""
    footer = pq.read_metadata(path)
    indices = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
    if not {admission.timestamp, *admission.keys} <= indices.keys():
        return None
    spans = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        if not group.num_rows:
            continue
        for name in (admission.timestamp, *admission.keys):
            statistics = group.column(indices[name]).statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                return None
        times = group.column(indices[admission.timestamp]).statistics
        if not times.has_min_max:
            return None
        try:
            low_ms, high_ms = (_time_ms(value, admission.timestamp_unit) for value in (times.min, times.max))
        except (OverflowError, ValueError):
            return None  # a time that no calendar here can tell: its row is judged by itself
        if low_ms is None or high_ms is None:
            return None
        spans.append((number, group.num_rows, low_ms, high_ms))
    return spans


def _time_ms(value: Any, unit: str | None) -> int | None:
    """An event time as admission floors it; None for what is neither a TIMESTAMP nor a number of `unit`."""
    match value:
        case datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return (aware - _EPOCH) // (datetime.resolution * 1000) if unit is None else None
        case bool():
            return None
        case int():
            return value * 1000 if unit == "s" else value // _UNITS_PER_MS[unit] if unit in _UNITS_PER_MS else None
    return None


def _newest_row(path: Path, group: int, timestamp: str) -> int:
    """The row, counted in the whole file, of the greatest value of `timestamp` in a row group."""
    file = pq.ParquetFile(path)
    before: int = sum(file.metadata.row_group(earlier).num_rows for earlier in range(group))
    times = file.read_row_group(group, columns=[timestamp]).column(0)
    row: int = pc.index(times, pc.max(times)).as_py()
    return before + row
