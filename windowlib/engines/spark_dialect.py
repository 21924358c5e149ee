"""Spark's dialect: every operation uses Spark's own functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, ClassVar

from windowlib.engines.spark import size_tasks
from windowlib.plans import names
from windowlib.plans.functions import F, quoted
from windowlib.plans.sql.kinds import WIDEST

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from windowlib.plans.dialect import Dialect, OverBatches

TIMES_IN_JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
COUNT_DIGITS = 10  # digits of the number of events in a window
MOST_DIGITS = 22  # after the decimal point: with more, the remainder cannot be divided to enough digits


class ObservedCounters:
    """Counters that Spark computes with an `Observation`."""

    def __init__(self) -> None:
        from pyspark.sql import Observation

        self._observation = Observation()

    def over(self, rows: DataFrame, sums: Mapping[str, str], *, without: Collection[str] = ()) -> DataFrame:
        """See `Counters`."""
        summed = (F.expr(f"coalesce(sum({sql}), 0)").cast("long").alias(name) for name, sql in sums.items())
        return rows.observe(self._observation, *summed).drop(*without)

    def values(self) -> dict[str, int]:
        """See `Counters`."""
        return dict(self._observation.get)


@dataclass(frozen=True, slots=True)
class SparkDialect:
    """Implementation of `Dialect` for Spark, on this machine, on a cluster and over Spark Connect."""

    reads_text: ClassVar[bool] = True
    numbers_rows: ClassVar[bool] = True
    skips_missing_files: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = True

    def expression(self, sql: str, types: Callable[[], Mapping[str, str]]) -> str:
        """See `Dialect`."""
        return sql

    def long_summand(self, sql: str) -> str:
        """See `Dialect`."""
        return sql

    def long_sum(self, sql: str) -> str:
        """See `Dialect`."""
        return sql

    def extreme(self, function: str, argument: str, kind: str) -> str:
        """See `Dialect`."""
        return f"{function}({argument})"

    def average_of_decimals(self, total: str, count: str, precision: int, scale: int) -> str:
        """See `Dialect`.

        Spark's quotient of decimals has as many digits as the types leave room for. Wide sums leave too few digits. In
        this case the integral part of the sum and the remainder are divided separately.

        >>> SPARK.average_of_decimals("t", "n", 20, 2)
        't / n'
        """
        digits = max(WIDEST - (precision - scale), 6)  # digits of Spark's quotient
        if digits >= scale + 4 or scale > MOST_DIGITS:
            return f"{total} / {count}"
        whole = f"if({total} < 0, ceil({total}), floor({total}))"
        left = f"cast({whole} % {count} as decimal({COUNT_DIGITS}, 0)) + {total} % 1"
        quotient = f"cast(({whole} - {whole} % {count}) / {count} as decimal({WIDEST - scale - 5}, 0))"
        rest = f"({left}) / cast({count} as decimal({COUNT_DIGITS}, 0))"
        return f"{quotient} + cast({rest} as decimal({scale + 5}, {scale + 4}))"

    def of_same_type(self, partial: str) -> str:
        """See `Dialect`. Spark cannot order maps, so `first` replaces `min` and `max`.

        >>> SPARK.of_same_type("max(struct(a))"), SPARK.of_same_type("sum(a)")
        ('first(struct(a))', 'sum(a)')
        """
        return f"first{partial[3:]}" if partial.startswith(("min(", "max(")) else partial

    def as_json(self, rows: DataFrame, columns: Sequence[str]) -> Column:
        """See `Dialect`. JSON omits nulls. If columns share a name in JSON, at most one of them is set in a row."""
        named = (F.col(quoted(name)).alias(names.plain(name)) for name in columns)
        return F.to_json(F.struct(*named), TIMES_IN_JSON)

    def counters(self) -> ObservedCounters:
        """See `Dialect`."""
        return ObservedCounters()

    def with_values(self, rows: DataFrame, values: Mapping[str, int]) -> DataFrame:
        """See `Dialect`. Uses a join with one row.

        As literals, the values would be part of Spark's generated code. Spark would then compile each batch again and
        run it without JIT optimisation. That took three times as long as the windows themselves (a million events: 2.7
        s against 0.7 s).
        """
        one_row = ", ".join(f"CAST({value} AS BIGINT)" for value in values.values())
        instant = f"SELECT * FROM VALUES ({one_row}) AS instant({', '.join(values)})"
        return rows.crossJoin(F.broadcast(rows.sparkSession.sql(instant)))

    def union(self, parts: Sequence[DataFrame]) -> DataFrame:
        """See `Dialect`."""
        return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)

    def together(self, parts: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
        """See `Dialect`."""
        return self.union([_gathered(part, columns) for part in parts])

    def concatenated(self, rows: DataFrame, arrays: str, by: Sequence[str]) -> tuple[DataFrame, str]:
        """See `Dialect`. Uses a window function, which sorts the rows by group.

        Hash aggregation would keep the lists of all groups as objects (240,000 rows: 6 s instead of 2 s).
        """
        whole = f"flatten(collect_list({arrays}) OVER (PARTITION BY {', '.join(map(quoted, by))}))"
        return rows.withColumn(arrays, F.expr(whole)), f"first({arrays})"

    def map_sorted(
        self, rows: DataFrame, keys: Sequence[str], order: Sequence[str], function: OverBatches, schema: StructType
    ) -> DataFrame:
        """See `Dialect`."""
        return _gathered(rows, keys).sortWithinPartitions(*map(quoted, [*keys, *order])).mapInArrow(function, schema)

    def with_islands(self, intervals: DataFrame, keys: Sequence[str]) -> DataFrame:
        """See `Dialect`."""
        per_key = f"PARTITION BY {', '.join(map(quoted, keys))}" if keys else ""
        earlier = f"OVER ({per_key} ORDER BY window_start_ms ROWS BETWEEN UNBOUNDED PRECEDING AND"
        reached = intervals.selectExpr("*", f"max(window_end_ms) {earlier} 1 PRECEDING) AS _reach")
        starts_island = "if(window_start_ms <= _reach, 0, 1)"
        return reached.selectExpr("*", f"sum({starts_island}) {earlier} CURRENT ROW) AS _island").drop("_reach")

    def rows_with_file(self, spark: SparkSession, paths: Sequence[str], schema: StructType) -> DataFrame:
        """See `Dialect`."""
        read = spark.read.schema(schema).parquet(*paths)
        return read.withColumn(names.FILE, read.metadataColumn("_metadata")["file_path"])

    def size_tasks(self, spark: SparkSession, rows: int, conf: Mapping[str, str]) -> None:
        """See `Dialect`."""
        size_tasks(spark, rows, conf)


def _gathered(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    return rows.repartition(*map(quoted, columns)) if columns else rows.coalesce(1)


SPARK: Dialect = SparkDialect()
