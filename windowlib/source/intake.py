"""Row counts and event times of a batch's files, which the driver needs before it can move the watermark."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from windowlib.definition.toml.source import Source
from windowlib.ledger.rows import Plan
from windowlib.model.assigners import Assigner
from windowlib.model.geometry import geometry_of
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.plans import names
from windowlib.plans.admission import REASONS, Admission, figures
from windowlib.plans.functions import F
from windowlib.plans.reach import Bucket
from windowlib.source.contents import Checksums

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row


def times_of(source: Source, assigner: Assigner) -> Admission:
    """Admission rule that only reads event times: no event is late, ahead of the clock, or erased."""
    zone = source.dialect.time_zone
    return Admission(source.key, source.timestamp, source.timestamp_unit, assigner, MIN_WATERMARK, time_zone=zone)


@dataclass(frozen=True, slots=True)
class FileFigures:
    """Figures of one source file: its row count, and the event times of its admitted rows (None without any)."""

    rows: int = 0
    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class NewestEvent:
    """Event with the greatest time among the admitted events and the events in no window.

    If several events have this time, it is an event of the first file by name.
    """

    timestamp_ms: int
    file: str
    row: int


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one file that are admitted in the same time bucket, or refused for the same reason (without bucket).

    first_end_ms: least window end among the rows' events, each event taken alone
    newest_row:   number of the row with the greatest time
    newest_ms:    time of that row; None if the rows do not move the watermark
    """

    file: str
    rows: int
    reason: str | None = None
    bucket: Bucket | None = None
    first_end_ms: int = 0
    newest_row: int = 0
    newest_ms: int | None = None


@dataclass(frozen=True, slots=True)
class BatchIntake:
    """Content of a batch: row counts by reason, by file, and by bucket of event time.

    may_be_late: true if some event, taken alone, would be late
    files:       by path relative to the source
    row_groups:  number of row groups; None if not known
    """

    rows: int = 0
    admitted: int = 0
    may_be_late: bool = False
    reasons: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, FileFigures] = field(default_factory=dict)
    buckets: Sequence[Bucket] = ()
    newest: NewestEvent | None = None
    row_groups: int | None = None

    def with_holes(self, rows: int) -> BatchIntake:
        """Counts `rows` of the admitted rows as in no window (reason "hole"), and not as late."""
        reasons = {**self.reasons, "hole": self.reasons.get("hole", 0) + rows}
        return replace(self, admitted=self.admitted - rows, reasons=reasons) if rows else self


def summed_up(groups: Sequence[Group], admission: Admission) -> BatchIntake:
    """Adds up groups of rows, which are sorted by file name."""
    admitted = [(group, group.bucket) for group in groups if group.bucket is not None]
    moving = [
        NewestEvent(group.newest_ms, group.file, group.newest_row) for group in groups if group.newest_ms is not None
    ]
    of_file: dict[str, list[Group]] = {}
    for group in groups:
        of_file.setdefault(group.file, []).append(group)
    return BatchIntake(
        rows=sum(group.rows for group in groups),
        admitted=sum(group.rows for group, _ in admitted),
        may_be_late=any(group.first_end_ms - 1 <= admission.late_up_to_ms for group, _ in admitted),
        reasons={reason: sum(group.rows for group in groups if group.reason == reason) for reason in REASONS},
        files={file: _figures(members) for file, members in of_file.items()},
        buckets=[bucket for _, bucket in admitted],
        newest=max(moving, key=lambda newest: newest.timestamp_ms, default=None),
    )


def _figures(groups: Sequence[Group]) -> FileFigures:
    spans = [group.bucket for group in groups if group.bucket is not None]
    return FileFigures(
        sum(group.rows for group in groups),
        min((span.min_timestamp_ms for span in spans), default=None),
        max((span.max_timestamp_ms for span in spans), default=None),
    )


def look(rows: DataFrame, admission: Admission, bucket_ms: int, paths: Mapping[str, str]) -> BatchIntake:
    """Runs the figures job over the rows of a batch. `paths` maps the URI of a file to its path."""
    file, path_of = _short_names(paths)
    rows_by_path = [(path_of[row["file"]], row) for row in figures(rows, admission, bucket_ms, file).collect()]
    ordered = sorted(rows_by_path, key=lambda pair: (pair[0], pair[1]["bucket"] or 0))
    batch = summed_up([_group(path, row) for path, row in ordered], admission)
    return batch if geometry_of(admission.assigner).calendar is None else as_judged_by(batch, admission)


def _group(path: str, row: Row) -> Group:
    if row["reason"] is not None:
        return Group(path, row["rows"], row["reason"], newest_row=row["max_row"], newest_ms=row["max_timestamp_ms"])
    bucket = Bucket(row["min_timestamp_ms"], row["max_timestamp_ms"], row["max_window_end_ms"])
    return Group(path, row["rows"], None, bucket, row["min_window_end_ms"], row["max_row"], bucket.max_timestamp_ms)


def latest_end_ms(assigner: Assigner, timestamp_ms: int) -> int:
    """End of the last window of an event, for windows that the event time alone decides.

    >>> from windowlib import Session, Sliding
    >>> latest_end_ms(Session(gap_ms=10), 5), latest_end_ms(Sliding(size_ms=10, slide_ms=5), 7)
    (15, 15)
    """
    end_ms = geometry_of(assigner).latest_end_ms(timestamp_ms)
    assert end_ms is not None, f"the event time alone does not decide the windows of {assigner}"
    return end_ms


def as_judged_by(batch: BatchIntake, admission: Admission) -> BatchIntake:
    """Recomputes the window ends and `may_be_late` of a batch for the admission of another definition.

    Only for windows whose end never decreases as the event time increases.
    """
    end_ms = partial(latest_end_ms, admission.assigner)
    buckets = [replace(bucket, max_window_end_ms=end_ms(bucket.max_timestamp_ms)) for bucket in batch.buckets]
    first_ends_ms = (end_ms(bucket.min_timestamp_ms) for bucket in batch.buckets)
    may_be_late = any(first_ms - 1 <= admission.late_up_to_ms for first_ms in first_ends_ms)
    return replace(batch, buckets=buckets, may_be_late=may_be_late)


def _short_names(paths: Mapping[str, str]) -> tuple[Column, Mapping[Any, str]]:
    """Returns a column that identifies files, and the path for each value of the column.

    The values are checksums of the URIs, unless two URIs share a checksum. Grouping a million rows by a long URI took
    as long as the rest of the job.
    """
    by_checksum = {zlib.crc32(uri.encode()): path for uri, path in paths.items()}
    if len(by_checksum) < len(paths):
        return F.col(names.SOURCE_FILE), paths
    return F.crc32(F.col(names.SOURCE_FILE).cast("binary")), by_checksum


def read_files(plan: Plan, batch: BatchIntake, checksums: Checksums, read_as: str) -> list[dict[str, Any]]:
    """Rows of `source_files` for a batch; `read_as` states how the definition reads files."""
    figures = [asdict(batch.files.get(file.path, FileFigures())) for file in plan.files]
    return [
        {
            **asdict(file),
            **file_figures,
            "batch_id": plan.batch_id,
            "sha256": checksums.of(file.path),
            "read_as": read_as,
        }
        for file, file_figures in zip(plan.files, figures, strict=True)
    ]
