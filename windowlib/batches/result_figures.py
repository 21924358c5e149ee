"""Figures of the rows of `results` that a batch writes: each must be 0. All rows are looked at, by Arrow, as they lie.

A key has one result per window (per firing, where each is a result of its own) in all partitions that the batch wrote;
earlier results elsewhere are compared by `windowlib verify`. Whatever the batch itself made has the bounds of a window,
fired when it was due, and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.batches.checksums import Sums, checksums
from windowlib.batches.inputs import Inputs
from windowlib.batches.touching import KeySample
from windowlib.contract.change import REMOVED
from windowlib.contract.result_tables import FILLED
from windowlib.definition.instants import time_of
from windowlib.delta.data_files import DataFile, values_of, without
from windowlib.model.assigners import Session, Sliding, Tumbling
from windowlib.plans.step import Step
from windowlib.publication.publish import StagedChanges

ROWS_AT_ONCE = 1 << 20
ENOUGH_ROWS, MOST, HARDLY_EVER = 20, 0.5, 0.1
OWN = ("window_start", "window_end", "last_event_time", "timing", "batch_id")
OF_OWN = ("results_off_window", "results_early", "results_after_cleanup", "results_mistimed")
ROWS = "rows"
Rows: TypeAlias = pa.Table


@dataclass(frozen=True, slots=True)
class ResultRows:
    """What was seen of the rows of `results`: figures by name, how many of them the batch itself made, and of those
    the keys and bounds of the windows that are to be compared."""

    figures: Mapping[str, int | None]
    own: int
    windows: Sequence[Rows]


def of_result_rows(inputs: Inputs, step: Step, changes: Mapping[str, StagedChanges], compared: KeySample) -> ResultRows:
    """Those of a batch or of a rerun. Each file that it wrote is read once."""
    change, definition = changes.get("results", StagedChanges()), inputs.definition
    folder, identity = inputs.tables.folder("results"), identity_of(step)
    days = {file.partition["window_day"] for file in change.add}
    kept = without(inputs.tables.files_of_days("results", days), change.remove) if days else []
    before = partial(inputs.tables.files, "results")
    others = [name for name in identity if name not in compared.keys]
    sums, own, windows = dict[str, list[Sums]](), Counter[str](), list[Rows]()
    for file in change.add:
        constant, names = _constants(file), dict.fromkeys([*identity, *OWN])
        for rows in rows_of(folder, file, [name for name in names if name not in constant]):
            keys = checksums(rows.select(list(compared.keys)))
            sums.setdefault(file.path, []).append(checksums(rows.select(others), keys))
            made = _own(rows, constant, step, keys)
            own += of_own_rows(inputs, step, made)
            if step.assigner.merges:
                windows.append(compared.windows(made.rows, made.start, made.end, made.keys))
    must_be_zero = {name: own[name] for name in OF_OWN}
    figures = {
        "results_gone_null": len(gone_null(definition.outputs, made_by(changes), before, definition.added)),
        "results_repeated": sum(repeated(folder, change.add, kept, identity, sums)),
        **must_be_zero,
    }
    return ResultRows(figures, own[ROWS], windows)


def _constants(file: DataFile) -> dict[str, Any]:
    """Columns that have the same value in all rows of a file, as its footer says: they need not be read."""
    seen = {"batch_id": pa.int64(), "timing": pa.string()}
    return {
        name: pa.scalar(file.low[name], kind)
        for name, kind in seen.items()
        if file.nulls.get(name) == 0 and name in file.low and file.low[name] == file.high.get(name)
    }


def identity_of(step: Step) -> list[str]:
    """The columns that name a row of `results`."""
    firing = [] if step.specification.updates_results else ["firing"]
    return [*step.keys, "window_start", "window_end", *firing, *([] if step.outputs is None else ["result_number"])]


# -- aggregates without a value ---------------------------------------------------------------------------------------


def made_by(changes: Mapping[str, StagedChanges]) -> list[DataFile]:
    """Files of the feed with the rows that a batch adds to `results` or changes there, not those that it removes."""
    made = changes.get("result_changes", StagedChanges()).add
    return [file for file in made if file.partition["change"] != REMOVED]


def gone_null(
    columns: Sequence[str],
    made: Sequence[DataFile],
    before: Callable[[], Sequence[DataFile]],
    added: Collection[str] = (),
) -> list[str]:
    """The columns that are null in most rows just made, and hardly ever were in `results`; by statistics of files.

    Our decision: most is half, hardly ever a tenth, and fewer than `ENOUGH_ROWS` rows on either side say nothing. The
    files of all results, which `before` gives, are looked at only for a column that most new rows lack. Columns that
    were `added` are null where they are not filled: only files count of which all rows have the same ones.

    >>> one = lambda rows, nulls: DataFile("f", 9, rows, nulls={"mean": nulls})
    >>> [gone_null(["mean"], [one(50, 40)], lambda: [one(900, nulls)]) for nulls in (9, 99)]
    [['mean'], []]
    """

    def share(name: str, files: Sequence[DataFile]) -> float | None:
        return _null_share(name, [one for one in files if _is_filled(one, name)] if name in added else files)

    lacking = [name for name in columns if (found := share(name, made)) is not None and found >= MOST]
    if not lacking:
        return []
    all_files = before()
    return [name for name in lacking if (found := share(name, all_files)) is not None and found <= HARDLY_EVER]


def _is_filled(file: DataFile, name: str) -> bool:
    """Whether all rows of a file have an added column, by its statistics."""
    names, last = file.low.get(FILLED), file.high.get(FILLED)
    return file.nulls.get(FILLED) == 0 and names == last and name in str(names).split(", ")


def _null_share(column: str, files: Sequence[DataFile]) -> float | None:
    known = [file for file in files if file.nulls.get(column) is not None]
    rows = sum(file.rows for file in known)
    return sum(file.nulls[column] for file in known) / rows if rows >= ENOUGH_ROWS else None


# -- one row for each name ----------------------------------------------------------------------------------------


def repeated(
    folder: Path,
    added: Sequence[DataFile],
    kept: Sequence[DataFile],
    identity: Sequence[str],
    sums: Mapping[str, Sequence[Sums]] = MappingProxyType({}),
) -> Iterator[int]:
    """How many rows are surplus, by partition: they have the name of another one, and one of both was added.

    `sums` are the checksums of the rows of files that have been read, by path.
    """
    for day in {file.partition["window_day"] for file in added}:
        new = [file for file in added if file.partition["window_day"] == day]
        same_day = [file for file in kept if str(file.partition["window_day"]) == str(day)]
        files = [*new, *(file for file in same_day if any(_may_share(file, one) for one in new))]
        unread = [file for file in files if file.path not in sums]
        known = [one for file in files for one in sums.get(file.path, ())]
        known += [checksums(rows) for rows in _all_rows(folder, unread, identity)]
        yield surplus(partial(_all_rows, folder, files, identity), known)


def _all_rows(folder: Path, files: Sequence[DataFile], columns: Sequence[str]) -> Iterator[Rows]:
    return (rows for file in files for rows in rows_of(folder, file, columns))


def _may_share(one: DataFile, other: DataFile) -> bool:
    """Whether a window of one file may begin and end as one of the other does: windows of a batch end after earlier
    ones, where none of them is late."""
    for bound in ("window_start", "window_end"):
        span, others = _span(one, bound), _span(other, bound)
        if span and others and (span[0] > others[1] or others[0] > span[1]):
            return False
    return True


def _span(file: DataFile, column: str) -> tuple[int, int] | None:
    """The least and the greatest time of a column of a file, in ms; None where its statistics do not say it."""
    low, high = file.low.get(column), file.high.get(column)
    return None if low is None or high is None else (time_of(low), time_of(high))


def surplus(rows: Callable[[], Iterator[Rows]], known: Sequence[Sums] | None = None) -> int:
    """How many rows are equal to another one and come after it; `rows` gives them all, part by part.

    One checksum of each row is held; `known` are those of all of them. Rows with equal ones, which are few, are read
    again and compared.

    >>> surplus(lambda: iter([pa.table({"user": ["ann", "bob", None]}), pa.table({"user": ["ann", "cleo"]})]))
    1
    """
    sums = np.concatenate([np.zeros(0, np.uint64), *(map(checksums, rows()) if known is None else known)])
    sums.sort()
    twice = np.unique(sums[1:][sums[1:] == sums[:-1]])
    if not len(twice):
        return 0
    suspect = [part.filter(pa.array(np.isin(checksums(part), twice))) for part in rows()]
    together = _plain(pa.concat_tables(suspect, promote_options="permissive"))
    return int(together.num_rows - together.group_by(together.column_names).aggregate([]).num_rows)


def _plain(rows: Rows) -> Rows:
    """The same with text for values that hold others, which Arrow does not group."""
    for index, column in enumerate(rows.schema):
        if pa.types.is_nested(column.type):
            rows = rows.set_column(index, column.name, pa.array([repr(one) for one in values_of(rows[column.name])]))
    return rows


def rows_of(folder: Path, file: DataFile, columns: Sequence[str]) -> Iterator[Rows]:
    """The rows of a file, some at a time."""
    for batch in pq.ParquetFile(folder / file.path).iter_batches(ROWS_AT_ONCE, columns=list(columns)):
        yield pa.Table.from_batches([batch]).select(list(columns))


def in_ms(column: Any) -> Any:
    """TIMESTAMPs as milliseconds since the epoch, floored."""
    if column.type == pa.timestamp("us", tz="UTC") and not column.null_count:  # Arrow divides more slowly
        return pa.array(column.cast(pa.int64()).to_numpy() // 1000)
    return pc.cast(pc.cast(column, pa.timestamp("ms", tz="UTC"), safe=False), pa.int64())


# -- what the batch made ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Rows that the batch made, with their bounds and newest event in ms, and the checksums of their keys.

    `timing` is a scalar where all of them have the same.
    """

    rows: Rows
    start: Any
    end: Any
    newest: Any
    timing: Any
    keys: Sums


def _own(rows: Rows, constant: Mapping[str, Any], step: Step, keys: Sums) -> OwnRows:
    """Those among the rows of a file, whose columns that are `constant` were not read."""
    batch = constant.get("batch_id")
    mine = pc.equal(rows["batch_id"] if batch is None else batch, step.batch_id)
    if isinstance(mine, pa.Scalar):
        rows, keys = (rows, keys) if mine.as_py() else (rows.slice(0, 0), keys[:0])
    elif not pc.all(mine).as_py():
        rows, keys = rows.filter(mine), keys[mine.combine_chunks().to_numpy(zero_copy_only=False)]
    start, end, newest = (in_ms(rows[name]) for name in OWN[:3])
    timing = constant.get("timing")
    return OwnRows(rows, start, end, newest, rows["timing"] if timing is None else timing, keys)


def of_own_rows(inputs: Inputs, step: Step, own: OwnRows) -> dict[str, int]:
    """How many there are, fit no window, fired too early, too late, or under a wrong name."""
    found, last = {ROWS: own.rows.num_rows}, pc.subtract(own.end, 1)
    found["results_off_window"] = _count(off_window(inputs, step, own.start, own.end, own.newest))
    if step.specification.fires_at_the_end:
        found["results_early"] = _count(pc.greater(last, step.watermark_out_ms))
    if inputs.kind.shares_slices and inputs.plan.rerun is None:
        passed = pc.less_equal(last, step.watermark_in_ms)
        found["results_after_cleanup"] = _count(pc.less_equal(last, step.late_in_ms))
        found["results_mistimed"] = _count(pc.not_equal(passed, pc.equal(own.timing, "late")))
    return found


def off_window(inputs: Inputs, step: Step, start: Any, end: Any, newest: Any) -> Any:
    """Which rows have bounds that no window has, or that do not hold their newest event; null for the global window."""
    wrong = [pc.less_equal(end, start)]
    if inputs.kind.shares_slices:
        wrong += [pc.less(newest, start), pc.greater_equal(newest, end)]
        match step.assigner:
            case Tumbling() | Sliding() as grid:
                shifted = pc.subtract(start, grid.offset_ms)
                slide_ms = getattr(grid, "slide_ms", grid.size_ms)
                whole = pc.multiply(pc.divide(shifted, slide_ms), slide_ms)
                wrong += [pc.not_equal(pc.subtract(end, start), grid.size_ms), pc.not_equal(shifted, whole)]
            case Session(gap_ms=gap_ms):
                wrong += [pc.not_equal(pc.subtract(end, newest), gap_ms)]
    return reduce(pc.or_kleene, wrong)


def _count(flags: Any) -> int:
    return int(pc.sum(flags).as_py() or 0)
