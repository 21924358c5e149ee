"""What a batch turns away: quarantined rows, and late events for the side output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from windowlib.plans.functions import F, quoted
from windowlib.plans.step import Step

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def quarantined(rows: DataFrame, source_columns: Sequence[str], batch_id: int) -> DataFrame:
    """The refused rows of a batch.

    rows:    the source's columns, timestamp_ms, reason, _corrupt, _source_file, _source_row
    returns: reason, raw (JSON of the row, or the unparsed line), event_time, _source_file, source_row, batch_id
    """
    shown = F.col("timestamp_ms").between(MIN_TIMESTAMP_MS, MAX_TIMESTAMP_MS)
    return rows.where("reason IS NOT NULL").select(
        "reason",
        F.coalesce("_corrupt", raw(source_columns)).alias("raw"),
        F.when(shown, F.timestamp_millis("timestamp_ms")).alias("event_time"),
        "_source_file",
        F.col("_source_row").alias("source_row"),
        F.lit(batch_id).cast("long").alias("batch_id"),
    )


def in_holes(rows: DataFrame, holes: DataFrame) -> DataFrame:
    """`rows` of a batch, with the reason `hole` for those whose arrival is in `holes`."""
    known = F.broadcast(holes.select("arrival", F.lit("hole").alias("_hole")))
    return rows.join(known, "arrival", "left").withColumn("reason", F.coalesce("reason", "_hole")).drop("_hole")


def late_events(late: DataFrame, step: Step, source_columns: Sequence[str], event_id: str | None) -> DataFrame:
    """The late side output of a batch.

    late:    late events with timestamp_ms, window_start_ms, window_end_ms (of the window missed; null in a hole)
    returns: key, event_time, event_id, raw, window_start, window_end, watermark, late_by_ms (how far the watermark was
             past the cleanup time), batch_id, _source_file, source_row, readmitted_by
    """
    last = F.coalesce(F.col("window_end_ms") - 1, F.col("timestamp_ms"))
    return late.select(
        *step.key_columns,
        F.timestamp_millis("timestamp_ms").alias("event_time"),
        (F.col(quoted(event_id)).cast("string") if event_id else F.lit(None).cast("string")).alias("event_id"),
        raw(source_columns).alias("raw"),
        F.timestamp_millis("window_start_ms").alias("window_start"),
        F.timestamp_millis("window_end_ms").alias("window_end"),
        F.timestamp_millis(F.lit(min(step.watermark_in_ms, MAX_TIMESTAMP_MS))).alias("watermark"),
        (F.lit(step.late_in_ms) - last).alias("late_by_ms"),
        F.lit(step.batch_id).cast("long").alias("batch_id"),
        "_source_file",
        F.col("_source_row").alias("source_row"),
        F.lit(None).cast("long").alias("readmitted_by"),
    )


def raw(source_columns: Sequence[str]) -> Column:
    """A source row as JSON."""
    return F.to_json(F.struct(*(F.col(quoted(name)) for name in source_columns)))
