"""Duplicates: rows whose event id was admitted before. The first in arrival order is kept.

Ids are few bytes and repeated ones are rare, so the plan finds the repeated ids first (one hash aggregation, no sort)
and then marks rows by a small join. Rows without an id are never duplicates.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowlib.plans.functions import quoted


def mark_duplicates(
    rows: DataFrame, event_id: str, seen: DataFrame | None, materialize: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """`rows` with reason = duplicate on all but the first admitted row of an id.

    rows: reason, arrival, the event id column       seen: event_id (string), the ids admitted by earlier batches
    `materialize` writes the repeated ids and reads them back, so that their number is known to the join.
    """
    identifier = F.col(quoted(event_id)).cast("string")
    repeated = materialize(repeated_ids(rows.where("reason IS NULL"), identifier, seen))
    is_repeat = F.col("_repeated").isNotNull() & ((F.col("arrival") != F.col("_first")) | F.col("_first").isNull())
    return (
        rows.join(repeated, identifier == F.col("_repeated"), "left")
        .withColumn("reason", F.coalesce("reason", F.when(is_repeat, "duplicate")))
        .drop("_repeated", "_first")
    )


def repeated_ids(admitted: DataFrame, identifier: Column, seen: DataFrame | None) -> DataFrame:
    """The ids that occur more than once.

    returns: _repeated (string), _first (long: arrival of the row to keep; null when an earlier batch has it)
    """
    ids = (
        admitted.select(identifier.alias("_repeated"), "arrival")
        .where("_repeated IS NOT NULL")
        .groupBy("_repeated")
        .agg(F.min("arrival").alias("_first"), F.count(F.lit(1)).alias("_times"))
    )
    if seen is None:
        return ids.where("_times > 1").drop("_times")
    earlier = seen.select(F.col("event_id").alias("_repeated"), F.lit(True).alias("_seen"))
    return (
        ids.join(earlier, "_repeated", "left")
        .where("_times > 1 OR _seen")
        .select("_repeated", F.when(F.col("_seen").isNull(), F.col("_first")).alias("_first"))
    )
