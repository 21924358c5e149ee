"""Rows of a file by hour, with the values of the numeric outputs in the results of each hour.

`pages/days.json`, next to the tables, stores the counts. Hours are those of the zone of the pages; each day of the
zone consists of whole hours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from functools import reduce
from typing import Any, TypeAlias, TypeVar
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.batches.result_columns.tested_columns import WIDEST
from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of, utc
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Tables
from windowlib.model.calendar import Calendar
from windowlib.pages.local_hours import Ints, edges_around
from windowlib.reruns.totals import EXACT, Number
from windowlib.storage.object_file import opened

FILE = "pages/days.json"
BY_DEFAULT = 3  # outputs in the headline
EARLIEST_MS, LATEST_MS = time_of(datetime(2, 1, 2, tzinfo=UTC)), time_of(datetime(9998, 12, 30, tzinfo=UTC))
SAFE_DIGITS = 28  # the sum of 10 billion decimals with these digits has at most 38 digits
FUNCTIONS = ("count", "sum", "min", "max")
BATCH, PLACE = "batch_id", "place"
Span = TypeVar("Span")  # hour or day


@dataclass(frozen=True, slots=True)
class NumericOutput:
    """A numeric output, and the way in which its values in several results combine: sum, min, max or mean."""

    name: str
    combine: str


@dataclass(frozen=True, slots=True)
class OutputValue:
    """Values of an output in some results: their number, sum, least and greatest; None without values."""

    count: int = 0
    sum: Number | None = None
    low: Number | None = None
    high: Number | None = None

    def plus(self, other: OutputValue) -> OutputValue:
        """Values of these and other results together.

        >>> OutputValue(1, 5, 5, 5).plus(OutputValue(2, 7, 3, 4)), OutputValue().plus(OutputValue(1, 3, 3, 3))
        (OutputValue(count=3, sum=12, low=3, high=5), OutputValue(count=1, sum=3, low=3, high=3))
        """
        sums, lows, highs = (
            [value for value in pair if value is not None]
            for pair in ((self.sum, other.sum), (self.low, other.low), (self.high, other.high))
        )
        return OutputValue(
            self.count + other.count, total(sums) if sums else None, min(lows, default=None), max(highs, default=None)
        )

    def shown(self, combine: str) -> Number | None:
        """Value of these results together."""
        return {"sum": self.sum, "mean": self.mean, "min": self.low, "max": self.high}[combine]

    @property
    def mean(self) -> float | None:
        """Mean of the values."""
        return float(self.sum) / self.count if self.sum is not None and self.count else None


@dataclass(frozen=True, slots=True)
class PeriodCount:
    """Rows of an hour or a day, the values of the outputs in their order, and the batches that wrote the rows.

    `batches` is empty if they do not matter.
    """

    rows: int = 0
    values: Sequence[OutputValue] = ()
    batches: Sequence[int] = ()


HourCounts: TypeAlias = Mapping[int, PeriodCount]  # by the start of the hour in ms
DayCounts: TypeAlias = Mapping[date, PeriodCount]


def total(numbers: Iterable[Number]) -> Number:
    """Sum of numbers, exact unless some are floats.

    >>> total([Decimal("1e30"), Decimal("0.05")]), total([])
    (Decimal('1000000000000000000000000000000.05'), 0)
    """
    with localcontext(EXACT):
        return sum(numbers)


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


def by_hour(
    hours: Calendar, times_ms: Ints, rows: pa.Table, outputs: Sequence[NumericOutput] = ()
) -> dict[int, PeriodCount]:
    """Counts rows by the hour of their time, and combines the values of outputs.

    rows: the columns of the outputs that the file has; `batch_id` if the batches are wanted

    >>> from windowlib.pages.local_hours import hours_in
    >>> rows, times = pa.table({"n": [1, 2, 2**62, 2**62]}), np.array([5, 6, 3_600_000, 3_600_001])
    >>> counts = by_hour(hours_in("UTC"), times, rows, [NumericOutput("n", "sum")])
    >>> {hour: count.values[0].sum for hour, count in counts.items()}
    {0: 3, 3600000: 9223372036854775808}
    """
    if not len(times_ms):
        return {}
    edges = edges_around(hours, times_ms)
    counts = by_place(np.searchsorted(edges, times_ms, side="right") - 1, rows, outputs)
    return {int(edges[place]): count for place, count in counts.items()}


def by_place(places: Ints, rows: pa.Table, outputs: Sequence[NumericOutput]) -> dict[int, PeriodCount]:
    """Counts rows by a number per row, in the order of the numbers, and combines the values of outputs.

    A column that is younger than the file has no values.
    """
    present = {f"{number}": output for number, output in enumerate(outputs) if output.name in rows.column_names}
    columns = {number: rows[output.name] for number, output in present.items()}
    wanted = [(number, function) for number in present for function in FUNCTIONS]
    table = pa.table({PLACE: places, **{number: wide(column) for number, column in columns.items()}})
    counts = table.group_by(PLACE, use_threads=False).aggregate([([], "count_all"), *wanted]).to_pylist()
    whole = {number for number, column in columns.items() if pa.types.is_integer(column.type)}

    def value(count: Mapping[str, Any], number: str) -> OutputValue:
        if number not in present:
            return OutputValue()
        figures = (count[f"{number}_{function}"] for function in FUNCTIONS)
        return OutputValue(*(int(figure) if number in whole and figure is not None else figure for figure in figures))

    batches = dict[int, list[int]]()
    if BATCH in rows.column_names:
        pairs = pa.table({PLACE: places, BATCH: rows[BATCH]}).group_by([PLACE, BATCH]).aggregate([])
        for pair in pairs.sort_by(BATCH).to_pylist():
            batches.setdefault(pair[PLACE], []).append(pair[BATCH])
    return {
        count[PLACE]: PeriodCount(
            count["count_all"],
            [value(count, f"{number}") for number in range(len(outputs))],
            batches.get(count[PLACE], ()),
        )
        for count in sorted(counts, key=lambda count: count[PLACE])
    }


def by_day(counts: HourCounts, zone: ZoneInfo) -> dict[date, PeriodCount]:
    """Counts of hours by day."""
    return merged({day_of(hour_ms, zone): count} for hour_ms, count in counts.items())


def merged(counts: Iterable[Mapping[Span, PeriodCount]]) -> dict[Span, PeriodCount]:
    """Counts of several files, or of several hours of a day, together."""
    totals = dict[Span, PeriodCount]()
    for part in counts:
        for span, count in part.items():
            totals[span] = _together(totals[span], count) if span in totals else count
    return totals


def _together(before: PeriodCount, count: PeriodCount) -> PeriodCount:
    values = [value.plus(other) for value, other in zip(before.values, count.values, strict=True)]
    return PeriodCount(before.rows + count.rows, values, sorted({*before.batches, *count.batches}))


def merged_values(values: Iterable[OutputValue]) -> OutputValue:
    """Values of several files together."""
    return reduce(OutputValue.plus, values, OutputValue())


def wide(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers in a type that holds the sum of all of them. Arrow does not report overflows of sums.

    >>> [wide(pa.chunked_array([[number, number]])).type for number in (2**61, 2**62)]
    [DataType(int64), Decimal128Type(decimal128(38, 0))]
    """
    if pa.types.is_integer(column.type):
        extremes = [abs(number) for number in pc.min_max(column).as_py().values() if number is not None]
        return column if max(extremes, default=0) * len(column) < 2**63 else column.cast(pa.decimal128(38))
    if pa.types.is_decimal(column.type) and column.type.precision > SAFE_DIGITS:
        return column.cast(pa.decimal256(WIDEST, column.type.scale))
    return column


def plain_number(value: Number | None) -> int | float | str | None:
    """A number as a JSON value. Decimals are strings."""
    return str(value) if isinstance(value, Decimal) else value


def parsed_number(stored: int | float | str | None) -> Number | None:
    """A number from the JSON value of `plain_number`."""
    return Decimal(stored) if isinstance(stored, str) else stored


def plain(counts: HourCounts) -> Any:
    """Counts as JSON values. Decimals are strings."""
    return {
        str(hour_ms): [
            count.rows,
            [[value.count, *map(plain_number, (value.sum, value.low, value.high))] for value in count.values],
            [*count.batches],
        ]
        for hour_ms, count in counts.items()
    }


def parsed(stored: Any) -> HourCounts:
    """Counts from the JSON values of `plain`.

    >>> counts = {3_600_000: PeriodCount(2, [OutputValue(2, Decimal("1.50"), Decimal("0.50"), 1)], [7])}
    >>> parsed(plain(counts)) == counts
    True
    """
    return {
        int(hour_ms): PeriodCount(
            int(rows),
            [OutputValue(int(count), *map(parsed_number, numbers)) for count, *numbers in values],
            [int(batch) for batch in batches],
        )
        for hour_ms, (rows, values, batches) in stored.items()
    }


def numeric_outputs(
    definition: Definition, tables: Tables, files: Sequence[DataFile]
) -> tuple[list[NumericOutput], int]:
    """Numeric outputs of the results in files, without hidden ones, and how many of them are in the headline.

    The headline comes first: the outputs of `[pages] headline`, by default the first numbers.
    """
    if not files:
        return [], 0
    newest = max(files, key=lambda file: file.high.get("batch_id", 0))
    schema = pq.read_schema(opened(tables["results"].store, newest.path, newest.size_bytes))
    numbers = [
        name
        for name in definition.outputs
        if name not in definition.hidden and name in schema.names and _is_number(schema.field(name).type)
    ]
    headline = [name for name in definition.pages.headline or numbers[:BY_DEFAULT] if name in numbers]
    names = dict.fromkeys([*headline, *numbers])
    return [NumericOutput(name, _combine(definition, name)) for name in names], len(headline)


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
