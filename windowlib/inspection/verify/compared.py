"""Comparison of two sets of windows, row by row and column by column, in one pass.

Rows of both sides are grouped by key and bounds, so duplicate rows of a table are found too. Computed doubles are equal
if they differ by at most `windowlib.plans.reruns.NEARLY` times the greater double. A column that was added later is
null in rows that lack the column. Each row lists the added columns that it has. A row must have an added column if the
batches of all its events fill the column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windowlib.batches.inputs import Inputs
from windowlib.contract.result_tables import FILLED
from windowlib.engines.collect import collected
from windowlib.inspection.verify.report import DIFFERENT, MISSING, UNEXPECTED, VerifyFinding
from windowlib.plans.dialect import Dialect
from windowlib.plans.functions import F, quoted
from windowlib.plans.reruns import equal
from windowlib.plans.step import Step

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LISTED = 1_000  # differing rows in the list; all are counted


@dataclass(frozen=True, slots=True)
class TableComparison:
    """Comparison of a table: number of compared rows, number of differing rows, and the first differences."""

    rows: int = 0
    differing: int = 0
    differences: Sequence[VerifyFinding] = ()


@dataclass(frozen=True, slots=True)
class TableShape:
    """Columns of a table in a comparison: `identity` (key columns and bounds) and `values`.

    `exact` names the columns whose doubles must be exactly equal. `added` maps columns that old rows lack to the first
    batch whose events fill the column. Batch 0 means that any row may lack the column.
    """

    table: str
    keys: Sequence[str]
    bounds: Sequence[str]
    values: Sequence[str]
    exact: frozenset[str] = frozenset()
    added: Mapping[str, int] = field(default_factory=dict)

    @property
    def identity(self) -> list[str]:
        return [*self.keys, *self.bounds]


def compare(
    inputs: Inputs, dialect: Dialect, shape: TableShape, expected: DataFrame | None, actual: DataFrame | None
) -> TableComparison:
    """Compares the expected rows with the rows of the table. None stands for no rows."""
    if expected is None and actual is None:
        return TableComparison()
    either = actual if actual is not None else expected
    assert either is not None
    types = {field.name: field.dataType for field in either.schema}
    sides = [(expected, "_expected", 1, 0), (actual, "_found", 0, 1)]
    parts = [_side(rows, shape, types, *counts) for rows, _, *counts in sides if rows is not None]
    held = [
        F.first(F.when(F.col(f"_{side}_rows") > 0, F.struct(*map(quoted, shape.values))), ignorenulls=True).alias(
            f"_{side}"
        )
        for side in ("expected", "found")
    ]
    counts = [F.sum(f"_{side}_rows").alias(f"_{side}_rows") for side in ("expected", "found")]
    both = dialect.union(parts).groupBy(*map(quoted, shape.identity)).agg(*held, *counts)
    changed = [_differs(shape, name, types[name]).alias(f"_differs_{n}") for n, name in enumerate(shape.values)]
    judged = both.select("*", *changed)
    some = " OR ".join(["_expected_rows <> _found_rows", *(f"_differs_{n}" for n in range(len(shape.values)))])
    counters = dialect.counters()
    sums = {"rows": "greatest(_expected_rows, _found_rows)", "differing": f"if({some}, 1, 0)"}
    name = inputs.staged.unused("differences")
    inputs.staged.write(counters.over(judged, sums).where(some), name)
    counted = counters.values()
    if not counted["differing"]:
        return TableComparison(counted["rows"])
    rows = inputs.spark.read.schema(judged.schema).parquet(inputs.staged.url(name))
    first = collected(rows.orderBy(*map(quoted, shape.identity)).limit(LISTED))
    differences = [difference for row in first for difference in _differences(row, shape)]
    return TableComparison(counted["rows"], counted["differing"], differences)


def _differs(shape: TableShape, name: str, kind: Any) -> Column:
    """Tests if the two sides differ in a column."""
    actual = F.col(f"_found.{quoted(name)}")
    other = ~equal(F.col(f"_expected.{quoted(name)}"), actual, kind, exact=name in shape.exact)
    if name == FILLED and shape.added:
        return F.lit(False)  # compared as part of the columns that it lists
    if name not in shape.added:
        return other
    lacks = actual.isNotNull() | (_has("_expected", name) if shape.added[name] else F.lit(False))
    return F.when(_has("_found", name), other).otherwise(lacks)


def _has(side: str, name: str) -> Column:
    """Column that tests if a row lists this added column as filled."""
    names = F.concat(F.lit(", "), F.col(f"{side}.{FILLED}"), F.lit(", "))
    return F.coalesce(names.contains(f", {name}, "), F.lit(False))


def _side(rows: DataFrame, shape: TableShape, types: Mapping[str, Any], expected: int, actual: int) -> DataFrame:
    columns = [F.col(quoted(name)).cast(types[name]).alias(name) for name in (*shape.identity, *shape.values)]
    marks = F.lit(expected).cast("long").alias("_expected_rows"), F.lit(actual).cast("long").alias("_found_rows")
    return rows.select(*columns, *marks)


def _differences(row: Mapping[str, Any], shape: TableShape) -> Iterator[VerifyFinding]:
    key, window = {k: row[k] for k in shape.keys}, {b: row[b] for b in shape.bounds}
    expected, actual = row["_expected_rows"], row["_found_rows"]
    if not expected:
        yield VerifyFinding(UNEXPECTED, shape.table, key, window, None, None, row["_found"])
    elif not actual:
        yield VerifyFinding(MISSING, shape.table, key, window, None, row["_expected"], None)
    else:
        if actual != expected:
            yield VerifyFinding(UNEXPECTED, shape.table, key, window, "rows of this window", expected, actual)
        for n, name in enumerate(shape.values):
            if row[f"_differs_{n}"]:
                yield VerifyFinding(
                    DIFFERENT, shape.table, key, window, name, row["_expected"][name], row["_found"][name]
                )


def compare_late(inputs: Inputs, step: Step, late: DataFrame | None) -> TableComparison:
    """Compares the expected and the actual number of events in `late_events` and in no window, for each window."""
    if late is None:
        return TableComparison()
    counters, name = step.dialect.counters(), inputs.staged.unused("late")
    sums = {"rows": "greatest(should_be, is)", "differing": "abs(should_be - is)"}
    inputs.staged.write(counters.over(late, sums).where("should_be <> is"), name)
    counted = counters.values()
    if not counted["differing"]:
        return TableComparison(counted["rows"])
    rows = inputs.spark.read.schema(late.schema).parquet(inputs.staged.url(name))
    bounds = ["window_start_ms", "window_end_ms", "batch_id"]
    shape = TableShape("late_events", step.keys, bounds, ())
    differences = [
        VerifyFinding(
            MISSING if row["should_be"] > row["is"] else UNEXPECTED,
            "late_events",
            {key: row[key] for key in step.keys},
            {name: row[name] for name in bounds},
            "events",
            row["should_be"],
            row["is"],
        )
        for row in collected(rows.orderBy(*map(quoted, shape.identity)).limit(LISTED))
    ]
    return TableComparison(counted["rows"], counted["differing"], differences)
