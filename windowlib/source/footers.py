"""Row counts and event times of a batch, from the footers of its Parquet files alone.

The footers suffice if they show that no row is refused: no null among keys and times, and every time within bounds.
Then no job has to scan the rows before the watermark can move. The time ranges are coarse: there is one per row group.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.definition.instants import time_of
from windowlib.definition.toml.durations import UNITS
from windowlib.delta.footers import bounds_of
from windowlib.engines.parquet_files import parquet_file, rows_read
from windowlib.ledger.rows import SourceFile
from windowlib.model.assigners import Assigner
from windowlib.model.geometry import geometry_of
from windowlib.model.times import floored_ms
from windowlib.plans.admission import MAX_TIMESTAMP_MS, Admission
from windowlib.plans.reach import Bucket
from windowlib.source.intake import BatchIntake, Group, latest_end_ms, summed_up
from windowlib.source.listed import ListedFile
from windowlib.storage.at_once import at_once
from windowlib.storage.object_file import opened
from windowlib.storage.store import Store

DAY_MS = UNITS["d"]
FOOTERS_AT_ONCE = 256


@lru_cache(maxsize=64)  # several steps of a batch look at the same files
def footer(store: Store, file: SourceFile | ListedFile) -> pq.FileMetaData:
    """Footer of a Parquet file of the source."""
    return pq.read_metadata(opened(store, file.path, file.size_bytes))


def look(store: Store, files: Sequence[SourceFile], admission: Admission) -> BatchIntake | None:
    """Row counts and event times of the files; None if their footers do not suffice and the rows must be scanned."""
    return _cached_look(store, tuple(files), replace(admission, keys=tuple(admission.keys)))


@lru_cache(maxsize=4)  # a batch looks at the same files twice
def _cached_look(store: Store, files: tuple[SourceFile, ...], admission: Admission) -> BatchIntake | None:
    assigner = admission.assigner
    if not may_suffice(assigner, by_event_time=admission.by_event_time) or admission.time_zone:
        return None  # the engine converts local times, since its time zone rules may differ from Python's
    if any(not file.values.keys().isdisjoint((admission.timestamp, *admission.keys)) for file in files):
        return None  # the values are in folder names or in the table's log, not in the footer
    if (spans_read := _spans_read(store, sorted(files, key=lambda file: file.path), admission)) is None:
        return None
    groups = [
        Group(
            file.path,
            span.rows,
            None,
            Bucket(span.low_ms, span.high_ms, latest_end_ms(assigner, span.high_ms)),
            latest_end_ms(assigner, span.low_ms),
            newest_ms=span.high_ms,
        )
        for file, span in spans_read
    ]
    batch = replace(summed_up(groups, admission), row_groups=len(groups))
    if batch.newest is None:
        return batch
    file, span = max(spans_read, key=lambda pair: pair[1].high_ms)  # the first of several, as in `summed_up`
    row = _newest_row(store, file, span.number, admission.timestamp)
    return replace(batch, newest=replace(batch.newest, row=row))


def _spans_read(
    store: Store, files: Sequence[SourceFile], admission: Admission
) -> list[tuple[SourceFile, _Span]] | None:
    """Non-empty row groups of the files; None if a footer does not suffice. Later footers are not read then."""
    latest_ms = MAX_TIMESTAMP_MS if admission.future_after_ms is None else admission.future_after_ms
    spans_read: list[tuple[SourceFile, _Span]] = []
    for start in range(0, len(files), FOOTERS_AT_ONCE):
        some = files[start : start + FOOTERS_AT_ONCE]
        for file, about in zip(some, at_once(partial(footer, store), some), strict=True):
            spans = _spans(about, admission)
            if spans is None or any(
                span.low_ms < admission.earliest_ms or span.high_ms > min(latest_ms, MAX_TIMESTAMP_MS) for span in spans
            ):
                return None
            spans_read += [(file, span) for span in spans]
    return spans_read


def may_suffice(assigner: Assigner, *, by_event_time: bool) -> bool:
    """Tests if every event is in a window, and if its event time alone determines its windows.

    >>> from windowlib import Sliding
    >>> [may_suffice(Sliding(size_ms=9, slide_ms=slide_ms), by_event_time=True) for slide_ms in (9, 10)]
    [True, False]
    """
    geometry = geometry_of(assigner)
    return by_event_time and geometry.by_time and geometry.has_holes is False


def span(footer: pq.FileMetaData, timestamp: str, unit: str | None, zone: str | None = None) -> tuple[int, int] | None:
    """Least and greatest event time of a file's rows in ms, refused rows included; None if its footer has no times.

    With `zone`, the times are local, so the range is one day wider at both ends.
    """
    margin_ms = DAY_MS if zone else 0
    times_ms: list[int] = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema == timestamp and column.statistics and column.statistics.has_min_max:
                with suppress(OverflowError, ValueError):  # a time that Python cannot represent
                    times_ms += _times_ms(column.statistics, unit) or ()
    return (min(times_ms) - margin_ms, max(times_ms) + margin_ms) if times_ms else None


def texts(footer: pq.FileMetaData, column: str) -> list[tuple[str, str]] | None:
    """Least and greatest string of a file's column, as a list with one pair.

    The list is empty if the column is all null. Returns None if the footer does not have these bounds.
    """
    low, high, nulls = bounds_of(footer)
    if nulls.get(column) == footer.num_rows:
        return []
    bounds = low.get(column), high.get(column)
    return [(bounds[0], bounds[1])] if isinstance(bounds[0], str) and isinstance(bounds[1], str) else None


class _Span(NamedTuple):
    """Row group: its number in its file, its row count, and its least and greatest event time."""

    number: int
    rows: int
    low_ms: int
    high_ms: int


def _spans(footer: pq.FileMetaData, admission: Admission) -> list[_Span] | None:
    """Non-empty row groups of a file; None if the footer does not suffice."""
    indices = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
    if len(indices) < footer.num_columns:
        return None  # a.b may be a column, or the field b of a
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
            bounds_ms = _times_ms(times, admission.timestamp_unit)
        except (OverflowError, ValueError):
            return None  # Python cannot represent a bound: a job scans the rows
        if bounds_ms is None:
            return None
        spans.append(_Span(number, group.num_rows, *bounds_ms))
    return spans


def _times_ms(statistics: pq.Statistics, unit: str | None) -> tuple[int, int] | None:
    """Least and greatest event time in a column's statistics, in ms; None if the bounds are not event times."""
    low_ms, high_ms = (_time_ms(value, unit) for value in (statistics.min, statistics.max))
    return None if low_ms is None or high_ms is None else (low_ms, high_ms)


def _time_ms(value: Any, unit: str | None) -> int | None:
    """Event time in ms, floored as by admission; None unless the value is a TIMESTAMP or a number of `unit`."""
    match value:
        case datetime():
            time_ms: object = time_of(value)  # the least nanosecond is NaT in pandas, and no number
            return time_ms if unit is None and isinstance(time_ms, int) else None
        case bool():
            return None
        case int():
            return None if unit is None else floored_ms(value, unit)
    return None


def _newest_row(store: Store, file: SourceFile, group: int, timestamp: str) -> int:
    """Row number of the greatest value of `timestamp` in a row group. The number counts from the start of the file."""
    place = opened(store, file.path, file.size_bytes)
    parquet = parquet_file(place, footer(store, file))
    before: int = sum(parquet.metadata.row_group(earlier).num_rows for earlier in range(group))
    rows = rows_read(place.address, parquet, row_groups=[group], columns=[timestamp])
    times = pa.Table.from_batches(rows).column(0)
    row: int = pc.index(times, pc.max(times)).as_py()
    return before + row
