"""Duplicates: rows whose event id was admitted before. The first row in arrival order is kept.

Ids are small and seldom repeated. The plan therefore first finds the repeated ids (one hash aggregation, no sort), and
then marks their rows by a small join. Rows without an id are never duplicates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from windowlib.plans import names
from windowlib.plans.functions import F, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REPEATED, FIRST, TIMES, EARLIER = map(names.internal, ("repeated", "first", "times", "earlier"))


def id_of(event_id: str) -> Column:
    """Event id of a row as a string, read from the column named `event_id`; null if the row has no id.

    An empty string is no id. A string of blanks is an id, because it is also a valid key.
    """
    return F.nullif(F.col(quoted(event_id)).cast("string"), F.lit(""))


def mark_duplicates(
    rows: DataFrame, event_id: str, earlier_ids: DataFrame | None, materialize: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """Sets REASON to duplicate in admitted rows whose event id occurs in an earlier admitted row or batch.

    rows:        REASON, ARRIVAL, the event id column
    earlier_ids: event_id (string), the ids admitted by earlier batches

    `materialize` writes the repeated ids and reads them back, so that the engine knows their number
    when it plans the join.
    """
    identifier = id_of(event_id)
    repeated = materialize(repeated_ids(rows.where(f"{names.REASON} IS NULL"), identifier, earlier_ids))
    is_repeat = F.col(REPEATED).isNotNull() & ((F.col(names.ARRIVAL) != F.col(FIRST)) | F.col(FIRST).isNull())
    return (
        rows.join(repeated, identifier == F.col(REPEATED), "left")
        .withColumn(names.REASON, F.coalesce(names.REASON, F.when(is_repeat, F.lit("duplicate"))))
        .drop(REPEATED, FIRST)
    )


def repeated_ids(admitted: DataFrame, identifier: Column, earlier_ids: DataFrame | None) -> DataFrame:
    """Event ids that occur in several rows, or in a row and an earlier batch.

    returns: REPEATED (string), FIRST (long: arrival of the row to keep; null if an earlier batch admitted the id)
    """
    ids = (
        admitted.select(identifier.alias(REPEATED), names.ARRIVAL)
        .where(f"{REPEATED} IS NOT NULL")
        .groupBy(REPEATED)
        .agg(F.min(names.ARRIVAL).alias(FIRST), F.count(F.lit(1)).alias(TIMES))
    )
    if earlier_ids is None:
        return ids.where(f"{TIMES} > 1").drop(TIMES)
    earlier = earlier_ids.select(F.col("event_id").alias(REPEATED), F.lit(True).alias(EARLIER))
    return (
        ids.join(earlier, REPEATED, "left")
        .where(f"{TIMES} > 1 OR {EARLIER}")
        .select(REPEATED, F.when(F.col(EARLIER).isNull(), F.col(FIRST)).alias(FIRST))
    )
