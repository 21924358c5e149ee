"""Rows that a batch does not count: quarantined rows, and late events for the side output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from windowlib.plans import names
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from windowlib.plans.duplicates import id_of
from windowlib.plans.functions import F
from windowlib.plans.step import Step

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windowlib.plans.dialect import Dialect


def quarantined(rows: DataFrame, source_columns: Sequence[str], batch_id: int, dialect: Dialect) -> DataFrame:
    """Refused rows of a batch, as rows of the quarantine.

    rows:    the source's columns, TIMESTAMP_MS, REASON, CORRUPT, SOURCE_FILE, SOURCE_ROW, maybe MISFIT
    returns: reason (followed by the text of MISFIT), raw (JSON of the row, or the unparsed line), event_time,
             SOURCE_FILE, source_row, batch_id
    """
    shown = F.col(names.TIMESTAMP_MS).between(MIN_TIMESTAMP_MS, MAX_TIMESTAMP_MS)
    return rows.where(f"{names.REASON} IS NOT NULL").select(
        _reason(rows).alias("reason"),
        F.coalesce(names.CORRUPT, dialect.as_json(rows, source_columns)).alias("raw"),
        F.when(shown, F.timestamp_millis(names.TIMESTAMP_MS)).alias("event_time"),
        names.SOURCE_FILE,
        F.col(names.SOURCE_ROW).alias("source_row"),
        F.lit(batch_id).cast("long").alias("batch_id"),
    )


def _reason(rows: DataFrame) -> Column:
    reason = F.col(names.REASON)
    if names.MISFIT not in rows.columns:
        return reason
    return F.when(F.col(names.MISFIT).isNull(), reason).otherwise(F.concat(reason, F.lit(": "), names.MISFIT))


def in_holes(rows: DataFrame, holes: DataFrame) -> DataFrame:
    """Sets the reason `hole` in rows of a batch whose arrival is in `holes`."""
    hole = names.internal("hole")
    marked = F.broadcast(holes.select(F.col("arrival").alias(names.ARRIVAL), F.lit("hole").alias(hole)))
    return rows.join(marked, names.ARRIVAL, "left").withColumn(names.REASON, F.coalesce(names.REASON, hole)).drop(hole)


def late_events(late: DataFrame, step: Step, source_columns: Sequence[str], event_id: str | None) -> DataFrame:
    """Late side output of a batch.

    late:    late events with TIMESTAMP_MS, WINDOW_START_MS, WINDOW_END_MS (of the window missed; null in a hole)
    returns: key, event_time, event_id, raw, window_start, window_end, watermark, batch_id, SOURCE_FILE, source_row,
             readmitted_by, late_by_ms (watermark minus the window's cleanup time; in a hole, minus the event's time and
             the allowed lateness)
    """
    last = F.coalesce(F.col(names.WINDOW_END_MS) - 1, F.col(names.TIMESTAMP_MS))
    return late.select(
        *step.key_columns,
        F.timestamp_millis(names.TIMESTAMP_MS).alias("event_time"),
        (id_of(event_id) if event_id else F.lit(None).cast("string")).alias("event_id"),
        step.dialect.as_json(late, source_columns).alias("raw"),
        F.timestamp_millis(names.WINDOW_START_MS).alias("window_start"),
        F.timestamp_millis(names.WINDOW_END_MS).alias("window_end"),
        F.timestamp_millis(F.lit(min(step.watermark_in_ms, MAX_TIMESTAMP_MS))).alias("watermark"),
        (F.lit(min(step.late_in_ms, MAX_TIMESTAMP_MS)) - last).alias("late_by_ms"),
        F.lit(step.batch_id).cast("long").alias("batch_id"),
        names.SOURCE_FILE,
        F.col(names.SOURCE_ROW).alias("source_row"),
        F.lit(None).cast("long").alias("readmitted_by"),
    )
