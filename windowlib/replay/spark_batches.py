"""The Spark engine of `windowlib replay --batches`: each batch is an arrival file of a real pipeline in its own folder.

Nothing is simplified: the events are written as Parquet, the pipeline has a definition, and every batch goes through
plan, ledger, checks and commits as `windowlib run` does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.definition.define import define
from windowlib.definition.instants import time_of
from windowlib.model.assigners import Assigner, DynamicSession, Session, Sliding, Tumbling
from windowlib.model.errors import InvalidSpec, WatermarkRegression
from windowlib.model.lateness import is_late
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.plans.admission import MAX_TIMESTAMP_MS
from windowlib.replay.batches import BatchOutcome, Event
from windowlib.runs.advance import advance
from windowlib.tables.read import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAN_TIME_MS = MAX_TIMESTAMP_MS  # no rule of a replay depends on it, and no event is too far ahead of it
EVENTS = pa.schema(
    [
        ("key", pa.string()),
        ("timestamp_ms", pa.int64()),
        ("value", pa.int64()),
        ("id", pa.string()),
        ("gap_ms", pa.int64()),
    ]
)


class SparkEngine:
    """A pipeline of count(*) and sum(value) in `folder`, advanced batch by batch."""

    def __init__(
        self,
        folder: Path,
        spark: Callable[[], SparkSession],
        assigner: Assigner,
        allowed_lateness_ms: int,
        out_of_orderness_ms: int,
        state_partition_ms: int = 3_600_000,
    ) -> None:
        if not isinstance(assigner, Tumbling | Sliding | Session | DynamicSession):
            raise InvalidSpec(f"no Spark plan for {assigner}; supported: tumbling, sliding, session")
        self.spark, self.assigner, self.allowed_lateness_ms = spark, assigner, allowed_lateness_ms
        self.incoming = folder / "incoming"
        self.incoming.mkdir(parents=True)
        self.batches = 0
        defined = define(
            "replay",
            source={
                "format": "parquet",
                "path": "incoming",
                "key": ["key"],
                "timestamp": "timestamp_ms",
                "timestamp_unit": "ms",
            },
            watermark={"out_of_orderness": f"{out_of_orderness_ms}ms"},
            assigner=assigner,
            allowed_lateness_ms=allowed_lateness_ms,
            aggregates={"events": "count(*)", "total": "sum(value)"},
            storage={"state_partition": f"{state_partition_ms}ms"},
            folder=folder,
        )
        # Its own warehouse, whatever the environment says.
        self.definition = defined.model_copy(update={"root": folder / "warehouse" / "replay"})

    def advance(self, batch: Sequence[Event], watermark_ms: int) -> BatchOutcome:
        """Runs one batch. Raises WatermarkRegression where the pipeline's watermark is not `watermark_ms` then."""
        self.batches += 1
        path = self.incoming / f"{self.batches:06d}.parquet"
        rows = [{name: getattr(event, name) for name in EVENTS.names} for event in batch]
        pq.write_table(pa.Table.from_pylist(rows, schema=EVENTS), path)
        os.utime(path, ns=(self.batches, self.batches))
        finish = watermark_ms == MAX_WATERMARK
        reports = advance(self.definition, self.spark, clock=lambda: PLAN_TIME_MS, finish=finish)
        if reports[-1].watermark_out_ms != watermark_ms:
            raise WatermarkRegression(
                f"the watermark of batch {self.batches} is {reports[-1].watermark_out_ms}, the recording says"
                f" {watermark_ms}; it must be the greatest event time - out_of_orderness_ms - 1, and never fall"
            )
        made = {report.batch_id for report in reports}
        return BatchOutcome(self._results(made), self._late(made), self._in_flight(watermark_ms))

    def state(self) -> list[Mapping[str, Any]]:
        """The rows of `open_windows`."""
        rows: list[Mapping[str, Any]] = read_table(self.definition, "open_windows").to_pylist()
        return rows

    def _results(self, made: set[int]) -> list[tuple[str, int, int, int, int]]:
        rows = (row for row in read_table(self.definition, "results").to_pylist() if row["batch_id"] in made)
        return [(r["key"], time_of(r["window_start"]), time_of(r["window_end"]), r["events"], r["total"]) for r in rows]

    def _late(self, made: set[int]) -> list[str]:
        rows = (row for row in read_table(self.definition, "late_events").to_pylist() if row["batch_id"] in made)
        return [json.loads(row["raw"])["id"] for row in rows]

    def _in_flight(self, watermark_ms: int) -> list[tuple[str, int, int]]:
        if isinstance(self.assigner, Tumbling | Sliding):
            windows = {
                (row["key"], window)
                for row in self.state()
                for window in self.assigner.assign(row["state_window_start_ms"])
                if not is_late(window, self.allowed_lateness_ms, watermark_ms)
            }
            return [(key, window.start_ms, window.end_ms) for key, window in windows]
        return [(row["key"], row["window_start_ms"], row["window_end_ms"]) for row in self.state()]
