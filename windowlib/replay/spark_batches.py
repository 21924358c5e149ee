"""Spark engine of `windowlib replay --batches`: each batch is a new file of a real pipeline in its own folder.

The pipeline runs as a trial (`windowlib.replay.trial`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowlib.definition.define import define
from windowlib.definition.instants import time_of
from windowlib.model.assigners import Assigner
from windowlib.model.errors import InvalidSpec, WatermarkRegression
from windowlib.model.geometry import geometry_of
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.plans.admission import MAX_TIMESTAMP_MS
from windowlib.replay.batches import BatchOutcome, Event
from windowlib.replay.trial import Trial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAN_TIME_MS = MAX_TIMESTAMP_MS  # no event is ahead of this time; nothing else in a replay depends on it
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
    """Pipeline in `folder` with the aggregates count(*) and sum(value), advanced batch by batch."""

    def __init__(
        self,
        folder: Path,
        spark: Callable[[], SparkSession],
        assigner: Assigner,
        allowed_lateness_ms: int,
        out_of_orderness_ms: int,
        state_partition_ms: int = 3_600_000,
    ) -> None:
        geometry = geometry_of(assigner)
        if geometry.slice_ms is None and geometry.calendar is None:
            raise InvalidSpec(f"no native Spark plan for {assigner}; supported: windows with slices, such as sessions")
        self.assigner, self.allowed_lateness_ms = assigner, allowed_lateness_ms
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
        self.trial = Trial(defined, folder, spark)
        self.definition, self.incoming = self.trial.definition, self.trial.incoming

    def advance(self, batch: Sequence[Event], watermark_ms: int) -> BatchOutcome:
        """Runs one batch. Raises WatermarkRegression if the pipeline's watermark is not `watermark_ms` afterwards."""
        rows = [{name: getattr(event, name) for name in EVENTS.names} for event in batch]
        events = pa.Table.from_pylist(rows, schema=EVENTS)
        self.trial.feed(events, PLAN_TIME_MS, finish=watermark_ms == MAX_WATERMARK)
        if self.trial.watermark_ms != watermark_ms:
            raise WatermarkRegression(
                f"the watermark of batch {self.trial.steps} is {self.trial.watermark_ms}, but the recording says"
                f" {watermark_ms}; it must be the greatest event time - out_of_orderness_ms - 1, and never decrease"
            )
        return BatchOutcome(
            [(row["key"], *_bounds(row), row["events"], row["total"]) for row in self.trial.fired()],
            [row["id"] for row in self.trial.late()],
            [(row["key"], *_bounds(row)) for row in self.trial.in_flight()],
        )


def _bounds(row: Mapping[str, Any]) -> tuple[int, int]:
    return time_of(row["window_start"]), time_of(row["window_end"])
