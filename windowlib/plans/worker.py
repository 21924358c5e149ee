"""What a task of the general plan does: a sorted stream of rows in, key by key through the operator, rows out.

The rows of a key come as its state, its stored elements, the batch's elements. Only what one key keeps is held: its
windows, and where a spec keeps elements those of its windows in flight. Rows out are written ``ROWS_OUT`` at a time.
"""

from __future__ import annotations

import decimal
import gc
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from windowlib.elements import Element, Late, Timing
from windowlib.errors import WindowError
from windowlib.keyed import InHole, Instant, KeyRun, Result, next_timers
from windowlib.plans.folds import ARRIVAL, TIMESTAMP
from windowlib.plans.step import CONTENTS, DAY_MS, DROPPED, HOLE, LATE, ON_TIME, OPEN, UPDATE
from windowlib.spec import WindowSpec
from windowlib.state import FORMAT, Row
from windowlib.windows import GLOBAL_WINDOW, MAX_TIME_MS, TimeWindow

MAP, STORED, ELEMENT = 0, 1, 2  # kinds of rows in the stream, in the order they come
TASK = "task"  # the part of one row per task that counts
COUNTERS = ("n_before", "n_taken", "n_dropped", "n_holes", "n_after", "n_retired_rows")
STATE_ROW, CHUNK_ROW = "_state", "_stored"  # columns of the stream: structs of a state row, of stored elements
READ, OUTPUT = "_r_", "_o_"  # prefixes: of a source column in an element, of a function's result
ROWS_OUT = 5_000
_ENCODER = json.JSONEncoder(separators=(",", ":"))
CHUNK = 5_000


class FunctionFailed(WindowError):
    """Code of the user's raised an error, or gave what it had not declared."""


@dataclass(frozen=True)
class Worker:
    """Picklable: Spark calls it once for each task, with the task's record batches in order."""

    spec: WindowSpec
    keys: tuple[str, ...]
    partials: tuple[str, ...]
    outputs: tuple[str, ...] | None  # None: results are the partials
    instant: Instant
    batch_id: int
    partition_ms: int
    plan_time_ms: int
    compacted: frozenset[int]
    made: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decimal.getcontext().prec = 76  # sums of decimals are exact: Spark's have at most 38 digits
        gc.set_threshold(200_000, 20, 100)  # rows come and go by the ten thousand, and hardly any form cycles
        out = _Out(self.made, self.keys)
        for key, segments in groupby(_segments(batches, self.keys), key=lambda segment: segment.key):
            yield from self._key(key, segments, out)
            yield from out.full()
        out.add(TASK, None, **out.counters)
        yield from out.rest()

    def _key(self, key: Any, segments: Iterator[Segment], out: _Out) -> Iterator[pa.RecordBatch]:
        rows: list[Row] = []
        stored: list[Row] = []
        first: list[Segment] = []
        for segment in segments:
            if segment.kind == ELEMENT:
                first = [segment]
                break
            (rows if segment.kind == MAP else stored).extend(segment.rows())
        due = any(self.instant.reaches(row["next_event_ms"], row["next_processing_ms"]) for row in rows)
        held = _Stored(self, key, rows, stored)
        if not first and not due:
            held.pass_on(out)
            return
        run = KeyRun(self.spec, key, self.instant)
        for row in rows:
            out.counters["n_before"] += row["elements"] or 0
            run.restore(self._restored(key, row, held))
        elements = _elements(chain(first, segments), key, out)
        try:
            for told in run.advance(elements):
                self._tell(key, told, out)
                yield from out.full()
        except WindowError:
            raise
        except Exception as error:
            raise FunctionFailed(
                f"code for the windows of key {key!r} failed: {type(error).__name__}: {error}"
            ) from error
        after = run.rows()
        for row in after:
            self._keep(key, row, held, out)
        out.counters["n_retired_rows"] += max(0, len(rows) - len(after))

    def _tell(self, key: Any, told: Any, out: _Out) -> None:
        match told:
            case Result(window, value, timing, firing, replaced):
                part = UPDATE if replaced else LATE if timing is Timing.LATE else ON_TIME
                shared = {
                    **_bounds(window),
                    "slot": (self.plan_time_ms if window == GLOBAL_WINDOW else window.max_timestamp_ms) // DAY_MS,
                    "timing": str(timing),
                    "firing": firing,
                    "replaced": [_bounds(w) for w in replaced],
                }
                for number, columns in enumerate(self._columns(value), 1):
                    out.add(part, key, **shared, **columns, result_number=number)
            case Late(element):
                windows = self.spec.assigner.assign(element.timestamp_ms or 0, element.value, key)
                missed = _bounds(max(windows, key=lambda window: window.end_ms)) if windows else {}
                out.counters["n_dropped"] += 1
                out.add(DROPPED, key, slot=0, arrival=element.arrival, **missed)
            case InHole(element):
                out.counters["n_holes"] += 1
                out.add(HOLE, key, slot=0, arrival=element.arrival)

    def _columns(self, value: Any) -> Iterator[dict[str, Any]]:
        """The columns of each row of a result."""
        if self.outputs is None:
            yield dict(zip(self.partials, value, strict=True))
            return
        elements, last_event_ms, results = value
        for result in results:
            if isinstance(result, Mapping):
                given = result
            else:
                several = isinstance(result, tuple | list) and len(self.outputs) > 1
                given = dict(zip(self.outputs, result if several else [result], strict=False))
            if unknown := given.keys() - set(self.outputs):
                raise FunctionFailed(
                    f"the function gave {sorted(unknown)[0]!r}; [window.output] has {', '.join(self.outputs)}"
                )
            columns = {OUTPUT + name: given.get(name) for name in self.outputs}
            yield {"elements": elements, "last_event_ms": last_event_ms, **columns}

    def _restored(self, key: Any, row: Row, held: _Stored) -> Row:
        """A row of the map as `KeyRun.restore` takes it."""
        state = json.loads(row["state"])
        if "key_state" in state:
            return {"format": FORMAT, "key": key, "key_state": state["key_state"]}
        window, state_window = _window_of(row, ""), _window_of(row, "state_")
        contents: Row = {}
        if row["elements"] is not None:
            if self.spec.keeps_elements:
                contents = {"elements": held.elements(state_window)}
            else:
                own = [state["own"]] if "own" in state else []
                contents = {"accumulator": [row[name] for name in self.partials] + own}
        return {
            "format": FORMAT,
            "key": key,
            "window": [window.start_ms, window.end_ms],
            "state_window": [state_window.start_ms, state_window.end_ms] if state.get("merging") else None,
            **contents,
            "trigger_state": state.get("trigger", {}),
            "window_state": state.get("window", {}),
            "event_timers": state.get("event_timers", []),
            "processing_timers": state.get("processing_timers", []),
            "fired": [
                [*_from_bounds(fired["window_start_ms"], fired["window_end_ms"]), fired["firing"]]
                for fired in row["fired"] or ()
            ],
        }

    def _keep(self, key: Any, row: Row, held: _Stored, out: _Out) -> None:
        """A row of the state after the run into the map, and what is new of its contents."""
        if "key_state" in row:
            bounds = {
                **_bounds(GLOBAL_WINDOW),
                **_bounds(GLOBAL_WINDOW, "state_"),
                "slot": self.partition(GLOBAL_WINDOW),
            }
            never = {"next_event_ms": MAX_TIME_MS, "next_processing_ms": MAX_TIME_MS}
            out.add(OPEN, key, **bounds, **never, state=_json({"key_state": row["key_state"]}))
            return
        window = TimeWindow(*row["window"])
        state_window = TimeWindow(*row["state_window"]) if row["state_window"] else window
        state = {
            "merging": row["state_window"] is not None,
            "trigger": row["trigger_state"],
            "window": row["window_state"],
        }
        state |= {name: row[name] for name in ("event_timers", "processing_timers")}
        columns: Row = {"contents_from": self.batch_id}
        if "accumulator" in row:
            columns |= dict(zip(self.partials, row["accumulator"], strict=False))
            if len(row["accumulator"]) > len(self.partials):
                state["own"] = row["accumulator"][-1]
        if "elements" in row:
            columns["contents_from"] = held.keep(state_window, row["elements"], out)
            columns["elements"] = len(row["elements"])
            columns["last_event_ms"] = max((e[0] for e in row["elements"] if e[0] is not None), default=None)
        out.counters["n_after"] += columns.get("elements") or 0
        event_ms, processing_ms = next_timers(row)
        out.add(
            OPEN,
            key,
            **_bounds(window),
            **_bounds(state_window, "state_"),
            **columns,
            slot=self.partition(state_window),
            state=_json({name: value for name, value in state.items() if value or name == "own"}),
            fired=[{**_bounds(TimeWindow(start, end)), "firing": number} for start, end, number in row["fired"]],
            next_event_ms=event_ms,
            next_processing_ms=processing_ms,
        )

    def partition(self, state_window: TimeWindow) -> int:
        """The partition of the state that holds a state window, its row of the map and its contents."""
        return min(state_window.end_ms, MAX_TIME_MS) // self.partition_ms


@dataclass(slots=True)
class _Stored:
    """The stored elements of a key: what is live of them, and what of its contents must be written."""

    worker: Worker
    key: Any
    rows: Sequence[Row]
    chunks: Sequence[Row]
    live: dict[TimeWindow, list[list[Any]]] = field(default_factory=dict)
    since: dict[TimeWindow, int] = field(default_factory=dict)  # batch from which on chunks count

    def __post_init__(self) -> None:
        if not self.worker.spec.keeps_elements:
            return
        for row in self.rows:
            if row["elements"] is not None:
                window = _window_of(row, "state_")
                self.live[window], self.since[window] = [], row["contents_from"]
        for chunk in self.chunks:
            window = _window_of(chunk, "state_")
            if window in self.live and chunk["batch_id"] >= self.since[window]:
                self.live[window] += [_element_row(stored) for stored in chunk["contents"]]
        for held in self.live.values():
            held.sort(key=lambda element: element[2])

    def elements(self, state_window: TimeWindow) -> list[list[Any]]:
        """[timestamp_ms, value, arrival] of each element, in order of arrival."""
        return list(self.live[state_window])

    def keep(self, state_window: TimeWindow, elements: Sequence[Sequence[Any]], out: _Out) -> int:
        """Writes what is not stored yet; gives the batch from which on the chunks of this state window count."""
        before = self.live.get(state_window, [])
        grown = before and [e[2] for e in elements[: len(before)]] == [e[2] for e in before]
        if grown and self.worker.partition(state_window) not in self.worker.compacted:
            self._write(state_window, elements[len(before) :], out)
            return self.since[state_window]
        self._write(state_window, elements, out)
        return self.worker.batch_id

    def pass_on(self, out: _Out) -> None:
        """The key as it was; where its partition is compacted, its contents once more."""
        for row in self.rows:
            state_window = _window_of(row, "state_")
            partition = self.worker.partition(state_window)
            columns = {name: value for name, value in row.items() if value is not None and not name.startswith("_")}
            if state_window in self.live and partition in self.worker.compacted:
                columns["contents_from"] = self.keep(state_window, self.live[state_window], out)
            out.counters["n_before"] += row["elements"] or 0
            out.counters["n_after"] += row["elements"] or 0
            out.add(OPEN, self.key, **columns, slot=partition)

    def _write(self, state_window: TimeWindow, elements: Sequence[Sequence[Any]], out: _Out) -> None:
        for first in range(0, len(elements), CHUNK):
            chunk = [_stored_element(*element) for element in elements[first : first + CHUNK]]
            bounds = _bounds(state_window, "state_")
            slot = self.worker.partition(state_window)
            out.add(CONTENTS, self.key, **bounds, batch_id=self.worker.batch_id, contents=chunk, slot=slot)


# -- rows in ----------------------------------------------------------------------------------------------------------


class Segment(NamedTuple):
    """Rows of one key and one kind that lie behind one another in a record batch."""

    key: Any
    kind: int
    columns: _Columns
    start: int
    stop: int

    def rows(self) -> Iterator[Row]:
        """Its rows as dictionaries."""
        names, columns = self.columns.names, self.columns.lists
        for values in zip(*(column[self.start : self.stop] for column in columns), strict=True):
            yield dict(zip(names, values, strict=True))


def _segments(batches: Iterable[pa.RecordBatch], keys: Sequence[str]) -> Iterator[Segment]:
    for batch in batches:
        of_kind = [_Columns(batch, kind, keys) for kind in (MAP, STORED, ELEMENT)]
        key_of: Sequence[Any] = [None] * batch.num_rows
        if keys:
            values = [_list(batch.column(key)) for key in keys]
            key_of = values[0] if len(keys) == 1 else list(zip(*values, strict=True))
        taken = [0, 0, 0]
        for (key, kind), rows in groupby(zip(key_of, _list(batch.column("_kind")), strict=True)):
            start = taken[kind]
            taken[kind] = stop = start + sum(1 for _ in rows)
            yield Segment(key, kind, of_kind[kind], start, stop)


class _Columns:
    """The columns that rows of a kind have, as lists over the rows of that kind in a record batch."""

    def __init__(self, batch: pa.RecordBatch, kind: int, keys: Sequence[str]) -> None:
        self.batch, self.kind = batch, kind
        self.struct = {MAP: STATE_ROW, STORED: CHUNK_ROW}.get(kind)
        if self.struct:
            fields = batch.schema.field(self.struct).type if self.struct in batch.schema.names else ()
            self.names = [field.name for field in fields]
        else:
            others = ("_kind", "_order", STATE_ROW, CHUNK_ROW)
            self.columns = [name for name in batch.schema.names if name not in keys and name not in others]
            self.names = [name.removeprefix(READ) for name in self.columns]

    @cached_property
    def lists(self) -> list[list[Any]]:
        is_of_kind = pc.equal(self.batch.column("_kind"), self.kind)
        if self.struct:
            return [_list(column) for column in self.batch.column(self.struct).filter(is_of_kind).flatten()]
        return [_list(column) for column in self.batch.select(self.columns).filter(is_of_kind).columns]


def _list(column: pa.Array) -> list[Any]:
    plain = not column.null_count and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type))
    values: list[Any] = column.to_numpy().tolist() if plain else column.to_pylist()
    return values


def _elements(segments: Iterable[Segment], key: Any, out: _Out) -> Iterator[Element]:
    """The batch's elements of a key."""
    for segment in segments:
        names = segment.columns.names
        times, arrivals = names.index(TIMESTAMP), names.index(ARRIVAL)
        columns = [column[segment.start : segment.stop] for column in segment.columns.lists]
        out.counters["n_taken"] += segment.stop - segment.start
        make = tuple.__new__  # an Element without the call that names its fields
        for values in zip(*columns, strict=True):
            yield make(Element, (key, values[times], dict(zip(names, values)), values[arrivals]))  # noqa: B905


def _element_row(stored: Mapping[str, Any]) -> list[Any]:
    value = {name.removeprefix(READ): x for name, x in stored.items()}
    return [value[TIMESTAMP], value, value[ARRIVAL]]


# -- rows out ---------------------------------------------------------------------------------------------------------


class _Out:
    """Rows to be written, part by part: a part has few of the columns, the others are null."""

    def __init__(self, schema: pa.Schema, keys: Sequence[str]) -> None:
        self.schema, self.keys = schema, keys
        self.rows: dict[str, list[Row]] = {}
        self.waiting = 0
        self.counters = dict.fromkeys(COUNTERS, 0)

    def add(self, part: str, key: Any, **columns: Any) -> None:
        if key is not None:
            columns |= dict(zip(self.keys, key, strict=True)) if len(self.keys) > 1 else {self.keys[0]: key}
        self.rows.setdefault(part, []).append(columns)
        self.waiting += 1 + len(columns.get("contents", ()))

    def full(self) -> Iterator[pa.RecordBatch]:
        if self.waiting >= ROWS_OUT:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
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
                columns.append(_array(column, [row.get(column.name) for row in rows]))
            else:
                columns.append(pa.nulls(len(rows), column.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _array(column: pa.Field, values: list[Any]) -> pa.Array:
    try:
        return pa.array(values, column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError) as error:
        name = column.name.removeprefix(OUTPUT)
        raise FunctionFailed(f"a value of {name} does not fit its type {column.type}: {error}") from error


def _stored_element(timestamp_ms: int, value: Mapping[str, Any], arrival: int) -> Row:
    plain = {TIMESTAMP: timestamp_ms, ARRIVAL: arrival}
    return plain | {name if name.startswith("_x") else READ + name: x for name, x in value.items() if name not in plain}


def _bounds(window: TimeWindow, prefix: str = "") -> dict[str, int]:
    """The bounds as 64-bit integers: the global window's end, which is one more, is stored as the greatest."""
    return {f"{prefix}window_start_ms": window.start_ms, f"{prefix}window_end_ms": min(window.end_ms, MAX_TIME_MS)}


def _window_of(row: Row, prefix: str) -> TimeWindow:
    return TimeWindow(*_from_bounds(row[f"{prefix}window_start_ms"], row[f"{prefix}window_end_ms"]))


def _from_bounds(start_ms: int, end_ms: int) -> tuple[int, int]:
    return (start_ms, end_ms if end_ms < MAX_TIME_MS else GLOBAL_WINDOW.end_ms)


def _json(state: Mapping[str, Any]) -> str:
    try:
        return _ENCODER.encode(state)
    except TypeError as error:
        raise FunctionFailed(
            f"state of triggers and functions must be JSON (numbers, texts, lists, dictionaries, None): {error}"
        ) from error
