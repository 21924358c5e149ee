"""Profile of each result column: by day rows, nulls, least and greatest number, by batch distinct values.

The figures of a day come from the statistics of files. The engine counts them while it writes a batch, so that they
cost a batch nothing, and reading them reads no row. Days are those of `window_day`, in UTC. No statistics have distinct
values, so that each batch counts those of the rows that it adds or changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import isfinite

from windowlib.definition.toml.column_tests import ROW_COUNT, distinct_figure
from windowlib.delta.data_files import DataFile
from windowlib.reruns.totals import Number

DAYS = 40  # newest days of a profile
BATCHES = 40  # newest batches of a profile


@dataclass(frozen=True, slots=True)
class ColumnDay:
    """A column in the results of a day. `nulls`, `low` and `high` are None if a file has no such statistics."""

    day: date
    rows: int
    nulls: int | None
    low: Number | None
    high: Number | None

    @property
    def null_share(self) -> float | None:
        """Nulls as a share of the rows."""
        return None if self.nulls is None or not self.rows else self.nulls / self.rows


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """A result column over the newest days with results, oldest first.

    `distinct` has the distinct values of the newest batches that have a count and changed results, oldest first.
    """

    name: str
    days: Sequence[ColumnDay]
    distinct: Sequence[int] = ()

    @property
    def newest(self) -> ColumnDay:
        return self.days[-1]

    def trend(self, figure: str) -> Sequence[float]:
        """Values of `null_share`, `low` or `high` by day, for a sparkline: raised if some are negative."""
        values = [float(getattr(day, figure) or 0) for day in self.days]
        return [value - min(0.0, *values) for value in values]


def column_profiles(
    columns: Iterable[str],
    hidden: Collection[str],
    files: Sequence[DataFile],
    batches: Iterable[Mapping[str, int | None]] = (),
) -> list[ColumnProfile]:
    """Profiles of columns, without `hidden` columns, from the files of `results`; empty without days.

    batches: figures of the batches in force, newest first

    >>> file = lambda day, low, nulls: DataFile("f", 9, 4, {"window_day": day}, {"n": low}, {"n": 9}, {"n": nulls})
    >>> [profile] = column_profiles(["n"], [], [file("2026-03-02", 3, 0), file("2026-03-03", -1, 1)])
    >>> (profile.newest.null_share, profile.newest.low, profile.trend("low"))
    (0.25, -1, [4.0, 0.0])
    """
    by_day: dict[date, list[DataFile]] = {}
    for file in files:
        if (day := _day(file.partition)) is not None and file.rows:
            by_day.setdefault(day, []).append(file)
    newest = sorted(by_day)[-DAYS:]
    if not newest:
        return []
    shown = [name for name in columns if name not in hidden]
    with_rows = [figures for figures in batches if figures.get(ROW_COUNT)]
    return [
        ColumnProfile(name, [_of(name, day, by_day[day]) for day in newest], _distinct(name, with_rows))
        for name in shown
    ]


def _distinct(column: str, batches: Iterable[Mapping[str, int | None]]) -> list[int]:
    counts = (figures.get(distinct_figure(column)) for figures in batches)
    return [count for count in counts if count is not None][:BATCHES][::-1]


def _of(column: str, day: date, files: Sequence[DataFile]) -> ColumnDay:
    nulls = [file.nulls.get(column) for file in files]
    null_counts = [number for number in nulls if number is not None]
    filled = [file for file in files if file.nulls.get(column) != file.rows]  # the others have no extremes
    lows, highs = [number(file.low.get(column)) for file in filled], [number(file.high.get(column)) for file in filled]
    return ColumnDay(
        day,
        sum(file.rows for file in files),
        sum(null_counts) if len(null_counts) == len(nulls) else None,
        _extreme(lows, is_lowest=True),
        _extreme(highs, is_lowest=False),
    )


def _extreme(values: Sequence[Number | None], *, is_lowest: bool) -> Number | None:
    numbers = [value for value in values if value is not None]
    if not numbers or len(numbers) < len(values):
        return None
    return min(numbers) if is_lowest else max(numbers)


def number(value: object) -> Number | None:
    """Finite number in the statistics of a file, unchanged; None for other values."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return value if is_number and isfinite(value) else None  # type: ignore[arg-type,return-value]


def _day(partition: Mapping[str, object]) -> date | None:
    day = partition.get("window_day")
    return date.fromisoformat(day) if isinstance(day, str) else day if isinstance(day, date) else None
