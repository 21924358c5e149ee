"""Rows of a file by day, with the headline values of the results of each day.

A day begins at midnight of the zone of `[pages] time_zone`. `pages/days.json`, next to the tables, stores the counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of, utc
from windowlib.definition.toml.durations import UNITS
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Tables
from windowlib.model.rerun import TimeRange
from windowlib.storage.object_file import opened

FILE = "pages/days.json"
BY_DEFAULT = 3  # outputs in the headline
FURTHEST_MS = 400 * UNITS["d"]
EARLIEST_MS, LATEST_MS = time_of(datetime(2, 1, 2, tzinfo=UTC)), time_of(datetime(9998, 12, 30, tzinfo=UTC))
Number: TypeAlias = int | float | Decimal


@dataclass(frozen=True, slots=True)
class Headline:
    """An output, and the way in which its values in several results combine: sum, min, max or mean."""

    name: str
    combine: str


@dataclass(frozen=True, slots=True)
class DayValue:
    """Values of an output in the results of a day: their number, and their sum or extreme; None without values."""

    count: int = 0
    value: Number | None = None

    def plus(self, other: DayValue, combine: str) -> DayValue:
        """Combines the values of two files.

        >>> DayValue(1, 5).plus(DayValue(2, 3), "min"), DayValue().plus(DayValue(2, 3), "mean")
        (DayValue(count=3, value=3), DayValue(count=2, value=3))
        """
        both = [value for value in (self.value, other.value) if value is not None]
        together = {"min": min, "max": max}.get(combine, sum)
        return DayValue(self.count + other.count, together(both) if both else None)

    def shown(self, combine: str) -> Number | None:
        """Value of the day."""
        if self.value is None or not self.count:
            return None
        return float(self.value) / self.count if combine == "mean" else self.value


@dataclass(frozen=True, slots=True)
class DayCount:
    """Rows of a day, the values of the headline in its order, and the batches that wrote the rows if they matter."""

    rows: int = 0
    values: Sequence[DayValue] = ()
    batches: Sequence[int] = ()


DayCounts: TypeAlias = Mapping[date, DayCount]


@dataclass(frozen=True, slots=True)
class DayCalendar:
    """Consecutive days of a zone: `starts_ms` has the start of each, and the end of the last."""

    days: Sequence[date]
    starts_ms: Sequence[int]
    zone: ZoneInfo

    @classmethod
    def of(cls, first: date, last: date, zone: ZoneInfo) -> DayCalendar:
        """Days from `first` to `last` (inclusive).

        >>> spring = DayCalendar.of(date(2026, 3, 29), date(2026, 3, 29), ZoneInfo("Europe/Berlin"))
        >>> (spring.starts_ms[1] - spring.starts_ms[0]) // 3_600_000
        23
        """
        days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
        return cls(days, [start_ms(day, zone) for day in (*days, last + timedelta(days=1))], zone)

    def places(self, times_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of the day of each time; -1 before the first day, and the number of days after the last."""
        places: NDArray[np.int64] = np.searchsorted(np.array(self.starts_ms), times_ms, "right") - 1
        return places

    def bounds_ms(self, day: date) -> tuple[int, int]:
        """Start and end (exclusive) of one of the days."""
        place = (day - self.days[0]).days
        return self.starts_ms[place], self.starts_ms[place + 1]

    def span(self, later_ms: int) -> TimeRange:
        """Time from the first day to the last. Both bounds are `later_ms` later."""
        return TimeRange(self.starts_ms[0] + later_ms, self.starts_ms[-1] + later_ms)

    def around(self, first_ms: int, last_ms: int) -> DayCalendar:
        """Days from a time to another, at most `FURTHEST_MS` from these days."""
        low_ms, high_ms = self.starts_ms[0] - FURTHEST_MS, self.starts_ms[-1] + FURTHEST_MS
        first, last = (day_of(min(max(time_ms, low_ms), high_ms), self.zone) for time_ms in (first_ms, last_ms))
        return DayCalendar.of(first, last, self.zone)


def start_ms(day: date, zone: ZoneInfo) -> int:
    """Start of a day in ms. If clocks skip midnight, the day starts at the first time after it."""
    return time_of(datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC))


def local(time_ms: int, zone: ZoneInfo) -> datetime:
    """A time in a zone. A time outside the years 2 to 9998 becomes the first or last of these years.

    >>> local(-1, ZoneInfo("UTC")).date(), local(0, ZoneInfo("Asia/Tokyo")).hour, local(-(2**62), ZoneInfo("UTC")).year
    (datetime.date(1969, 12, 31), 9, 2)
    """
    return utc(min(max(time_ms, EARLIEST_MS), LATEST_MS)).astimezone(zone)


def day_of(time_ms: int, zone: ZoneInfo) -> date:
    """Day of a time, as in `local`."""
    return local(time_ms, zone).date()


def by_day(
    calendar: DayCalendar, times_ms: NDArray[np.int64], rows: pa.Table, headline: Sequence[Headline] = ()
) -> dict[date, DayCount]:
    """Counts rows by the day of their time, and combines their headline values. Leaves out rows of other days.

    rows: the headline columns that the file has; `batch_id` if the batches are wanted
    """
    places, counts = calendar.places(times_ms), dict[date, DayCount]()
    amounts = np.bincount(places + 1, minlength=len(calendar.days) + 1)[1 : len(calendar.days) + 1]
    for place in np.flatnonzero(amounts).tolist():
        part = rows if amounts[place] == len(places) else rows.filter(pa.array(places == place))
        batches = pc.unique(part["batch_id"]).to_pylist() if "batch_id" in part.column_names else ()
        values = [value_of(part, output) for output in headline]
        counts[calendar.days[place]] = DayCount(int(amounts[place]), values, sorted(batches))
    return counts


def value_of(rows: pa.Table, output: Headline) -> DayValue:
    """Combines the values of an output in some rows."""
    if output.name not in rows.column_names:
        return DayValue()  # the column was added after the file was written
    column = rows[output.name]
    count = len(column) - column.null_count
    if output.combine in ("min", "max"):
        value = getattr(pc, output.combine)(column).as_py()
    else:
        is_whole = pa.types.is_integer(column.type)  # a sum of integers may need more than 64 bits
        wide = column.cast(pa.decimal128(38)) if is_whole else column
        value = pc.sum(wide).as_py()
        value = int(value) if is_whole and value is not None else value
    return DayValue(count, value)


def merged(counts: Iterable[DayCounts], headline: Sequence[Headline] = ()) -> dict[date, DayCount]:
    """Counts of several files together."""
    totals = dict[date, DayCount]()
    for of_file in counts:
        for day, count in of_file.items():
            before = totals.get(day, DayCount(values=[DayValue()] * len(headline)))
            values = [
                value.plus(other, output.combine)
                for value, other, output in zip(before.values, count.values, headline, strict=True)
            ]
            batches = sorted({*before.batches, *count.batches})
            totals[day] = DayCount(before.rows + count.rows, values, batches)
    return totals


def plain_number(value: Number | None) -> int | float | str | None:
    """A number as a JSON value. Decimals are strings."""
    return str(value) if isinstance(value, Decimal) else value


def parsed_number(stored: int | float | str | None) -> Number | None:
    """A number from the JSON value of `plain_number`."""
    return Decimal(stored) if isinstance(stored, str) else stored


def plain(counts: DayCounts) -> Any:
    """Counts as JSON values. Decimals are strings."""
    return {
        day.isoformat(): [
            count.rows,
            [[value.count, plain_number(value.value)] for value in count.values],
            [*count.batches],
        ]
        for day, count in counts.items()
    }


def parsed(stored: Any) -> DayCounts:
    """Counts from the JSON values of `plain`.

    >>> counts = {date(2026, 3, 5): DayCount(2, [DayValue(2, Decimal("1.50"))], [7])}
    >>> parsed(plain(counts)) == counts
    True
    """
    return {
        date.fromisoformat(day): DayCount(
            int(rows),
            [DayValue(int(count), parsed_number(value)) for count, value in values],
            [int(batch) for batch in batches],
        )
        for day, (rows, values, batches) in stored.items()
    }


def headline_of(definition: Definition, tables: Tables, files: Sequence[DataFile]) -> list[Headline]:
    """Outputs in the headline: those of `[pages] headline`, by default the first numbers. Leaves out hidden outputs."""
    if not files:
        return []
    newest = max(files, key=lambda file: file.high.get("batch_id", 0))
    schema = pq.read_schema(opened(tables["results"].store, newest.path, newest.size_bytes))
    numbers = [
        name
        for name in definition.pages.headline or definition.outputs
        if name not in definition.hidden and name in schema.names and _is_number(schema.field(name).type)
    ]
    return [
        Headline(name, _combine(definition, name))
        for name in (numbers if definition.pages.headline else numbers[:BY_DEFAULT])
    ]


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _combine(definition: Definition, name: str) -> str:
    """Way in which the values of several results combine. Sums and counts add up, extremes give an extreme."""
    if name in definition.aggregates.additive:
        return "sum"
    column = next((column for column in definition.aggregates.columns if column.name == name), None)
    functions = {f"{{{place}}}": aggregate.function for place, aggregate in enumerate(definition.aggregates.aggregates)}
    function = functions.get(column.sql) if column else None
    return function if function in ("min", "max") else "mean"
