"""Rows that a task of the general plan reads and writes: Arrow record batches outside, Python values inside.

The input is a sorted stream of three kinds of rows: state, stored elements, and the batch's elements. The output has
rows of several parts. Each part fills only some of the output columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from windowlib.model.elements import Element
from windowlib.model.state import Row
from windowlib.model.windows import GLOBAL_WINDOW, MAX_TIME_MS, TimeWindow
from windowlib.plans import names
from windowlib.plans.aggregates.mergeable.function import ARRIVAL, TIMESTAMP
from windowlib.plans.general.returned_values import FunctionFailed, typed

MAP, STORED, ELEMENT = 0, 1, 2  # kinds of rows in the stream, in their order
STATE_ROW, CHUNK_ROW = "_state", "_stored"  # stream columns: structs of a state row and of stored elements
READ = "_r_"  # prefix of a source column in an element
COUNTERS = ("n_before", "n_taken", "n_dropped", "n_holes", "n_after", "n_retired_rows")
ROWS_OUT = 5_000


class Segment(NamedTuple):
    """Consecutive rows of the same key and kind in a record batch."""

    key: Any
    kind: int
    columns: _Columns
    start: int
    stop: int

    def rows(self) -> Iterator[Row]:
        """Rows of the segment as dictionaries."""
        names, columns = self.columns.names, self.columns.lists
        for values in zip(*(column[self.start : self.stop] for column in columns), strict=True):
            yield dict(zip(names, values, strict=True))


def segments_of(batches: Iterable[pa.RecordBatch], keys: Sequence[str]) -> Iterator[Segment]:
    """Splits the rows of record batches at every change of key or kind."""
    for batch in batches:
        columns = [_Columns(batch, kind, keys) for kind in (MAP, STORED, ELEMENT)]
        key_of: Sequence[Any] = [None] * batch.num_rows
        if keys:
            values = [_keys(batch.column(key), key) for key in keys]
            key_of = values[0] if len(keys) == 1 else list(zip(*values, strict=True))
        next_rows = [0, 0, 0]
        for (key, kind), rows in groupby(zip(key_of, _list(batch.column("_kind"), "_kind"), strict=True)):
            start = next_rows[kind]
            next_rows[kind] = stop = start + sum(1 for _ in rows)
            yield Segment(key, kind, columns[kind], start, stop)


class _Columns:
    """Columns of the rows of one kind in a record batch, as lists."""

    def __init__(self, batch: pa.RecordBatch, kind: int, keys: Sequence[str]) -> None:
        self.batch, self.kind = batch, kind
        self.struct = {MAP: STATE_ROW, STORED: CHUNK_ROW}.get(kind)
        if self.struct:
            fields = batch.schema.field(self.struct).type if self.struct in batch.schema.names else ()
            self.names = [field.name for field in fields]
        else:
            others = ("_kind", "_order", STATE_ROW, CHUNK_ROW)
            self.columns = [name for name in batch.schema.names if name not in keys and name not in others]
            self.names = [in_value(of_stream(name)) for name in self.columns]

    @cached_property
    def lists(self) -> list[list[Any]]:
        """List of values per column, converted on first use."""
        has_kind = pc.equal(self.batch.column("_kind"), self.kind)
        if self.struct:
            columns = self.batch.column(self.struct).filter(has_kind).flatten()
        else:
            columns = self.batch.select(self.columns).filter(has_kind).columns
        return [_list(column, name) for column, name in zip(columns, self.names, strict=True)]


def _keys(column: pa.Array, name: str) -> list[Any]:
    """Values of a key column. All NaNs become one object, so they form one key although NaN equals nothing."""
    values = _list(column, name)
    if pa.types.is_floating(column.type) or pa.types.is_nested(column.type):
        return [_with_one_nan(value) for value in values]
    return values


def _with_one_nan(value: Any) -> Any:
    match value:
        case float() if value != value:
            return math.nan
        case dict():
            return {name: _with_one_nan(item) for name, item in value.items()}
        case list():
            return [_with_one_nan(item) for item in value]
    return value


def _list(column: pa.Array, name: str) -> list[Any]:
    """Values of a column. Raises FunctionFailed for a time outside the range of Python."""
    plain = not column.null_count and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type))
    try:
        values: list[Any] = column.to_numpy().tolist() if plain else column.to_pylist()
    except OverflowError as error:
        source = "an argument of an aggregate" if name.startswith(names.internal("")) else f"column {name}"
        raise FunctionFailed(
            f"{source} is a time before the year 1 or after 9999, but Python computes these windows and has no such"
            " times. Aggregate a number instead, such as unix_micros(…), or correct the rows"
        ) from error
    return values


def elements_of(segments: Iterable[Segment], key: Any, out: OutputRows) -> Iterator[Element]:
    """Yields the batch's elements of a key, and counts them in `out`."""
    for segment in segments:
        names = segment.columns.names
        times, arrivals = names.index(TIMESTAMP), names.index(ARRIVAL)
        columns = [column[segment.start : segment.stop] for column in segment.columns.lists]
        out.counters["n_taken"] += segment.stop - segment.start
        make = tuple.__new__  # creates an Element without the slower call with named fields
        for values in zip(*columns, strict=True):
            yield make(Element, (key, values[times], dict(zip(names, values)), values[arrivals]))  # noqa: B905


class OutputRows:
    """Buffer of output rows by part. Columns that a part does not fill are null."""

    def __init__(self, schema: pa.Schema, keys: Sequence[str]) -> None:
        self.schema, self.keys = schema, keys
        self.rows: dict[str, list[Row]] = {}
        self.waiting = 0
        self.counters = dict.fromkeys(COUNTERS, 0)

    def add(self, part: str, key: Any, **columns: Any) -> None:
        """Adds a row with these columns to a part."""
        if key is not None:
            columns |= dict(zip(self.keys, key, strict=True)) if len(self.keys) > 1 else {self.keys[0]: key}
        self.rows.setdefault(part, []).append(columns)
        self.waiting += 1 + len(columns.get("contents", ()))

    def full(self) -> Iterator[pa.RecordBatch]:
        """Yields record batches of the buffered rows if at least ``ROWS_OUT`` are waiting, and clears the buffer."""
        if self.waiting >= ROWS_OUT:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yields a record batch per part with all buffered rows, and clears the buffer."""
        for part, rows in self.rows.items():
            yield self._batch(part, rows)
        self.rows, self.waiting = {}, 0

    def _batch(self, part: str, rows: Sequence[Row]) -> pa.RecordBatch:
        present = {name for row in rows for name in row}
        columns = []
        for column in self.schema:
            if column.name == "part":
                columns.append(pa.array([part] * len(rows), column.type))
            elif column.name in present:
                columns.append(null_inside(typed(column, [row.get(column.name) for row in rows])))
            else:
                columns.append(pa.nulls(len(rows), column.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def null_inside(column: pa.Array) -> pa.Array:
    """Sets the fields of null structs to null. Arrow writes zeros there, which engines may read.

    >>> structs = pa.array([None, {"a": {"b": 1}}], pa.struct([("a", pa.struct([("b", pa.int64())]))]))
    >>> null_inside(structs).field("a").field("b").to_pylist() == [None, 1], structs.field("a").field("b").to_pylist()
    (True, [0, 1])
    """
    if not pa.types.is_struct(column.type):
        return column
    parts = [null_inside(part) for part in column.flatten()]
    return pa.StructArray.from_arrays(parts, fields=[*column.type], mask=column.is_null())


def element_row(stored: Mapping[str, Any]) -> list[Any]:
    """[timestamp_ms, value, arrival] of a stored element."""
    value = {in_value(name): x for name, x in stored.items()}
    return [value[TIMESTAMP], value, value[ARRIVAL]]


def stored_element(timestamp_ms: int, value: Mapping[str, Any], arrival: int) -> Row:
    """An element in its stored form."""
    return {as_stored(name): x for name, x in {**value, TIMESTAMP: timestamp_ms, ARRIVAL: arrival}.items()}


@cache
def as_stored(name: str) -> str:
    """Field name in a stored element for a name in an element's value.

    >>> as_stored(ARRIVAL), as_stored("_arrival")
    ('_arrival', '_r__arrival')
    """
    return "_" + name.removeprefix(names.RESERVED) if names.is_reserved(name) else READ + name


def in_stream(name: str) -> str:
    """Stream column for a name in an element's value. Dots and backticks are escaped: PySpark reads them as syntax.

    >>> in_stream("a.b`c%"), of_stream(in_stream("a.b`c%"))
    ('_r_a%2Eb%60c%25', '_r_a.b`c%')
    """
    return as_stored(name).replace("%", "%25").replace(".", "%2E").replace("`", "%60")


def of_stream(column: str) -> str:
    """Field name in a stored element for a stream column."""
    return unquote(column)


@cache
def in_value(column: str) -> str:
    """Name in an element's value for a field name in a stored element.

    >>> in_value("_arrival") == ARRIVAL, in_value("_r__arrival")
    (True, '_arrival')
    """
    return column.removeprefix(READ) if column.startswith(READ) else names.internal(column[1:])


def bounds_of(window: TimeWindow, prefix: str = "") -> dict[str, int]:
    """Bounds of a window as 64-bit integers. The global window's end exceeds 64 bits, so MAX_TIME_MS is stored.

    Raises FunctionFailed for a window that does not end after its start.
    """
    if not window.start_ms < window.end_ms:
        raise FunctionFailed(f"the assigner returned {window}; need windows that end after their start")
    return {f"{prefix}window_start_ms": window.start_ms, f"{prefix}window_end_ms": min(window.end_ms, MAX_TIME_MS)}


def window_of(row: Row, prefix: str) -> TimeWindow:
    """Window of a row, or its state window with the prefix `state_`."""
    return TimeWindow(*from_bounds(row[f"{prefix}window_start_ms"], row[f"{prefix}window_end_ms"]))


def from_bounds(start_ms: int, end_ms: int) -> tuple[int, int]:
    """Bounds of a window from its stored bounds."""
    return (start_ms, end_ms if end_ms < MAX_TIME_MS else GLOBAL_WINDOW.end_ms)
