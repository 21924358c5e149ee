"""Spark engine of `windowlib replay` for scenarios: each step is a batch of the general plan, in its own job.

Each job returns the state as rows, which the next job reads. So every step is a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowlib.contract.state_tables import PARTIAL_NAMES
from windowlib.model.elements import Element, Input, ProcessingTime, Watermark
from windowlib.model.keyed import Instant
from windowlib.model.spec import WindowSpec
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.model.windows import TimeWindow
from windowlib.plans import names
from windowlib.plans.aggregates.aggregate_set import AggregateSet
from windowlib.plans.general.stream import window_of
from windowlib.replay.scenarios import Json, bounds_of
from windowlib.runs.spark_errors import worker_errors_raised

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READS = {"id": pa.string(), "value": pa.int64(), "gap_ms": pa.int64()}
EVENTS = pa.schema(
    [("key", pa.string()), (names.TIMESTAMP_MS, pa.int64()), (names.ARRIVAL, pa.int64()), *READS.items()]
)
OUTPUTS = {"value": "bigint", "ids": "array<string>"}


class SparkSteps:
    """Engine that computes each step with the general plan for `spec`."""

    def __init__(self, spec: WindowSpec, spark: SparkSession) -> None:
        from windowlib.plans.general import plan as general

        self.program = general.program(spec, AggregateSet((), ()), READS, OUTPUTS)
        self.spec, self.spark = spec, spark
        self.watermark_ms = MIN_WATERMARK
        self.processing_time_ms = 0
        self.batches = 0
        self.rows: pa.Table | None = None
        self.contents: list[pa.Table] = []

    def feed(self, event: Input) -> tuple[list[Json], list[str]]:
        match event:
            case Element():
                moved = Instant(self.watermark_ms, self.processing_time_ms, (), ())
            case Watermark(watermark_ms):
                moved = Instant(self.watermark_ms, self.processing_time_ms, (), (event,))
                self.watermark_ms = watermark_ms
            case ProcessingTime(processing_time_ms):
                moved = Instant(self.watermark_ms, self.processing_time_ms, (event,), ())
                self.processing_time_ms = processing_time_ms
        self.batches += 1
        if not isinstance(event, Element) and self.rows is None:
            return [], []
        with worker_errors_raised():
            rows = self._run(event if isinstance(event, Element) else None, moved)
        self._keep(rows)
        emitted = [_emitted(row) for row in rows.to_pylist() if row["part"] in ("on_time", "late", "update")]
        late = [
            event.value["id"] for row in rows.to_pylist() if row["part"] == "dropped" and isinstance(event, Element)
        ]
        return emitted, late

    def restart(self) -> None:
        """Resets the watermark. Needs no restart of the state, because each step restores the state from rows."""
        self.watermark_ms = MIN_WATERMARK

    @property
    def in_flight(self) -> list[tuple[Any, TimeWindow]]:
        rows = [] if self.rows is None else self.rows.to_pylist()
        in_flight = [row for row in rows if self.spec.assigner.merges or row["elements"] is not None]
        return sorted((row["key"], window_of(row, "")) for row in in_flight if '"key_state"' not in row["state"])

    def _run(self, element: Element | None, instant: Instant) -> pa.Table:
        from windowlib.engines.choice import dialect_of
        from windowlib.plans.general import plan as general
        from windowlib.plans.kinds.kind import PlanInput
        from windowlib.plans.step import Step

        step = Step(
            assigner=self.spec.assigner,
            keys=["key"],
            aggregates=AggregateSet((), ()),
            watermark_in_ms=instant.watermark_in_ms,
            watermark_out_ms=self.watermark_ms,
            late_in_ms=MIN_WATERMARK,
            late_out_ms=MIN_WATERMARK,
            batch_id=self.batches,
            partition_ms=1000,
            plan_time_ms=self.processing_time_ms,
            dialect=dialect_of(self.spark),
        )
        contents = pa.concat_tables(self.contents) if self.contents else None
        inputs = PlanInput(
            None if element is None else self.spark.createDataFrame(_table(element)),
            None if self.rows is None else self.spark.createDataFrame(self.rows),
            contents=None if contents is None else self.spark.createDataFrame(contents),
        )
        return general.operator_rows(inputs, step, instant, run=self.program).toArrow()

    def _keep(self, outputs: pa.Table) -> None:
        from windowlib.plans.general.plan import STATE, STORED_ROW

        part = outputs["part"].to_pylist()
        state = [*("key", "window_start_ms", "window_end_ms", "state_window_start_ms", "state_window_end_ms")]
        state += [*PARTIAL_NAMES, *STATE]
        rows = outputs.filter(pa.array([name == "open" for name in part])).select(state)
        self.rows = rows if rows.num_rows else None
        if "contents" in outputs.column_names:
            stored = outputs.filter(pa.array([name == "contents" for name in part])).select(["key", *STORED_ROW])
            self.contents += [stored] if stored.num_rows else []


def _table(element: Element) -> pa.Table:
    value = {name: element.value.get(name) for name in READS}
    row = {"key": element.key, names.TIMESTAMP_MS: element.timestamp_ms, names.ARRIVAL: element.arrival, **value}
    return pa.Table.from_pylist([row], EVENTS)


def _emitted(row: Json) -> Json:
    bounds = bounds_of(window_of(row, ""))
    results = {name: row[f"_o_{name}"] for name in OUTPUTS if row[f"_o_{name}"] is not None}
    return {"key": row["key"], "window_start": bounds[0], "window_end": bounds[1], **results}
