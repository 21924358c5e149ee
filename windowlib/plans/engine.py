"""What a plan asks of an engine beyond DataFrames: sums over rows that pass by, and the numbering of islands.

A plan says what to add up and what touches; how that is done best is left to the engine. `Engine` does it with Spark's
own means. Another engine overrides what it does its own way; its answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from windowlib.plans import names
from windowlib.plans.functions import F, quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

TIMES_IN_JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
OverBatches = Callable[["Iterable[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]


class Counters:
    """Named sums, known once the job that they are part of has ended. Here a job gathers them as Spark offers it."""

    def __init__(self) -> None:
        from pyspark.sql import Observation

        self._observation = Observation()

    def over(self, rows: DataFrame, sums: Mapping[str, str], *, without: Collection[str] = ()) -> DataFrame:
        """`rows`, adding up on the way: each name is the sum of a whole number per row, as SQL (0 without rows).

        Columns `without` are there for the sums alone, and are not returned.
        """
        summed = (F.expr(f"coalesce(sum({sql}), 0)").cast("long").alias(name) for name, sql in sums.items())
        return rows.observe(self._observation, *summed).drop(*without)

    def values(self) -> dict[str, int]:
        """The sums by name; to be asked for after the job."""
        return dict(self._observation.get)


class Engine:
    """How an engine does what differs between engines; here by Spark's own means.

    `guarded`: its numbers need what `windowlib.plans.aggregates.guarded` does to be Spark's where they end.
    """

    guarded = False

    def counters(self) -> Counters:
        """New counters, for one job."""
        return Counters()

    def with_values(self, rows: DataFrame, values: Mapping[str, int]) -> DataFrame:
        """`rows` with one more column per value (long), the same in every row; values differ from batch to batch.

        By a join with one row. As literals they would be part of the code that Spark generates: each batch would be
        compiled again and run cold, which took three times as long as the windows themselves (a million events: 2.7 s
        against 0.7 s).
        """
        one_row = ", ".join(f"CAST({value} AS BIGINT)" for value in values.values())
        instant = f"SELECT * FROM VALUES ({one_row}) AS instant({', '.join(values)})"
        return rows.crossJoin(F.broadcast(rows.sparkSession.sql(instant)))

    def union(self, parts: Sequence[DataFrame]) -> DataFrame:
        """The rows of all parts by column name; a column that a part lacks is null in its rows."""
        return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)

    def concatenated(self, rows: DataFrame, arrays: str, by: Sequence[str]) -> tuple[DataFrame, str]:
        """`rows`, and SQL that gives, where they are grouped by `by`, all elements of the column `arrays` as one array.

        The column may have another value in the rows that are returned. By a window function, so that groups come
        sorted: aggregating by hash, Spark would keep the lists of all groups as objects (240,000 rows: 6 s, not 2 s).
        """
        whole = f"flatten(collect_list({arrays}) OVER (PARTITION BY {', '.join(map(quoted, by))}))"
        return rows.withColumn(arrays, F.expr(whole)), f"first({arrays})"

    def together(self, parts: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
        """The `union` of parts, rows that are equal in `columns` in one task where that saves later shuffles.

        Without columns all are equal. A part that is distributed so already stays where it is, and so does their union.
        """
        return self.union([_gathered(part, columns) for part in parts])

    def map_sorted(
        self, rows: DataFrame, keys: Sequence[str], order: Sequence[str], function: OverBatches, schema: StructType
    ) -> DataFrame:
        """What `function` makes of the Arrow batches of `rows`: a key in one task, sorted by `keys` and `order`."""
        return _gathered(rows, keys).sortWithinPartitions(*map(quoted, [*keys, *order])).mapInArrow(function, schema)

    def as_json(self, rows: DataFrame, columns: Sequence[str]) -> Column:
        """Some columns of `rows` as one JSON object, numbers with all their digits and times to the microsecond."""
        return F.to_json(F.struct(*in_json(columns)), TIMES_IN_JSON)

    def with_islands(self, intervals: DataFrame, keys: Sequence[str]) -> DataFrame:
        """`intervals` and _island (long): the same for two intervals of a key only if a chain of touches joins them.

        intervals: the columns `keys`, window_start_ms, window_end_ms (long, no nulls), any others; two of a key touch
                   where one starts by the other's end (``start <= end``)

        What starts after all before it have ended begins an island; islands are counted.
        """
        per_key = f"PARTITION BY {', '.join(map(quoted, keys))}" if keys else ""
        earlier = f"OVER ({per_key} ORDER BY window_start_ms ROWS BETWEEN UNBOUNDED PRECEDING AND"
        reached = intervals.selectExpr("*", f"max(window_end_ms) {earlier} 1 PRECEDING) AS _reach")
        starts_island = "if(window_start_ms <= _reach, 0, 1)"
        return reached.selectExpr("*", f"sum({starts_island}) {earlier} CURRENT ROW) AS _island").drop("_reach")


def in_json(columns: Sequence[str]) -> list[Column]:
    """Columns of a source under the names that JSON has for them: of those of one name, all but one are null in a row.

    JSON leaves nulls out.
    """
    return [F.col(quoted(name)).alias(names.plain(name)) for name in columns]


def _gathered(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    return rows.repartition(*map(quoted, columns)) if columns else rows.coalesce(1)


SPARK = Engine()
