"""Count of windows that should have been merged: windows of one key, fired or in flight, that touch each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowlib.batches.checksums import Sums, checksums
from windowlib.contract.change import REMOVED
from windowlib.delta.data_files import DataFile, parquet_file
from windowlib.plans.kinds.kind import PlanKind
from windowlib.plans.step import Step
from windowlib.publication.publish import StagedChanges
from windowlib.storage.store import Store

COMPARED_ROWS = 200_000  # with more windows, a batch compares only a share of the keys; the batches take turns
START, END = "window_start_ms", "window_end_ms"


@dataclass(frozen=True, slots=True)
class KeySample:
    """Keys whose windows are compared in a batch: share number `turn` of `shares` shares."""

    keys: tuple[str, ...]
    shares: int
    turn: int

    @classmethod
    def of(cls, step: Step, rows: int) -> KeySample:
        """Sample of a batch with `rows` windows that were fired or are in flight."""
        shares = max(1, -(-rows // COMPARED_ROWS))
        return cls(tuple(step.keys), shares, step.batch_id % shares)

    def windows(self, rows: pa.Table, start_ms: pa.Array, end_ms: pa.Array, sums: Sums | None = None) -> pa.Table:
        """Keys and bounds of the rows in the sample. `sums` has the checksums of their keys, if computed already."""
        windows = pa.table([*(rows[key] for key in self.keys), start_ms, end_ms], [*self.keys, START, END])
        if self.shares == 1:
            return windows
        sums = checksums(windows.select(self.keys)) if sums is None else sums
        return windows.filter(pa.array(sums % np.uint64(self.shares) == self.turn))


def fired(kind: PlanKind, changes: Mapping[str, StagedChanges]) -> list[DataFile]:
    """Files of `result_changes` with added or changed results; empty unless the plan kind builds windows of slices."""
    once = kind.shares_slices
    feed = changes.get("result_changes", StagedChanges()).add
    return [file for file in feed if once and file.partition["change"] != REMOVED]


def in_flight(store: Store, ending: Sequence[DataFile], compared: KeySample) -> Iterator[pa.Table]:
    """Yields the windows to compare from `ending`, files of windows in flight that have an end."""
    for file in ending:
        rows = parquet_file(store, file.path, file.size_bytes).read(columns=[*compared.keys, START, END])
        yield compared.windows(rows, rows[START], rows[END])


def touching(windows: Sequence[pa.Table], keys: Sequence[str]) -> int:
    """Number of windows that touch the next window of their key. It must be 0.

    >>> rows = pa.table({"user": ["ann", "ann", "bob"], START: [0, 10, 5], END: [10, 20, 15]})
    >>> touching([rows], ["user"]), touching([rows.slice(1), rows.slice(1, 1)], ["user"])  # a window fires and stays
    (1, 0)
    """
    if not windows:
        return 0
    bounds = [START, END]
    together = pa.concat_tables(windows, promote_options="permissive")
    table = together.sort_by([(column, "ascending") for column in [*keys, *bounds]]).combine_chunks()
    if table.num_rows < 2:
        return 0
    first, second = table.slice(0, table.num_rows - 1), table.slice(1)
    touch = pc.greater_equal(first[END], second[START])
    # A window that fires and stays in flight is in both inputs.
    fired_and_kept = pc.and_(*(pc.equal(first[bound], second[bound]) for bound in bounds))
    touch = pc.and_not(touch, fired_and_kept)
    for key in keys:
        touch = pc.and_(touch, pc.equal(first[key], second[key]))
    return int(pc.sum(touch).as_py() or 0)
