"""Functions over Arrow batches that Sail calls in this process: sorting, numbering of islands, counting."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windowlib.plans.dialect import OverBatches

BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Sorted:
    """Sorts the rows of a task in memory by the columns `by`, and passes them to `then`."""

    by: tuple[str, ...]
    then: OverBatches

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not (filled := [batch for batch in batches if batch.num_rows]):
            return
        rows = pa.Table.from_batches(filled)
        in_order = rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in self.by]))
        yield from self.then(in_order.combine_chunks().to_batches(max_chunksize=BATCH_ROWS))


@dataclass(frozen=True, slots=True)
class Islands:
    """Numbers the islands (runs of overlapping or touching intervals) of intervals sorted by key and start."""

    keys: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        previous: pa.RecordBatch | None = None  # last row so far
        reach, island = 0, 0  # of the last row: the greatest end of its key so far, and its island's number
        for batch in batches:
            if not batch.num_rows:
                continue
            starts, ends = (batch.column(f"window_{bound}_ms").to_numpy() for bound in ("start", "end"))
            new_key = self._new_keys(batch, previous)
            reached = _running_max(ends, new_key, reach)
            before = np.concatenate(([reach], reached[:-1]))
            islands = island + np.cumsum(new_key | (starts > before))
            previous, reach, island = batch.slice(batch.num_rows - 1), int(reached[-1]), int(islands[-1])
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, pa.array(islands)], schema=batch.schema.append(pa.field("_island", pa.int64()))
            )

    def _new_keys(self, batch: pa.RecordBatch, previous: pa.RecordBatch | None) -> np.ndarray:
        """Boolean array with an entry per row: true if the row's key differs from the key of the row before."""
        new = np.zeros(batch.num_rows, dtype=bool)
        new[0] = previous is None
        for key in self.keys:
            column = batch.column(key)
            new[1:] |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
            if previous is not None:
                new[0] |= column[0] != previous.column(key)[0]
        return new


def _running_max(ends: np.ndarray, new_key: np.ndarray, reach: int) -> np.ndarray:
    """Greatest end of each row's key, up to the row.

    reach: the greatest end of the first row's key in earlier batches

    >>> _running_max(np.array([5, 3, 9, 2, 4]), np.array([False, False, False, True, False]), 4).tolist()
    [5, 5, 9, 2, 4]
    >>> _running_max(np.array([1, 2]), np.array([False, False]), 7).tolist()
    [7, 7]
    """
    own = ends if new_key[0] else np.concatenate(([max(int(ends[0]), reach)], ends[1:]))
    # Ranks replace the ends, so that each key's values exceed the values of earlier keys and still fit into 64 bits.
    order = np.argsort(own, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(own))
    base = np.cumsum(new_key) * len(own)
    greatest: np.ndarray = own[order[np.maximum.accumulate(base + rank) - base]]
    return greatest


_sums: dict[int, dict[str, int]] = {}  # by `PassingCounters._number`; `_Pass` adds to the sums in this process
_numbers = itertools.count()
_adding = Lock()


class PassingCounters:
    """Counters for Sail: a function over Arrow batches adds up columns while the rows pass through it."""

    def __init__(self) -> None:
        self._number = next(_numbers)

    def over(self, rows: DataFrame, sums: Mapping[str, str], *, without: Collection[str] = ()) -> DataFrame:
        """See `Counters`."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        _sums[self._number] = dict.fromkeys(sums, 0)
        summed = [F.expr(f"cast({sql} AS bigint)").alias(f"_sum_{name}") for name, sql in sums.items()]
        wider = rows.select("*", *summed)
        # Not `rows.schema`, which costs another request to Sail.
        own = StructType([field for field in [*wider.schema][: -len(sums)] if field.name not in without])
        return wider.mapInArrow(_Pass(self._number, tuple(sums), tuple(own.names)), own)

    def values(self) -> dict[str, int]:
        """See `Counters`."""
        return _sums.pop(self._number)


@dataclass(frozen=True, slots=True)
class _Pass:
    """Adds up the last columns of each batch, and passes on only the columns in `kept`."""

    number: int
    names: tuple[str, ...]
    kept: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            first = batch.num_columns - len(self.names)
            values = [pc.sum(batch.column(first + index)).as_py() or 0 for index in range(len(self.names))]
            with _adding:
                totals = _sums[self.number]
                for name, value in zip(self.names, values, strict=True):
                    totals[name] += value
            yield batch.select(self.kept)
