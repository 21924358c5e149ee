"""What a batch's source files hold, as the driver needs to know it before time can move."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from jobs.ledger import Plan
from jobs.reach import Bucket

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windowlib.plans.admission import Admission


@dataclass(frozen=True, slots=True)
class FileFigures:
    """One source file: its rows, and the event times of those admitted (None without any)."""

    rows: int = 0
    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None

    def with_bucket(self, rows: int, min_timestamp_ms: int | None, max_timestamp_ms: int | None) -> FileFigures:
        low = [t for t in (self.min_timestamp_ms, min_timestamp_ms) if t is not None]
        high = [t for t in (self.max_timestamp_ms, max_timestamp_ms) if t is not None]
        return FileFigures(self.rows + rows, min(low, default=None), max(high, default=None))


@dataclass(frozen=True, slots=True)
class Newest:
    """The admitted event with the greatest time; of several the one in the file that comes first by name."""

    timestamp_ms: int
    file: str
    row: int


@dataclass(slots=True)
class Seen:
    """What a batch holds: rows by reason, by file, and by bucket of event time."""

    rows: int = 0
    admitted: int = 0
    may_be_late: bool = False  # whether an event would be late alone
    reasons: dict[str, int] = field(default_factory=dict)
    files: dict[str, FileFigures] = field(default_factory=dict)  # by path relative to the source
    buckets: list[Bucket] = field(default_factory=list)
    newest: Newest | None = None
    row_groups: int | None = None  # None: not known


def look(rows: DataFrame, admission: Admission, bucket_ms: int, paths: Mapping[str, str]) -> Seen:
    """Runs the figures job over the rows of a batch. `paths` gives a file's path for its URI."""
    from windowlib.plans.admission import REASONS, figures

    seen = Seen(reasons=dict.fromkeys(REASONS, 0))
    file, path_of = _short_names(paths)
    found = [(path_of[row["file"]], row) for row in figures(rows, admission, bucket_ms, file).collect()]
    for path, row in sorted(found, key=lambda pair: (pair[0], pair[1]["bucket"] or 0)):
        low, high = row["min_timestamp_ms"], row["max_timestamp_ms"]
        seen.rows += row["rows"]
        seen.files[path] = seen.files.get(path, FileFigures()).with_bucket(row["rows"], low, high)
        if row["reason"] is not None:
            seen.reasons[row["reason"]] += row["rows"]
            continue
        seen.admitted += row["rows"]
        seen.may_be_late |= row["min_window_end_ms"] - 1 <= admission.late_up_to_ms
        seen.buckets.append(Bucket(low, high, row["max_window_end_ms"]))
        if seen.newest is None or high > seen.newest.timestamp_ms:
            seen.newest = Newest(high, path, row["max_row"])
    return seen


def as_judged_by(seen: Seen, admission: Admission) -> Seen:
    """The same rows as another definition sees them, whose windows end elsewhere and may be late where others are not.

    Only for windows whose end does not fall when their event's time rises.
    """
    assign = admission.assigner.assign
    buckets = [replace(b, max_window_end_ms=assign(b.max_timestamp_ms)[-1].end_ms) for b in seen.buckets]
    first_ends_ms = (assign(bucket.min_timestamp_ms)[-1].end_ms for bucket in seen.buckets)
    may_be_late = any(end_ms - 1 <= admission.late_up_to_ms for end_ms in first_ends_ms)
    return replace(seen, buckets=buckets, may_be_late=may_be_late, reasons=dict(seen.reasons))


def _short_names(paths: Mapping[str, str]) -> tuple[Column, Mapping[Any, str]]:
    """What tells the files of a batch apart, and the path for each value: the checksum of a URI, if no two share one.

    Grouping a million rows by a long URI took as long as everything else about them.
    """
    from pyspark.sql import functions as F

    by_checksum = {zlib.crc32(uri.encode()): path for uri, path in paths.items()}
    if len(by_checksum) < len(paths):
        return F.col("_source_file"), paths
    return F.crc32(F.col("_source_file").cast("binary")), by_checksum


def read_files(plan: Plan, seen: Seen) -> list[dict[str, Any]]:
    """The rows of `source_files` for a batch."""
    rows = []
    for file in plan.files:
        figures = seen.files.get(file.path, FileFigures())
        rows.append(
            {
                "path": file.path,
                "size_bytes": file.size_bytes,
                "modified_ns": file.modified_ns,
                "sequence": file.sequence,
                "batch_id": plan.batch_id,
                "rows": figures.rows,
                "min_timestamp_ms": figures.min_timestamp_ms,
                "max_timestamp_ms": figures.max_timestamp_ms,
            }
        )
    return rows
