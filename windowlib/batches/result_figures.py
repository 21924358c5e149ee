"""Figures of the rows of `results` that a batch writes. Arrow reads all rows of the written files, once.

A key has one result per window, or one per firing if each firing is a result of its own. The batch checks this in the
partitions that it wrote; `windowlib verify` compares the other partitions. Every row that the batch made must have the
bounds of a window, must have fired when it was due, and must have the right timing.
The tests of the definition judge these rows too, and their distinct values are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowlib.batches.checksums import Sums, checksums, with_dictionaries
from windowlib.batches.inputs import Inputs
from windowlib.batches.result_columns.column_counts import ColumnCounts
from windowlib.batches.result_columns.null_columns import gone_null
from windowlib.batches.touching import KeySample
from windowlib.contract.change import REMOVED
from windowlib.definition.instants import time_of
from windowlib.definition.toml.column_tests import ROW_COUNT
from windowlib.delta.data_files import DataFile, parquet_file, values_of, without
from windowlib.model.geometry import geometry_of
from windowlib.plans.step import Step
from windowlib.publication.publish import StagedChanges
from windowlib.storage.store import Store

ROWS_AT_ONCE = 1 << 20
OWN = ("window_start", "window_end", "last_event_time", "timing", "batch_id")
OF_OWN = ("results_off_window", "results_early", "results_after_cleanup", "results_mistimed")
ROWS = "rows"
Rows: TypeAlias = pa.Table


@dataclass(frozen=True, slots=True)
class ResultRows:
    """Figures of the rows of `results` in the files that a batch writes.

    own:     number of rows that the batch itself made
    windows: keys and bounds of the windows of these rows that are in the compared sample
    """

    figures: Mapping[str, int | None]
    own: int
    windows: Sequence[Rows]


def result_row_figures(
    inputs: Inputs, step: Step, changes: Mapping[str, StagedChanges], compared: KeySample
) -> ResultRows:
    """Figures of the results of a batch or a rerun. Each written file is read once."""
    change, definition = changes.get("results", StagedChanges()), inputs.definition
    store, identity = inputs.tables.store("results"), identity_of(step)
    days = {file.partition["window_day"] for file in change.add}
    kept = without(inputs.tables.files_of_days("results", days), change.remove) if days else []
    before = partial(inputs.tables.files, "results")
    others = [name for name in identity if name not in compared.keys]
    sums, own, windows = dict[str, list[Sums]](), Counter[str](), list[Rows]()
    counts = ColumnCounts.of(definition, step, change.add)
    for file in change.add:
        constant, names = _constants(file), dict.fromkeys([*identity, *OWN, *counts.columns])
        for rows in rows_of(store, file, [name for name in names if name not in constant]):
            coded_keys = with_dictionaries(rows.select(list(compared.keys)))
            keys = checksums(coded_keys)
            sums.setdefault(file.path, []).append(checksums(rows.select(others), keys))
            own_rows = _own(rows, coded_keys, constant, step, keys)
            own += own_row_figures(inputs, step, own_rows)
            counts.add(own_rows.rows, own_rows.coded_keys)
            if step.assigner.merges:
                windows.append(compared.windows(own_rows.rows, own_rows.start, own_rows.end, own_rows.keys))
    must_be_zero = {name: own[name] for name in OF_OWN}
    figures = {
        "results_gone_null": len(gone_null(definition.outputs, files_written(changes), before, definition.added)),
        "results_repeated": sum(repeated(store, change.add, kept, identity, sums)),
        **must_be_zero,
        ROW_COUNT: own[ROWS],
        **counts.figures(),
    }
    return ResultRows(figures, own[ROWS], windows)


def _constants(file: DataFile) -> dict[str, Any]:
    """Columns with one value in all rows of a file, by its footer. Such columns need not be read."""
    types = {"batch_id": pa.int64(), "timing": pa.string()}
    return {
        name: pa.scalar(file.low[name], type_)
        for name, type_ in types.items()
        if file.nulls.get(name) == 0 and name in file.low and file.low[name] == file.high.get(name)
    }


def identity_of(step: Step) -> list[str]:
    """Columns that identify a row of `results`."""
    firing = [] if step.specification.updates_results else ["firing"]
    return [*step.keys, "window_start", "window_end", *firing, *([] if step.outputs is None else ["result_number"])]


def files_written(changes: Mapping[str, StagedChanges]) -> list[DataFile]:
    """Files of `result_changes` that hold added and changed rows, without the files of removed rows."""
    files = changes.get("result_changes", StagedChanges()).add
    return [file for file in files if file.partition["change"] != REMOVED]


# -- one row for each identity ------------------------------------------------------------------------------------


def repeated(
    store: Store,
    added: Sequence[DataFile],
    kept: Sequence[DataFile],
    identity: Sequence[str],
    sums: Mapping[str, Sequence[Sums]] = MappingProxyType({}),
) -> Iterator[int]:
    """Yields the number of surplus rows for each partition with added rows: rows with the identity of another row.

    sums: checksums of the rows of files that were read already, by path
    """
    for day in {file.partition["window_day"] for file in added}:
        new = [file for file in added if file.partition["window_day"] == day]
        same_day = [file for file in kept if str(file.partition["window_day"]) == str(day)]
        files = [*new, *(file for file in same_day if any(_may_share(file, new_file) for new_file in new))]
        unread = [file for file in files if file.path not in sums]
        file_sums = [part for file in files for part in sums.get(file.path, ())]
        file_sums += [checksums(rows) for rows in _all_rows(store, unread, identity)]
        yield surplus(partial(_all_rows, store, files, identity), file_sums)


def _all_rows(store: Store, files: Sequence[DataFile], columns: Sequence[str]) -> Iterator[Rows]:
    return (rows for file in files for rows in rows_of(store, file, columns))


def _may_share(file: DataFile, other: DataFile) -> bool:
    """Tests if both files may hold a window with the same bounds.

    Without late windows, old and new files cannot: windows of a batch end after the windows of earlier batches.
    """
    for bound in ("window_start", "window_end"):
        span, others = _span(file, bound), _span(other, bound)
        if span and others and (span[0] > others[1] or others[0] > span[1]):
            return False
    return True


def _span(file: DataFile, column: str) -> tuple[int, int] | None:
    """Least and greatest time in a column of a file, in ms; None if its statistics do not have them."""
    low, high = file.low.get(column), file.high.get(column)
    return None if low is None or high is None else (time_of(low), time_of(high))


def surplus(rows: Callable[[], Iterator[Rows]], sums_of_rows: Sequence[Sums] | None = None) -> int:
    """Number of rows that are equal to an earlier row. `rows` yields all rows in parts.

    sums_of_rows: checksums of all rows, if they are computed already

    Memory holds one checksum per row. The few rows with equal checksums are read again and compared.

    >>> surplus(lambda: iter([pa.table({"user": ["ann", "bob", None]}), pa.table({"user": ["ann", "cleo"]})]))
    1
    """
    sums = np.concatenate([np.zeros(0, np.uint64), *(map(checksums, rows()) if sums_of_rows is None else sums_of_rows)])
    sums.sort()
    twice = np.unique(sums[1:][sums[1:] == sums[:-1]])
    if not len(twice):
        return 0
    suspect = [part.filter(pa.array(np.isin(checksums(part), twice))) for part in rows()]
    together = _plain(pa.concat_tables(suspect, promote_options="permissive"))
    return int(together.num_rows - together.group_by(together.column_names).aggregate([]).num_rows)


def _plain(rows: Rows) -> Rows:
    """Replaces nested values by strings, because Arrow cannot group nested values."""
    for index, column in enumerate(rows.schema):
        if pa.types.is_nested(column.type):
            rows = rows.set_column(
                index, column.name, pa.array([repr(value) for value in values_of(rows[column.name])])
            )
    return rows


def rows_of(store: Store, file: DataFile, columns: Sequence[str]) -> Iterator[Rows]:
    """Rows of a file, in parts of at most `ROWS_AT_ONCE`."""
    for batch in parquet_file(store, file.path, file.size_bytes).iter_batches(ROWS_AT_ONCE, columns=list(columns)):
        yield pa.Table.from_batches([batch]).select(list(columns))


def in_ms(column: Any) -> Any:
    """TIMESTAMPs as milliseconds since the epoch, floored."""
    if column.type == pa.timestamp("us", tz="UTC") and not column.null_count:  # numpy divides faster than Arrow
        return pa.array(column.cast(pa.int64()).to_numpy() // 1000)
    return pc.cast(pc.cast(column, pa.timestamp("ms", tz="UTC"), safe=False), pa.int64())


# -- what the batch made ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Rows that the batch made: bounds and newest event in ms, timing (a scalar if it is constant), key checksums.

    coded_keys: key columns whose strings have dictionaries
    """

    rows: Rows
    coded_keys: Rows
    start: Any
    end: Any
    newest: Any
    timing: Any
    keys: Sums


def _own(rows: Rows, coded_keys: Rows, constant: Mapping[str, Any], step: Step, keys: Sums) -> OwnRows:
    """Rows of a file that the batch itself made. Columns in `constant` were not read."""
    batch = constant.get("batch_id")
    mine = pc.equal(rows["batch_id"] if batch is None else batch, step.batch_id)
    if isinstance(mine, pa.Scalar):
        if not mine.as_py():
            rows, coded_keys, keys = rows.slice(0, 0), coded_keys.slice(0, 0), keys[:0]
    elif not pc.all(mine).as_py():
        rows, coded_keys = rows.filter(mine), coded_keys.filter(mine)
        keys = keys[mine.combine_chunks().to_numpy(zero_copy_only=False)]
    start, end, newest = (in_ms(rows[name]) for name in OWN[:3])
    timing = constant.get("timing")
    return OwnRows(rows, coded_keys, start, end, newest, rows["timing"] if timing is None else timing, keys)


def own_row_figures(inputs: Inputs, step: Step, own: OwnRows) -> dict[str, int]:
    """Numbers of own rows: all, off any window, fired too early, fired too late, and with a wrong timing."""
    figures, last_ms = {ROWS: own.rows.num_rows}, pc.subtract(own.end, 1)
    figures["results_off_window"] = _count(off_window(inputs, step, own.start, own.end, own.newest))
    if step.specification.fires_at_the_end:
        figures["results_early"] = _count(pc.greater(last_ms, step.watermark_out_ms))
    if inputs.kind.shares_slices and inputs.plan.rerun is None:
        passed = pc.less_equal(last_ms, step.watermark_in_ms)
        figures["results_after_cleanup"] = _count(pc.less_equal(last_ms, step.late_in_ms))
        figures["results_mistimed"] = _count(pc.not_equal(passed, pc.equal(own.timing, "late")))
    return figures


def off_window(inputs: Inputs, step: Step, start: Any, end: Any, newest: Any) -> Any:
    """Flags rows whose bounds fit no window or exclude the row's newest event. Null for the global window."""
    wrong = pc.less_equal(end, start)
    if inputs.kind.shares_slices:
        times = (column.to_numpy(zero_copy_only=False) for column in (start, end, newest))
        wrong = pc.or_kleene(wrong, pa.array(~geometry_of(step.assigner).are_bounds(*times)))
    return wrong


def _count(flags: Any) -> int:
    return int(pc.sum(flags).as_py() or 0)
