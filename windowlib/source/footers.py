"""What a batch's source files hold, by the footers of its Parquet files alone.

Where the footers rule out that any row is refused (no null among keys and times, every time in bounds) they hold all
that must be known before time can move, and no job needs to pass over the rows for it. Spans of time are coarse: one
for each row group.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.definition.instants import time_of
from windowlib.definition.toml.durations import UNITS
from windowlib.delta.footers import bounds_of
from windowlib.engines.sail_files import rows_read
from windowlib.ledger.rows import SourceFile
from windowlib.model.assigners import Assigner, Global, Session, Sliding, Tumbling
from windowlib.model.times import floored_ms
from windowlib.plans.admission import MAX_TIMESTAMP_MS, Admission, own_end_of
from windowlib.plans.reach import Bucket
from windowlib.source.intake import BatchIntake, Group, summed_up

DAY_MS = UNITS["d"]


def look(folder: Path, files: Sequence[SourceFile], admission: Admission) -> BatchIntake | None:
    """What the files hold; None where their footers do not suffice, so that the rows themselves must be looked at."""
    return _looked(folder, tuple(files), replace(admission, keys=tuple(admission.keys)))


@lru_cache(maxsize=4)  # asked for twice in a batch
def _looked(folder: Path, files: tuple[SourceFile, ...], admission: Admission) -> BatchIntake | None:
    assigner = admission.assigner
    if not may_suffice(assigner, by_event_time=admission.by_event_time) or admission.time_zone:
        return None  # what clocks of a zone show is for the engine to say: it knows other changes of them than Python
    latest_ms = MAX_TIMESTAMP_MS if admission.future_after_ms is None else admission.future_after_ms
    found: list[tuple[SourceFile, _Span]] = []
    for file in sorted(files, key=lambda file: file.path):
        if not file.values.keys().isdisjoint((admission.timestamp, *admission.keys)):
            return None  # the file itself need not have the column, or the log of its table has another value
        spans = _spans(folder / file.path, admission)
        if spans is None or any(
            span.low_ms < admission.earliest_ms or span.high_ms > min(latest_ms, MAX_TIMESTAMP_MS) for span in spans
        ):
            return None
        found += [(file, span) for span in spans]
    own_end_ms = partial(own_end_of, assigner)
    groups = [
        Group(
            file.path,
            span.rows,
            None,
            Bucket(span.low_ms, span.high_ms, own_end_ms(span.high_ms)),
            own_end_ms(span.low_ms),
            newest_ms=span.high_ms,
        )
        for file, span in found
    ]
    seen = replace(summed_up(groups, admission), row_groups=len(groups))
    if seen.newest is None:
        return seen
    file, span = max(found, key=lambda pair: pair[1].high_ms)  # the first of several, as in `summed_up`
    row = _newest_row(folder / file.path, span.number, admission.timestamp)
    return replace(seen, newest=replace(seen.newest, row=row))


def may_suffice(assigner: Assigner, *, by_event_time: bool) -> bool:
    """Whether an event's time alone says which windows it is in, and there always is one.

    >>> [may_suffice(Sliding(size_ms=9, slide_ms=slide_ms), by_event_time=True) for slide_ms in (9, 10)]
    [True, False]
    """
    if isinstance(assigner, Sliding) and assigner.slide_ms > assigner.size_ms:
        return False
    return by_event_time and isinstance(assigner, Session | Tumbling | Sliding | Global)


def span(path: Path, timestamp: str, unit: str | None, zone: str | None = None) -> tuple[int, int] | None:
    """The least and the greatest time of a file's rows in ms, refused ones among them; None where its footer has
    none. Times as clocks of a zone show them count with a day more at both ends.
    """
    footer, margin_ms = pq.read_metadata(path), DAY_MS if zone else 0
    found: list[int] = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema == timestamp and column.statistics and column.statistics.has_min_max:
                with suppress(OverflowError, ValueError):  # a time that no calendar here has
                    found += _times_ms(column.statistics, unit) or ()
    return (min(found) - margin_ms, max(found) + margin_ms) if found else None


def texts(path: Path, column: str) -> list[tuple[str, str]] | None:
    """The least and the greatest text of a column of a file, if it has any; None where its footer leaves that open."""
    footer = pq.read_metadata(path)
    low, high, nulls = bounds_of(footer)
    if nulls.get(column) == footer.num_rows:
        return []
    bounds = low.get(column), high.get(column)
    return [(bounds[0], bounds[1])] if isinstance(bounds[0], str) and isinstance(bounds[1], str) else None


class _Span(NamedTuple):
    """A row group: its number in its file, its rows, their least and greatest event time."""

    number: int
    rows: int
    low_ms: int
    high_ms: int


def _spans(path: Path, admission: Admission) -> list[_Span] | None:
    """The row groups of a file that have rows; None where its footer leaves something open."""
    footer = pq.read_metadata(path)
    indices = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
    if len(indices) < footer.num_columns:
        return None  # a.b may be a column, or b in a
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
            found = _times_ms(times, admission.timestamp_unit)
        except (OverflowError, ValueError):
            return None  # a time that no calendar here has: its row is judged by itself
        if found is None:
            return None
        spans.append(_Span(number, group.num_rows, *found))
    return spans


def _times_ms(statistics: pq.Statistics, unit: str | None) -> tuple[int, int] | None:
    """The least and the greatest event time that statistics have; None where they leave it open."""
    low_ms, high_ms = (_time_ms(value, unit) for value in (statistics.min, statistics.max))
    return None if low_ms is None or high_ms is None else (low_ms, high_ms)


def _time_ms(value: Any, unit: str | None) -> int | None:
    """An event time as admission floors it; None for what is neither a TIMESTAMP nor a number of `unit`."""
    match value:
        case datetime():
            time_ms: object = time_of(value)  # the first nanosecond of all is NaT for pandas, and no number
            return time_ms if unit is None and isinstance(time_ms, int) else None
        case bool():
            return None
        case int():
            return None if unit is None else floored_ms(value, unit)
    return None


def _newest_row(path: Path, group: int, timestamp: str) -> int:
    """The row, counted in the whole file, of the greatest value of `timestamp` in a row group."""
    file = pq.ParquetFile(path)
    before: int = sum(file.metadata.row_group(earlier).num_rows for earlier in range(group))
    times = pa.Table.from_batches(rows_read(path, file, row_groups=[group], columns=[timestamp])).column(0)
    row: int = pc.index(times, pc.max(times)).as_py()
    return before + row
