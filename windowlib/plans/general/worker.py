"""Task of the general plan: passes a sorted stream of rows through the operator, key by key.

The stream has a key's state, then its stored elements, then the batch's elements. A task holds the windows of only one
key at a time, and their elements if the spec keeps elements. It writes ``ROWS_OUT`` rows at a time.
"""

from __future__ import annotations

import decimal
import gc
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby
from typing import Any

import pyarrow as pa

from windowlib.contract.state_tables import PARTIAL_NAMES
from windowlib.model.elements import Late, Timing
from windowlib.model.errors import WindowError
from windowlib.model.keyed import InHole, Instant, KeyRun, Outcome, Result, next_timers
from windowlib.model.spec import WindowSpec
from windowlib.model.state import FORMAT, Row
from windowlib.model.windows import GLOBAL_WINDOW, MAX_TIME_MS, TimeWindow
from windowlib.plans import names
from windowlib.plans.general.folds import Folds, of_times
from windowlib.plans.general.returned_values import as_json, failed, output_row
from windowlib.plans.general.stream import (
    ELEMENT,
    MAP,
    OutputRows,
    Segment,
    bounds_of,
    element_row,
    elements_of,
    from_bounds,
    segments_of,
    stored_element,
    window_of,
)
from windowlib.plans.partitions import PARTITION, end_partition_of, window_day_of
from windowlib.plans.step import CONTENTS, DROPPED, GONE, HOLE, LATE, ON_TIME, OPEN, UPDATE

TASK = "task"  # part of the row with the counters; a task returns one such row
CHUNK = 5_000


@dataclass(frozen=True)
class Worker:
    """Function of a task, picklable. Spark calls it once per task, with the task's record batches in order."""

    spec: WindowSpec
    keys: tuple[str, ...]
    partials: tuple[str, ...]
    outputs: tuple[str, ...] | None  # None: results are the partials
    instant: Instant
    batch_id: int
    partition_ms: int
    plan_time_ms: int
    compacted: frozenset[int]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decimal.getcontext().prec = 76  # keeps sums of decimals exact: Spark's decimals have at most 38 digits
        gc.set_threshold(200_000, 20, 100)  # many short-lived rows, almost none in reference cycles
        out = OutputRows(self.schema, self.keys)
        for key, segments in groupby(segments_of(batches, self.keys), key=lambda segment: segment.key):
            yield from self._key(key, segments, out)
            yield from out.full()
        out.add(TASK, None, **{names.internal(name): count for name, count in out.counters.items()})
        yield from out.rest()

    def _key(self, key: Any, segments: Iterator[Segment], out: OutputRows) -> Iterator[pa.RecordBatch]:
        rows: list[Row] = []
        stored: list[Row] = []
        first: list[Segment] = []
        for segment in segments:
            if segment.kind == ELEMENT:
                first = [segment]
                break
            (rows if segment.kind == MAP else stored).extend(segment.rows())
        due = any(map(self._is_due, rows))
        held = _KeyContents(self, key, rows, stored)
        if not first and not due:
            held.pass_on(out)
            return
        run = KeyRun(self.spec, key, self.instant)
        # If a key has two key states, the last one counts.
        for row in sorted(rows, key=lambda row: (len(row["state"]), row["state"])):
            out.counters["n_before"] += row["elements"] or 0
            run.restore(self._restored(key, row, held))
        elements = elements_of(chain(first, segments), key, out)
        try:
            for outcome in run.advance(elements):
                self._write(run, outcome, out)
                yield from out.full()
        except WindowError:
            raise
        except (Exception, SystemExit) as error:
            raise failed(key, error) from error
        after = run.rows()
        for row in after:
            self._keep(key, row, held, out)
        out.counters["n_retired_rows"] += max(0, len(rows) - len(after))

    def _is_due(self, row: Row) -> bool:
        """Tests if a timer of a state row is due, or its window is past its cleanup time, regardless of timers."""
        timed = self.instant.reaches(row["next_event_ms"], row["next_processing_ms"])
        return timed or row["window_end_ms"] - 1 <= self.over_up_to_ms

    @cached_property
    def over_up_to_ms(self) -> int:
        return self.instant.over_up_to_ms(self.spec)

    def _write(self, run: KeyRun, outcome: Outcome, out: OutputRows) -> None:
        match outcome:
            case Result():
                self._write_result(run, outcome, out)
            case Late(element):
                windows = self.spec.assigner.assign(element.timestamp_ms or 0, element.value, run.key)
                missed = bounds_of(max(windows, key=lambda window: window.end_ms)) if windows else {}
                out.counters["n_dropped"] += 1
                out.add(DROPPED, run.key, end_partition=0, arrival=element.arrival, **missed)
            case InHole(element):
                out.counters["n_holes"] += 1
                out.add(HOLE, run.key, end_partition=0, arrival=element.arrival)

    def _write_result(self, run: KeyRun, result: Result, out: OutputRows) -> None:
        """Writes the rows of a result. If the function returned no rows, removes the replaced rows."""
        window, replaced = result.window, [bounds_of(old) for old in result.replaced]
        shared = {
            **bounds_of(window),
            PARTITION: window_day_of(self.plan_time_ms if window == GLOBAL_WINDOW else window.max_timestamp_ms),
            "timing": str(result.timing),
            "firing": result.firing,
            "replaced": replaced,
        }
        part = UPDATE if replaced else LATE if result.timing is Timing.LATE else ON_TIME
        rows = list(self._columns(result.value))
        for number, columns in enumerate(rows, 1):
            out.add(part, run.key, **shared, **columns, result_number=number)
        if not rows:
            run.without_rows(result)
            if replaced:
                out.add(GONE, run.key, **shared, result_number=0)

    def _columns(self, value: Any) -> Iterator[dict[str, Any]]:
        """Columns of each row of a result."""
        if self.outputs is None:
            yield dict(zip(self.partials, value, strict=True))
            return
        *partials, results = value
        for result in results:
            yield {**dict(zip(PARTIAL_NAMES, partials, strict=True)), **output_row(result, self.outputs)}

    def _restored(self, key: Any, row: Row, held: _KeyContents) -> Row:
        """A state row in the form that `KeyRun.restore` takes."""
        state = json.loads(row["state"])
        if "key_state" in state:
            return {"format": FORMAT, "key": key, "key_state": state["key_state"]}
        window, state_window = window_of(row, ""), window_of(row, "state_")
        contents: Row = {}
        if row["elements"] is not None:
            if self.spec.keeps_elements:
                contents = {"elements": held.elements(state_window)}
            else:
                own = [state["own"]] if "own" in state else []
                folds = self.spec.aggregate
                assert isinstance(folds, Folds), "a program folds what it does not keep"
                contents = {"accumulator": folds.restored([row[name] for name in self.partials]) + own}
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
                [*from_bounds(fired["window_start_ms"], fired["window_end_ms"]), fired["firing"]]
                for fired in row["fired"] or ()
            ],
        }

    def _keep(self, key: Any, row: Row, held: _KeyContents, out: OutputRows) -> None:
        """Writes a state row after the run, and new elements of its contents."""
        if "key_state" in row:
            self._keep_key_state(key, row["key_state"], out)
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
            columns |= dict(zip(PARTIAL_NAMES, of_times([element[0] for element in row["elements"]]), strict=True))
        out.counters["n_after"] += columns.get("elements") or 0
        event_ms, processing_ms = next_timers(row)
        out.add(
            OPEN,
            key,
            **bounds_of(window),
            **bounds_of(state_window, "state_"),
            **columns,
            end_partition=self.partition(state_window),
            state=as_json({name: value for name, value in state.items() if value or name == "own"}, key),
            fired=[{**bounds_of(TimeWindow(start, end)), "firing": number} for start, end, number in row["fired"]],
            next_event_ms=event_ms,
            next_processing_ms=processing_ms,
        )

    def _keep_key_state(self, key: Any, key_state: Any, out: OutputRows) -> None:
        """Writes a process function's state of the key as a separate row under the global window."""
        bounds = {**bounds_of(GLOBAL_WINDOW), **bounds_of(GLOBAL_WINDOW, "state_")}
        never = {"next_event_ms": MAX_TIME_MS, "next_processing_ms": MAX_TIME_MS}
        placed = {PARTITION: self.partition(GLOBAL_WINDOW)}
        out.add(OPEN, key, **bounds, **never, **placed, state=as_json({"key_state": key_state}, key))

    def partition(self, state_window: TimeWindow) -> int:
        """State partition of a state window's row and contents."""
        return end_partition_of(min(state_window.end_ms, MAX_TIME_MS), self.partition_ms)


@dataclass(slots=True)
class _KeyContents:
    """Stored elements of a key. Decides which elements still count, and which contents must be written."""

    worker: Worker
    key: Any
    rows: Sequence[Row]
    chunks: Sequence[Row]
    live: dict[TimeWindow, list[list[Any]]] = field(default_factory=dict)
    since: dict[TimeWindow, int] = field(default_factory=dict)  # first batch whose chunks count

    def __post_init__(self) -> None:
        if not self.worker.spec.keeps_elements:
            return
        for row in self.rows:
            if row["elements"] is not None:
                window = window_of(row, "state_")
                self.live[window], self.since[window] = [], row["contents_from"]
        for chunk in self.chunks:
            window = window_of(chunk, "state_")
            if window in self.live and chunk["batch_id"] >= self.since[window]:
                self.live[window] += [element_row(stored) for stored in chunk["contents"]]
        for held in self.live.values():
            held.sort(key=lambda element: element[2])

    def elements(self, state_window: TimeWindow) -> list[list[Any]]:
        """Live elements as [timestamp_ms, value, arrival], in order of arrival."""
        return list(self.live[state_window])

    def keep(self, state_window: TimeWindow, elements: Sequence[Sequence[Any]], out: OutputRows) -> int:
        """Writes new elements. Writes all elements if an earlier element was removed or the partition is compacted.

        Returns the first batch whose chunks count for this state window.
        """
        before = self.live.get(state_window, [])
        grown = before and [e[2] for e in elements[: len(before)]] == [e[2] for e in before]
        if grown and self.worker.partition(state_window) not in self.worker.compacted:
            self._write(state_window, elements[len(before) :], out)
            return self.since[state_window]
        self._write(state_window, elements, out)
        return self.worker.batch_id

    def pass_on(self, out: OutputRows) -> None:
        """Writes the unchanged state rows of the key, and its contents again if their partition is compacted."""
        for row in self.rows:
            state_window = window_of(row, "state_")
            partition = self.worker.partition(state_window)
            columns = {name: value for name, value in row.items() if value is not None and not name.startswith("_")}
            if state_window in self.live and partition in self.worker.compacted:
                columns["contents_from"] = self.keep(state_window, self.live[state_window], out)
            out.counters["n_before"] += row["elements"] or 0
            out.counters["n_after"] += row["elements"] or 0
            out.add(OPEN, self.key, **columns, end_partition=partition)

    def _write(self, state_window: TimeWindow, elements: Sequence[Sequence[Any]], out: OutputRows) -> None:
        for first in range(0, len(elements), CHUNK):
            chunk = [stored_element(*element) for element in elements[first : first + CHUNK]]
            bounds = bounds_of(state_window, "state_")
            partition = self.worker.partition(state_window)
            columns = {"batch_id": self.worker.batch_id, "contents": chunk, "end_partition": partition}
            out.add(CONTENTS, self.key, **bounds, **columns)
