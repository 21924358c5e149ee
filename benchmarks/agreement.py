"""Whether all sides of a case publish the same results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.query import Count, Query
from benchmarks.sides.side import Side, Task
from benchmarks.workload import Case
from windowlib.demo.compare import Comparison, compare_tables


class Disagreement(RuntimeError):
    """Two sides have published different results."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """A side whose results of a query are those of another, row by row; `scope` says which of them were compared."""

    query: str
    side: str
    other: str
    rows: int
    scope: str


def agree(case: Case, tasks: Mapping[Side, Task], files: Path) -> list[Agreement]:
    """The first side that publishes anything, compared with each of the others; raises `Disagreement`."""
    found = []
    for query in case.queries:
        newest_ms = _newest_ms(files / "files", query)
        # One after another: results of many windows would not all fit into memory.
        results = ((side, side.published(tasks[side], query)) for side in tasks if side.published)
        base, of_base = next(results, (None, None))
        for side, of_side in results:
            assert base is not None
            scope, final_ms = _scope(case, query, base, side, newest_ms)
            expected, seen = (_within(rows, query, case.since_ms, final_ms) for rows in (of_base, of_side))
            comparison = compare_tables(query.name, expected, seen, query.identity, query.outputs)
            if comparison.differences:
                raise Disagreement(explained(base.name, side.name, comparison))
            found.append(Agreement(query.name, side.name, base.name, len(seen), scope))
    return found


def explained(base: str, side: str, comparison: Comparison) -> str:
    """What differs, in a sentence.

    >>> explained("ours", "duckdb", Comparison("sessions", 9, 8, 1, 0, 2))
    'ours and duckdb do not publish the same results of sessions: ours has 9, duckdb 8; 1 only in ours, 0 only in \
duckdb, 2 with other values'
    """
    return (
        f"{base} and {side} do not publish the same results of {comparison.what}: {base} has {comparison.expected:,},"
        f" {side} {comparison.actual:,}; {comparison.missing:,} only in {base}, {comparison.extra:,} only in {side},"
        f" {comparison.different:,} with other values"
    )


def _scope(case: Case, query: Query, base: Side, side: Side, newest_ms: int) -> tuple[str, int | None]:
    """Which results can be compared, in words, and the greatest end of their windows."""
    waits = query.allowed_lateness_ms > 0 or case.finish
    final_ms = newest_ms - query.final_after_ms if waits and (base.final_only or side.final_only) else None
    words = "windows that can change no more" if final_ms is not None else "all results"
    return (f"{words}, those of the prepared state aside" if case.since_ms is not None else words), final_ms


def _within(results: pa.Table, query: Query, since_ms: int | None, final_ms: int | None) -> pa.Table:
    if isinstance(query.window, Count):
        return results
    if since_ms is not None:
        results = results.filter(pc.greater_equal(results["window_start"], since_ms))
    return results if final_ms is None else results.filter(pc.less_equal(results["window_end"], final_ms))


def _newest_ms(files: Path, query: Query) -> int:
    times = [pq.read_table(file, columns=[query.columns.time])[query.columns.time] for file in files.glob("*.parquet")]
    newest_ms: int = max(pc.max(time).cast(pa.int64()).as_py() // 1000 for time in times)
    return newest_ms
