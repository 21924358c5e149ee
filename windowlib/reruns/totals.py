"""Totals of a rerun's windows before and after: the number of results, and the sums of aggregates, also by day.

An aggregate has a total if its values may be summed over windows (`AggregateSet.additive`). Counts and sums have a
total. Averages, extremes and distinct counts do not. A result belongs to the UTC day in which its window ends.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

from windowlib.contract.change import ADDED, REMOVED
from windowlib.definition.instants import utc
from windowlib.engines.collect import collected
from windowlib.plans import names
from windowlib.plans.functions import F, quoted
from windowlib.plans.partitions import RESULT_DAY
from windowlib.plans.reruns import NEARLY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Number = int | float | Decimal
WHOLE = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")
DIGITS = 38  # digits of the widest decimal
EXACT = Context(prec=4 * DIGITS)


@dataclass(frozen=True, slots=True)
class Total:
    """A total before and after a rerun. A total is None if a value is not finite, or if the total is too large.

    Decimals are strings. `percent` is the difference in percent of `before`; None if unknown, or if `before` is 0.
    """

    before: Any
    after: Any
    difference: Any
    percent: float | None

    @staticmethod
    def of(before: Number | None, difference: Number | None, after: Number | None) -> Total:
        """Creates a total from three numbers.

        >>> Total.of(8, 2, 10)
        Total(before=8, after=10, difference=2, percent=25.0)
        >>> Total.of(None, None, Decimal("1.50"))
        Total(before=None, after='1.50', difference=None, percent=None)
        """
        share = None if before is None or difference is None or not before else float(difference) / abs(float(before))
        percent = None if share is None else round(100 * share, 4)
        kept = [str(value) if isinstance(value, Decimal) else value for value in (before, after, difference)]
        return Total(kept[0], kept[1], kept[2], percent)


@dataclass(frozen=True, slots=True)
class DayTotals:
    """Differences of one day: the number of differing results, and the totals."""

    day: str  # UTC, as 2026-03-02
    differing: int
    results: Total
    totals: dict[str, Total]


@dataclass(frozen=True, slots=True)
class RangeTotals:
    """Totals of all windows of a rerun, and of each day in which results differ."""

    results: Total
    totals: dict[str, Total]
    days: list[DayTotals]


def with_totals(schema: StructType, additive: Sequence[str]) -> dict[str, str]:
    """Columns that have a total, and their types.

    Leaves out additive columns that are not numbers, for example intervals.
    """
    types = {field.name: field.dataType.simpleString() for field in schema}
    return {name: types[name] for name in additive if types[name].partition("(")[0] in (*WHOLE, *FLOATS, "decimal")}


def range_totals(old: DataFrame | None, differing: DataFrame, columns: Mapping[str, str]) -> RangeTotals:
    """Totals of the range, in one Spark job.

    old:       the columns of `results`              current results of the rerun's windows; None if there are none
    differing: see `plans.reruns.difference`         their difference
    columns:   name -> type, see `with_totals`
    """
    rows = differing.selectExpr(*_of_differing(columns))
    if old is not None:
        rows = old.selectExpr(*_of_published(columns)).unionAll(rows)
    sums = [f"{sql} AS {name}" for number, kind in enumerate(columns.values()) for name, sql in _sums(number, kind)]
    counts = ("sum(was) AS was", "sum(added) AS added", "sum(differs) AS differs")
    by_day = rows.groupBy("day").agg(*(F.expr(sql) for sql in (*counts, *sums)))
    return _read(collected(by_day), columns)


def _of_published(columns: Mapping[str, str]) -> list[str]:
    values = [
        sql
        for number, (name, kind) in enumerate(columns.items())
        for sql in (
            f"cast({quoted(name)} AS {_wide(kind)}) AS b{number}",
            f"cast(null AS {_wide(kind)}) AS g{number}",
            f"cast(null AS {_wide(kind)}) AS a{number}",
        )
    ]
    return [f"cast({RESULT_DAY} AS bigint) AS day", "1 AS was", "0 AS added", "0 AS differs", *values]


def _of_differing(columns: Mapping[str, str]) -> list[str]:
    values = [
        sql
        for number, (name, kind) in enumerate(columns.items())
        for sql in (
            f"cast(null AS {_wide(kind)}) AS b{number}",
            f"cast({names.BEFORE}.{quoted(name)} AS {_wide(kind)}) AS g{number}",
            f"cast(if(part = '{REMOVED}', null, {quoted(name)}) AS {_wide(kind)}) AS a{number}",
        )
    ]
    added = f"case when part = '{ADDED}' then 1 when part = '{REMOVED}' then -1 else 0 end AS added"
    return [f"cast({RESULT_DAY} AS bigint) AS day", "0 AS was", added, "1 AS differs", *values]


def _wide(kind: str) -> str:
    """A type in which values of the given type can be added up.

    >>> _wide("int"), _wide("float"), _wide("decimal(10,2)")
    ('decimal(38,0)', 'double', 'decimal(38,2)')
    """
    if kind in WHOLE:
        return f"decimal({DIGITS},0)"
    return "double" if kind in FLOATS else f"decimal({DIGITS},{_scale(kind)})"


def _scale(kind: str) -> int:
    return int(kind.rstrip(")").partition(",")[2] or 0)


def _sums(number: int, kind: str) -> list[tuple[str, str]]:
    """Sums of a column: `b` of published rows, `g` (gone) and `a` (after) of differing rows. A second sum `x…` per side
    shows if the total is impossible.

    Doubles are subtracted row by row. Equal values then leave no rounding error, in any order of addition.
    """
    sides = [f"{side}{number}" for side in "bga"]
    if kind in FLOATS:
        finite = [
            f"if({side} IS NULL OR isnan({side}) OR abs({side}) = double('Infinity'), 0D, {side})" for side in sides
        ]
        infinite = [f"sum(if(isnan({side}) OR abs({side}) = double('Infinity'), 1D, 0D))" for side in sides]
        sums = [f"sum({finite[0]})", "0D", f"sum({finite[2]} - {finite[1]})"]
    else:
        sums = [f"try_sum({side})" for side in sides]
        infinite = [f"coalesce(sum(abs(cast({side} AS double))), 0D)" for side in sides]
    return [*zip(sides, sums, strict=True), *zip((f"x{side}" for side in sides), infinite, strict=True)]


def _read(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> RangeTotals:
    by_day = sorted(rows, key=lambda row: row["day"])
    days = [
        DayTotals(
            f"{utc(0) + timedelta(days=row['day']):%Y-%m-%d}",
            int(row["differs"]),
            Total.of(int(row["was"]), int(row["added"]), int(row["was"]) + int(row["added"])),
            _totals([row], columns),
        )
        for row in by_day
        if row["differs"]
    ]
    was, added = (sum(int(row[name]) for row in by_day) for name in ("was", "added"))
    return RangeTotals(Total.of(was, added, was + added), _totals(by_day, columns), days)


def _totals(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> dict[str, Total]:
    return {name: _total(rows, number, kind) for number, (name, kind) in enumerate(columns.items())}


def _total(rows: Sequence[Mapping[str, Any]], number: int, kind: str) -> Total:
    summed: dict[str, Any] = defaultdict(int)
    for row in rows:
        for name in (f"{x}{side}{number}" for side in "bga" for x in ("", "x")):
            summed[name] = _add(summed[name], row[name] or 0)
    before, gone, after = (summed[f"{side}{number}"] for side in "bga")
    wrong_before, wrong_gone, wrong_after = (summed[f"x{side}{number}"] for side in "bga")
    if kind in FLOATS:
        difference = after
        if abs(difference) <= NEARLY * abs(before):
            difference = 0.0
        is_before, is_after = not wrong_before, not wrong_before - wrong_gone + wrong_after
    else:
        if kind in WHOLE:
            before, gone, after = map(int, (before, gone, after))
        difference = _add(after, -gone)
        most = 10.0 ** (DIGITS - 1 - (0 if kind in WHOLE else _scale(kind)))
        is_before = wrong_before < most
        is_after = is_before and max(wrong_gone, wrong_after) < most
    return Total.of(
        before if is_before else None,
        difference if is_before and is_after else None,
        _add(before, difference) if is_after else None,
    )


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return EXACT.add(Decimal(left), Decimal(right))
    total = left + right
    assert not math.isnan(total), "values that are not finite are counted apart"
    return total
