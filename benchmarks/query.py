"""A windowed aggregation, defined once, so that every side of the benchmark computes the same."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from windowlib.definition.toml.durations import format_duration as duration
from windowlib.model.assigners import CalendarWindows, Cumulating, Session, Sliding, Tumbling

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
TIMESTAMP = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Count:
    """Every `size` events of a key, in order of arrival."""

    size: int


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of a source's columns: an integer key, the event time (a timestamp in UTC), an integer value."""

    key: str = "user_id"
    time: str = "ts"
    value: str = "value"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An output column: the number of events, or the sum or the greatest of their values."""

    name: str
    function: Literal["count", "sum", "max"]

    def sql(self, value: str) -> str:
        """
        >>> Aggregate("events", "count").sql("price"), Aggregate("top", "max").sql("price")
        ('count(*)', 'max(price)')
        """
        return "count(*)" if self.function == "count" else f"{self.function}({value})"


COUNT_AND_SUM = (Aggregate("events", "count"), Aggregate("total", "sum"))


@dataclass(frozen=True, slots=True)
class Query:
    """Windows and what they hold. `more` is TOML that only our own side understands: a trigger, a function."""

    name: str
    window: Session | Tumbling | Sliding | Cumulating | CalendarWindows | Count
    columns: Columns = Columns()
    aggregates: tuple[Aggregate, ...] = COUNT_AND_SUM
    keyed: bool = True
    out_of_orderness_ms: int = 10 * MINUTE_MS
    allowed_lateness_ms: int = 0
    more: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that distinguish one result from another, as `normal` names them."""
        window = ("number",) if isinstance(self.window, Count) else ("window_start", "window_end")
        return ("key", *window) if self.keyed else window

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(aggregate.name for aggregate in self.aggregates)

    @property
    def slice_ms(self) -> int:
        """The width of the buckets of time over which events of one key share their windows; 1 for count windows."""
        match self.window:
            case Session(gap_ms=gap_ms):
                return gap_ms
            case Sliding(size_ms=size_ms, slide_ms=slide_ms):
                return gcd(size_ms, slide_ms)
            case Cumulating(step_ms=step_ms):
                return step_ms
            case Tumbling(size_ms=size_ms):
                return size_ms
        return 1

    @property
    def final_after_ms(self) -> int:
        """How far behind the newest event a window's end must be for its result to change no more."""
        return self.out_of_orderness_ms + self.allowed_lateness_ms


def definition(query: Query) -> str:
    """The query as a definition of windowlib, over Parquet files in `incoming` next to it.

    >>> definition(Query("visits", Session(gap_ms=60_000))).splitlines()[0]
    'name = "visits"'
    """
    columns = query.columns
    aggregates = [f'{one.name} = "{one.sql(columns.value)}"' for one in query.aggregates]
    lines = [
        f'name = "{query.name}"',
        'warehouse = "warehouse"',
        "[source]",
        'format = "parquet"',
        'path = "incoming"',
        f'key = ["{columns.key}"]' if query.keyed else "key = []",
        f'timestamp = "{columns.time}"',
        "max_files_per_run = 1",
        'min_file_age = "0s"',  # a file lies whole before a side is called: no side waits for it to grow old
        "[watermark]",
        f'out_of_orderness = "{duration(query.out_of_orderness_ms)}"',
        "[window]",
        *_window(query),
    ]
    if query.more:
        return "\n".join([*lines, query.more]) + "\n"
    return "\n".join([*lines, "[aggregates]", *aggregates]) + "\n"


def _window(query: Query) -> list[str]:
    match query.window:
        case Count(size=size):
            return ['type = "tumbling_count"', f"size = {size}"]
        case Session(gap_ms=gap_ms):
            found = ['type = "session"', f'gap = "{duration(gap_ms)}"']
        case Sliding(size_ms=size_ms, slide_ms=slide_ms):
            found = ['type = "sliding"', f'size = "{duration(size_ms)}"', f'slide = "{duration(slide_ms)}"']
        case Cumulating(max_size_ms=max_size_ms, step_ms=step_ms):
            found = ['type = "cumulating"', f'max_size = "{duration(max_size_ms)}"', f'step = "{duration(step_ms)}"']
        case CalendarWindows(calendar=calendar):
            found = ['type = "tumbling"', f'every = "{calendar.every}"', f'time_zone = "{calendar.time_zone}"']
        case Tumbling(size_ms=size_ms):
            found = ['type = "tumbling"', f'size = "{duration(size_ms)}"']
    return [*found, f'allowed_lateness = "{duration(query.allowed_lateness_ms)}"']


def normal(rows: pa.Table, query: Query) -> pa.Table:
    """Results of any side as integers: key, window_start and window_end in ms (or number), and the aggregates."""
    columns = {}
    for name in (*query.identity, *query.outputs):
        column = rows[query.columns.key if name == "key" and "key" not in rows.column_names else name]
        if pa.types.is_timestamp(column.type):
            column = pc.divide(column.cast(TIMESTAMP).cast(pa.int64()), 1000)
        columns[name] = column.cast(pa.int64())
    return pa.table(columns)


def no_results(query: Query) -> pa.Table:
    """The results of a side that has published nothing."""
    return pa.table({name: pa.array([], pa.int64()) for name in (*query.identity, *query.outputs)})
