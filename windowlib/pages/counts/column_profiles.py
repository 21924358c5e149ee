"""Profile of each result column: by day rows, nulls, least, mean and greatest number, by batch distinct values.

Days are those of `window_day`, in UTC. Rows and nulls come from the statistics of files, so no row is read for them.
Means and extremes of numeric outputs come from the counts of the table of days; no statistics have means, or extremes
of floats. Each batch counts the distinct values of the rows that it adds or changes (`batches.result_figures`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from windowlib.definition.toml.column_tests import ROW_COUNT, distinct_figure
from windowlib.delta.data_files import DataFile
from windowlib.delta.statistics import finite_number
from windowlib.pages.counts.row_counts import OutputValue, merged_values
from windowlib.reruns.totals import Number

DAYS = 40  # newest days of a profile
BATCHES = 40  # newest batches of a profile


@dataclass(frozen=True, slots=True)
class ColumnDay:
    """A column in the results of a day. A figure is None if it is not known of a file."""

    day: date
    rows: int
    nulls: int | None
    low: Number | None
    mean: float | None
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
        """Values of `null_share`, `low`, `mean` or `high` by day, for a sparkline: raised if some are negative."""
        values = [float(getattr(day, figure) or 0) for day in self.days]
        return [value - min(0.0, *values) for value in values]


def column_profiles(
    columns: Iterable[str],
    hidden: Collection[str],
    files: Sequence[DataFile],
    values: Mapping[str, Mapping[str, OutputValue]],
    batches: Iterable[Mapping[str, int | None]] = (),
) -> list[ColumnProfile]:
    """Profiles of columns, without `hidden` columns, from the files of `results`; empty without days.

    values:  values of the numeric outputs by the path of a file, of the newest files
    batches: figures of the batches in force that are no reruns, newest first

    >>> file = lambda day, low, nulls: DataFile("f", 9, 4, {"window_day": day}, {"n": low}, {"n": 9}, {"n": nulls})
    >>> [profile] = column_profiles(["n"], [], [file("2026-03-02", 3, 0), file("2026-03-03", -1, 1)], {})
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
        ColumnProfile(name, [_of(name, day, by_day[day], values) for day in newest], _distinct(name, with_rows))
        for name in shown
    ]


def _distinct(column: str, batches: Iterable[Mapping[str, int | None]]) -> list[int]:
    counts = (figures.get(distinct_figure(column)) for figures in batches)
    return [count for count in counts if count is not None][:BATCHES][::-1]


def _of(
    column: str, day: date, files: Sequence[DataFile], values: Mapping[str, Mapping[str, OutputValue]]
) -> ColumnDay:
    nulls = [file.nulls.get(column) for file in files]
    null_counts = [number for number in nulls if number is not None]
    null_count = sum(null_counts) if len(null_counts) == len(nulls) else None
    rows = sum(file.rows for file in files)
    counted = [values.get(file.path, {}).get(column) for file in files]
    if None not in counted:
        value = merged_values(value for value in counted if value is not None)
        return ColumnDay(day, rows, null_count, value.low, value.mean, value.high)
    filled = [file for file in files if file.nulls.get(column) != file.rows]  # the others have no extremes
    lows, highs = (
        [finite_number(bounds.get(column)) for bounds in sides]
        for sides in ([file.low for file in filled], [file.high for file in filled])
    )
    return ColumnDay(day, rows, null_count, _extreme(lows, is_lowest=True), None, _extreme(highs, is_lowest=False))


def _extreme(values: Sequence[Number | None], *, is_lowest: bool) -> Number | None:
    numbers = [value for value in values if value is not None]
    if not numbers or len(numbers) < len(values):
        return None
    return min(numbers) if is_lowest else max(numbers)


def _day(partition: Mapping[str, object]) -> date | None:
    day = partition.get("window_day")
    return date.fromisoformat(day) if isinstance(day, str) else day if isinstance(day, date) else None
