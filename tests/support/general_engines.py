"""Engines that run a spec like the general plan: its worker alone, over Arrow, or the whole plan in Spark.

Both give what the operator gives, as plain values, and their state after each batch, so that a test can compare.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from windowlib.contract.state_tables import PARTIAL_NAMES
from windowlib.engines.choice import dialect_of
from windowlib.model.elements import Element
from windowlib.model.keyed import Instant
from windowlib.model.spec import WindowSpec
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS
from windowlib.plans import names
from windowlib.plans.aggregates.aggregate_set import AggregateSet
from windowlib.plans.general import plan as general
from windowlib.plans.general.stream import COUNTERS, ELEMENT, MAP, STORED
from windowlib.plans.general.worker import Worker
from windowlib.plans.kinds.kind import PlanInput
from windowlib.plans.names import internal
from windowlib.plans.step import Step

NOTHING = AggregateSet((), ())
READS = ("value", "gap_ms")
OUTPUTS = {"n": "bigint", "total": "bigint", "least": "bigint", "greatest": "bigint"}
LONG, TEXT, INT = pa.int64(), pa.string(), pa.int32()
BOUNDS = pa.struct([("window_start_ms", LONG), ("window_end_ms", LONG)])
FIRED = pa.struct([*BOUNDS, ("firing", INT)])
STORED_ELEMENT = pa.struct([("_timestamp_ms", LONG), ("_arrival", LONG), ("_r_value", LONG), ("_r_gap_ms", LONG)])
STATE = {
    **dict.fromkeys(general.BOUNDS, LONG),
    **dict.fromkeys(PARTIAL_NAMES, LONG),
    "contents_from": LONG,
    "state": TEXT,
    "fired": pa.list_(FIRED),
    "next_event_ms": LONG,
    "next_processing_ms": LONG,
}
CONTENTS = {
    "state_window_start_ms": LONG,
    "state_window_end_ms": LONG,
    "batch_id": LONG,
    "contents": pa.list_(STORED_ELEMENT),
}
VALUE = {"_timestamp_ms": LONG, "_arrival": LONG, "_r_value": LONG, "_r_gap_ms": LONG}
STRUCTS = {"_state": pa.struct(list(STATE.items())), "_stored": pa.struct(list(CONTENTS.items()))}
STREAM = pa.schema(list({"key": TEXT, "_kind": INT, "_order": LONG, **STRUCTS, **VALUE}.items()))
MADE = pa.schema(
    list(
        {
            "key": TEXT,
            "part": TEXT,
            "end_partition": LONG,
            **STATE,
            **CONTENTS,
            **{f"_o_{name}": LONG for name in OUTPUTS},
            "firing": INT,
            "result_number": INT,
            "timing": TEXT,
            "replaced": pa.list_(BOUNDS),
            "arrival": LONG,
            **dict.fromkeys(map(internal, COUNTERS), LONG),
        }.items()
    )
)


class Fired(NamedTuple):
    """A result: its window with the stored bounds (the global window ends at the greatest integer)."""

    key: str
    start_ms: int
    end_ms: int
    result: tuple[int | None, ...]
    timing: str


class Outcome(NamedTuple):
    """Outcome of one batch; ``replaced`` are the windows that results replace. ``numbers`` are (key, start_ms, end_ms,
    firing) of the results, in their order within a key.

    ``numbers`` are (key, start_ms, end_ms, firing) of the results, in their order within a key.
    """

    fired: list[Fired]
    numbers: list[tuple[str, int, int, int]]
    late: list[int]
    holes: list[int]
    replaced: set[tuple[str, int, int]]
    counters: dict[str, int]


class WorkerEngine:
    """The worker of the general plan over rows in memory, in record batches of ``rows_in``."""

    def __init__(self, spec: WindowSpec, partition_ms: int = 10, rows_in: int = 7) -> None:
        self.run = general.program(spec, NOTHING, READS, OUTPUTS)
        self.partition_ms, self.rows_in = partition_ms, rows_in
        self.batches = 0
        self.rows: list[dict[str, Any]] = []
        self.stored: list[dict[str, Any]] = []

    def advance(
        self, elements: Sequence[Element], watermark_in_ms: int, watermark_ms: int, plan_time_ms: int, *, compact: bool,
        late_up_to_ms: int = MIN_TIME_MS, spec: WindowSpec | None = None,
    ) -> Outcome:  # fmt: skip
        """One batch; with a `spec`, by another allowed lateness than the batch before."""
        self.batches += 1
        if spec is not None:
            self.run = general.program(spec, NOTHING, READS, OUTPUTS)
        instant = Instant.of_run(watermark_in_ms, watermark_ms, plan_time_ms, late_up_to_ms, resumes=spec is not None)
        partitions = {row["end_partition"] for row in self.rows} if compact else set()
        made = self._made(elements, instant, plan_time_ms, frozenset(partitions))
        self.rows = [row for row in made if row["part"] == "open"]
        if compact:
            self.stored = []
        self.stored += [row for row in made if row["part"] == "contents"]
        return _outcome(made)

    def state(self) -> dict[tuple[Any, ...], Any]:
        """Stored state: (key, window) → state of the window, and key → state of the key."""
        return dict(_remembered(row, self.stored) for row in self.rows if not _only_numbers(row))

    def _made(
        self, elements: Sequence[Element], instant: Instant, plan_time_ms: int, compacted: frozenset[int]
    ) -> list[dict[str, Any]]:
        stream = [{"key": row["key"], "_kind": MAP, "_order": 0, "_state": _only(row, STATE)} for row in self.rows]
        stream += [
            {"key": row["key"], "_kind": STORED, "_order": row["batch_id"], "_stored": _only(row, CONTENTS)}
            for row in self.stored
        ]
        stream += [{"key": e.key, "_kind": ELEMENT, "_order": e.arrival, **_value(e)} for e in elements]
        stream.sort(key=lambda row: (row["key"], row["_kind"], row["_order"]))
        given = pa.Table.from_pylist([{k: row.get(k) for k in STREAM.names} for row in stream], STREAM)
        outputs = tuple(OUTPUTS)
        partials = tuple(PARTIAL_NAMES)
        worker = Worker(
            self.run.spec, ("key",), partials, outputs, instant, self.batches, self.partition_ms, plan_time_ms,
            compacted, MADE,
        )  # fmt: skip
        made: list[dict[str, Any]] = pa.Table.from_batches(worker(given.to_batches(self.rows_in)), MADE).to_pylist()
        return made


class PlanEngine(WorkerEngine):
    """The general plan as Spark runs it."""

    def __init__(self, spec: WindowSpec, spark: Any) -> None:
        super().__init__(spec)
        self.spark = spark

    def _made(
        self, elements: Sequence[Element], instant: Instant, plan_time_ms: int, compacted: frozenset[int]
    ) -> list[dict[str, Any]]:
        if not elements and not self.rows:
            return []
        step = Step(
            assigner=self.run.spec.assigner,
            keys=["key"],
            aggregates=NOTHING,
            watermark_in_ms=instant.watermark_in_ms,
            watermark_out_ms=0,
            late_in_ms=0,
            late_out_ms=0,
            batch_id=self.batches,
            partition_ms=self.partition_ms,
            plan_time_ms=plan_time_ms,
            dialect=dialect_of(self.spark),
        )
        plain = {"key": TEXT, names.TIMESTAMP_MS: LONG, names.ARRIVAL: LONG, "value": LONG, "gap_ms": LONG}
        places = [{names.TIMESTAMP_MS: e.timestamp_ms, names.ARRIVAL: e.arrival} for e in elements]
        events = [{"key": e.key, **place, **e.value} for e, place in zip(elements, places, strict=True)]
        given = PlanInput(
            self._frame(events, plain),
            self._frame(self.rows, {"key": TEXT, **STATE}),
            contents=self._frame(self.stored, {"key": TEXT, **CONTENTS}),
            compacted=compacted,
        )
        rows: list[dict[str, Any]] = general.operator_rows(given, step, instant, run=self.run).toArrow().to_pylist()
        return rows

    def _frame(self, rows: Sequence[dict[str, Any]], schema: dict[str, pa.DataType]) -> Any:
        if not rows:
            return None
        table = pa.Table.from_pylist([{name: row.get(name) for name in schema} for row in rows], pa.schema(schema))
        return self.spark.createDataFrame(table)


def _only(row: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _value(element: Element) -> dict[str, Any]:
    times = {"_timestamp_ms": element.timestamp_ms, "_arrival": element.arrival}
    return times | {f"_r_{name}": element.value[name] for name in READS}


def _outcome(made: Sequence[dict[str, Any]]) -> Outcome:
    results = [row for row in made if row["part"] in ("on_time", "late", "update")]
    fired = [
        Fired(
            row["key"],
            row["window_start_ms"],
            row["window_end_ms"],
            tuple(row[f"_o_{name}"] for name in OUTPUTS),
            row["timing"],
        )
        for row in results
    ]
    replaced = {
        (row["key"], old["window_start_ms"], old["window_end_ms"]) for row in results for old in row["replaced"] or ()
    }
    arrivals = {part: [row["arrival"] for row in made if row["part"] == part] for part in ("dropped", "hole")}
    counters = {name: sum(row[internal(name)] for row in made if row["part"] == "task") for name in COUNTERS}
    numbers = [(row["key"], row["window_start_ms"], row["window_end_ms"], row["firing"]) for row in results]
    return Outcome(fired, numbers, arrivals["dropped"], arrivals["hole"], replaced, counters)


def _only_numbers(row: dict[str, Any]) -> bool:
    """Tests if a row only stores the number of firings, which the operator does not know."""
    state = json.loads(row["state"])
    return row["elements"] is None and not state


def _remembered(row: dict[str, Any], stored: Sequence[dict[str, Any]]) -> tuple[tuple[Any, ...], Any]:
    state = json.loads(row["state"])
    if "key_state" in state:
        return (row["key"],), state["key_state"]
    state_window = (row["state_window_start_ms"], row["state_window_end_ms"])
    contents: Any = None
    if "own" in state:
        contents = state["own"]
    elif row["elements"] is not None:
        held = [
            (element["_arrival"], element["_timestamp_ms"], element["_r_value"])
            for chunk in stored
            if chunk["key"] == row["key"]
            and (chunk["state_window_start_ms"], chunk["state_window_end_ms"]) == state_window
            and chunk["batch_id"] >= row["contents_from"]
            for element in chunk["contents"]
        ]
        assert row["elements"] == len(held)
        contents = sorted(held)
    remembered = (
        state_window if state.get("merging") else None,
        contents,
        state.get("trigger", {}),
        state.get("window", {}),
        state.get("event_timers", []),
        state.get("processing_timers", []),
    )
    assert row["next_event_ms"] == min(state.get("event_timers", []), default=MAX_TIME_MS)
    return (row["key"], row["window_start_ms"], row["window_end_ms"]), remembered


def remembered_by_operator(rows: Sequence[dict[str, Any]]) -> dict[tuple[Any, ...], Any]:
    """The same of the reference's rows of state."""
    found: dict[tuple[Any, ...], Any] = {}
    for row in rows:
        if "window" not in row:
            found[(row["key"],)] = row["key_state"]
            continue
        contents = row.get("accumulator")
        if "elements" in row:
            contents = sorted((arrival, time_ms, value["value"]) for time_ms, value, arrival in row["elements"])
        found[(row["key"], *stored_bounds(row["window"]))] = (
            stored_bounds(row["state_window"]) if row["state_window"] else None,
            contents,
            row["trigger_state"],
            row["window_state"],
            row["event_timers"],
            row["processing_timers"],
        )
    return found


def stored_bounds(window: Sequence[int]) -> tuple[int, int]:
    """Bounds as 64-bit integers."""
    return max(window[0], MIN_TIME_MS), min(window[1], MAX_TIME_MS)
