"""Figures of earlier batches: for the checks of a batch, and to propose bounds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.contract.tables import RUN_METRICS
from windowlib.definition.instants import time_of, utc
from windowlib.delta import data_files, row_groups
from windowlib.delta.data_files import parquet_file
from windowlib.delta.statistics import overlapping
from windowlib.delta.tables import Tables
from windowlib.ledger.migration import migrated_by
from windowlib.ledger.rows import LedgerState
from windowlib.model.rerun import TimeRange
from windowlib.quality.baselines import HOUR_MS, NEEDED, WEEK_MS, WEEKS
from windowlib.quality.figures import RECENT
from windowlib.quality.firings import EARLY

LOOKED_AT = 4 * RECENT  # newest batches read per file; more than `RECENT`, because some may be reruns
OF_RERUN = "rerun_from_ms"  # figure that only reruns have
PLANNED = pa.schema(
    [("batch_id", pa.int64()), ("plan_time", pa.timestamp("us", "UTC")), ("figure", pa.string()), ("value", pa.int64())]
)
FIGURES = pa.schema([("batch_id", pa.int64()), ("figure", pa.string()), ("value", pa.int64())])
Past = dict[int, dict[str, int | None]]  # by batch


def history(tables: Tables, state: LedgerState, plan_time_ms: int) -> list[dict[str, int | None]]:
    """Figures of earlier batches that are not reruns, oldest first.

    First come the main figures of batches planned at the same hour of the week in the `WEEKS` weeks before
    `plan_time_ms`. Then come all figures of the newest `RECENT` batches. Batches before a migration are left out,
    because they had other windows.
    """
    since = migrated_by(state.commit)
    newest = {number: figures for number, figures in _newest(tables, state).items() if number > since}
    same_hour = sorted(batch for batch in _same_hour(tables, state, plan_time_ms).items() if batch[0] > since)
    ordinary = [number for number, figures in sorted(newest.items()) if OF_RERUN not in figures][-RECENT:]
    same_hour = [(number, figures) for number, figures in same_hour if OF_RERUN not in figures]
    before = [figures for number, figures in same_hour if number not in ordinary and {*NEEDED} <= figures.keys()]
    return [*before, *(newest[number] for number in ordinary)]


def whole_history(tables: Tables, state: LedgerState) -> list[dict[str, int | None]]:
    """Figures of all batches since the last migration that are not reruns, oldest first. Reads the whole table."""
    table, since = tables[RUN_METRICS.name], migrated_by(state.commit)
    batches: Past = {}
    for file in table.files(state.pinned(RUN_METRICS.name)):
        for row in data_files.rows_of(data_files.read_parquet(table.store, file, FIGURES)):
            batches.setdefault(row["batch_id"], {})[row["figure"]] = row["value"]
    return [figures for number, figures in sorted(batches.items()) if number > since and OF_RERUN not in figures]


def _newest(tables: Tables, state: LedgerState) -> Past:
    table, version = tables[RUN_METRICS.name], state.pinned(RUN_METRICS.name)
    newest_first = sorted(table.files(version), key=lambda file: -file.high["batch_id"])
    batches: Past = {}
    for file in newest_first:
        if len(batches) >= RECENT:
            break
        for row in _of_newest_batches(parquet_file(table.store, file.path, file.size_bytes)):
            batches.setdefault(row["batch_id"], {})[row["figure"]] = row["value"]
    return batches


def _of_newest_batches(file: pq.ParquetFile) -> list[dict[str, Any]]:
    """Rows of the newest `LOOKED_AT` batches in a file. A compacted file may have many more batches."""
    parts = list[pa.Table]()
    for part, left in row_groups.newest_first(file, "batch_id", FIGURES):
        parts.append(part)
        newest = sorted({number for rows in parts for number in rows["batch_id"].to_pylist()})[-LOOKED_AT:]
        if left is None or (len(newest) == LOOKED_AT and newest[0] > left):
            break
    return [row for rows in parts for row in data_files.rows_of(rows) if row["batch_id"] >= newest[0]]


def _same_hour(tables: Tables, state: LedgerState, plan_time_ms: int) -> Past:
    """Figures that baselines need, by batch. Covers batches planned at this hour in the `WEEKS` weeks before.

    Reads only row groups whose statistics allow a row of these hours, each group once.
    """
    table, spans = tables[RUN_METRICS.name], _same_hours(plan_time_ms)
    files = table.files(state.pinned(RUN_METRICS.name))
    chosen = {file.path: file for span in spans for file in overlapping(files, "plan_time", "plan_time", span)}
    batches: Past = {}
    for path, file in sorted(chosen.items()):
        for row in data_files.rows_of(_planned_in(parquet_file(table.store, path, file.size_bytes), spans)):
            figures = batches.setdefault(row["batch_id"], {"plan_time_ms": time_of(row["plan_time"])})
            figures[row["figure"]] = row["value"]
    return batches


def _same_hours(plan_time_ms: int) -> list[TimeRange]:
    hour_ms = plan_time_ms // HOUR_MS * HOUR_MS
    begins_ms = (hour_ms - week * WEEK_MS for week in range(1, WEEKS + 1))
    return [TimeRange(begin_ms, begin_ms + HOUR_MS - 1) for begin_ms in begins_ms]


def _planned_in(file: pq.ParquetFile, spans: Sequence[TimeRange]) -> pa.Table:
    """Rows of a file with the figures that baselines need, for batches planned in one of `spans`."""
    bounds = sorted((utc(span.from_ms), utc(span.to_ms + 1)) for span in spans)
    ends = [end for _, end in bounds]

    def may_hold(low: datetime, high: datetime) -> bool:
        first = bisect_right(ends, low)  # the first span that ends after `low`
        return first < len(bounds) and high >= bounds[first][0]

    rows = row_groups.holding(file, {"plan_time": may_hold}, PLANNED)
    planned = rows["plan_time"]
    of_span = (pc.and_(pc.greater_equal(planned, begin), pc.less(planned, end)) for begin, end in bounds)
    wanted = pc.is_in(rows["figure"], pa.array([*NEEDED, EARLY, OF_RERUN]))
    return rows.filter(pc.and_(wanted, reduce(pc.or_, of_span)))
